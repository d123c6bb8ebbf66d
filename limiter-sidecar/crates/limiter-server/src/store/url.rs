// SPDX-License-Identifier: Apache-2.0
//! The store's URL. It may hold a password, so no message quotes it.

use redis::{Client, IntoConnectionInfo};

use super::address::Address;
use crate::options::ConfigError;

const FORMS: &str = "redis://[user:password@]host[:port][/db], rediss://… for TLS, \
                     redis+cluster://[user:password@]host:port,host:port (or rediss+cluster://…) for a cluster, \
                     or redis+unix:///path[?db=&user=&pass=] for a Unix socket";

/// What a URL leads to.
pub(super) enum Target {
    /// One server.
    Single(Client),
    /// A cluster, of which some nodes are named.
    Cluster { access: Access, seeds: Vec<Address> },
}

/// How every node of a cluster is reached: with TLS or without, as whom.
#[derive(Clone)]
pub(super) struct Access {
    scheme: &'static str,
    /// `user:password@` as in the URL, or empty.
    user: String,
}

impl Access {
    /// A client for one node; opens no connection.
    ///
    /// # Errors
    /// When the library takes no such host.
    pub(super) fn client(&self, address: &Address) -> Result<Client, ()> {
        let url = format!("{}://{}{address}", self.scheme, self.user);
        Client::open(url).map_err(|_| ())
    }
}

/// Reads a URL; opens no connection.
///
/// # Errors
/// [`ConfigError`] that says which forms are right.
pub(super) fn target(url: &str) -> Result<Target, ConfigError> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let wrong = || ConfigError::new("store", format!("does not parse; use {FORMS}"));
    match scheme {
        "redis" | "rediss" | "redis+unix" => {
            let client = url.into_connection_info().and_then(Client::open);
            // The library's error may quote parts of the URL, so it is not passed on.
            client.map(Target::Single).map_err(|_| wrong())
        }
        "redis+cluster" => cluster("redis", rest).ok_or_else(wrong),
        "rediss+cluster" => cluster("rediss", rest).ok_or_else(wrong),
        _ => Err(ConfigError::new("store", format!("is no URL of a store; use {FORMS}"))),
    }
}

fn cluster(scheme: &'static str, rest: &str) -> Option<Target> {
    // A cluster has one database only.
    let rest = rest.strip_suffix("/0").or_else(|| rest.strip_suffix('/')).unwrap_or(rest);
    let (user, hosts) = match rest.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), rest),
    };
    let access = Access { scheme, user };
    let seeds = hosts.split(',').map(|host| host.parse().ok()).collect::<Option<Vec<Address>>>()?;
    for seed in &seeds {
        if seed.host.is_empty() || access.client(seed).is_err() {
            return None;
        }
    }
    Some(Target::Cluster { access, seeds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_one_server_are_accepted() {
        for url in [
            "redis://127.0.0.1:6379",
            "rediss://user:secret@store.example:6380/2",
            "redis+unix:///run/redis.sock?db=1&user=limiter&pass=secret",
        ] {
            assert!(matches!(target(url), Ok(Target::Single(_))), "{url}");
        }
    }

    #[test]
    fn a_cluster_is_named_by_some_of_its_nodes() {
        for (url, count) in [
            ("redis+cluster://127.0.0.1:7000", 1),
            ("redis+cluster://limiter:p%40ss@a:7000,b:7001,[fd00::1]:7002", 3),
            ("rediss+cluster://:secret@a:7000,b:7001/0", 2),
        ] {
            assert!(matches!(target(url), Ok(Target::Cluster { seeds, .. }) if seeds.len() == count), "{url}");
        }
    }

    #[test]
    fn every_node_of_a_cluster_gets_the_urls_credentials() {
        let Ok(Target::Cluster { access, .. }) = target("rediss+cluster://limiter:p%40ss@a:7000") else {
            panic!("a cluster")
        };
        let client = access.client(&"b:7009".parse().unwrap()).unwrap();
        let info = client.get_connection_info();
        assert_eq!(info.redis_settings().username(), Some("limiter"));
        assert_eq!(info.redis_settings().password(), Some("p@ss"));
        assert_eq!(info.addr().to_string(), "b:7009");
    }

    #[test]
    fn an_error_does_not_quote_the_password() {
        for url in [
            "redis://user:hunter2@host:99999",
            "http://user:hunter2@host",
            "redis://:hunter2@host:6379/notadb",
            "redis+cluster://user:hunter2@host",
            "redis+cluster://user:hunter2@a:7000,",
            "redis+cluster://user:hunter2@a:7000/1",
            "redis+cluster://user:hunter2@",
        ] {
            let error = target(url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.is_empty(), "{url} must be refused");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
