// SPDX-License-Identifier: Apache-2.0
//! What a server is told at its start, and how wrong settings are reported. Reads no environment and no file.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use limiter_core::{HashKey, PayloadPlace};

/// A setting that cannot work. Names the setting as the command line does; never quotes a secret.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {message}")]
pub struct ConfigError {
    setting: &'static str,
    message: String,
}

impl ConfigError {
    pub(crate) fn new(setting: &'static str, message: impl fmt::Display) -> Self {
        Self { setting, message: message.to_string() }
    }
}

/// Where Envoy's questions arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket at this path.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl std::str::FromStr for Listen {
    type Err = ConfigError;

    /// `unix:PATH` or `tcp:ADDRESS:PORT`.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::new("listen", format!("{text:?} is neither unix:PATH nor tcp:ADDRESS:PORT"));
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(PathBuf::from(path))),
            Some(("tcp", address)) => address.parse().map(Self::Tcp).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

/// The `ConfigMap` that holds the ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMapName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::str::FromStr for ConfigMapName {
    type Err = ConfigError;

    /// `NAMESPACE/NAME`.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(ConfigError::new("rules-configmap", format!("{text:?} is not NAMESPACE/NAME"))),
        }
    }
}

/// The most event loops that decide; arbitrary, beyond any machine on which limiters beside Envoy make sense.
pub const MOST_THREADS: usize = 64;

/// Everything that a server needs to know. `Debug` shows neither the store's URL nor the hash key.
pub struct Options {
    /// The gateway whose rules are applied; documents of another one are refused.
    pub gateway: String,
    /// This limiter's name, in `/status` and in the ids of decisions.
    pub instance: String,
    /// The version that `/status` shows.
    pub version: String,
    /// Where Envoy's questions arrive.
    pub listen: Listen,
    /// Where people and the operator ask: health, metrics, status.
    pub admin: SocketAddr,
    /// URL of the store; may hold a password.
    pub store: String,
    /// Time the store has for a decision, from the moment the request is decoded.
    pub store_deadline: Duration,
    /// How many requests may be held at once until their leaky buckets let them leave.
    pub max_held: usize,
    /// How many event loops decide, each on a thread of its own: 1 to [`MOST_THREADS`].
    pub threads: usize,
    /// How many refused calls are remembered, to be refused again without the store; 0 for none.
    pub deny_cache: usize,
    /// The `ConfigMap` to watch through the API, if any.
    pub rules_configmap: Option<ConfigMapName>,
    /// The directory where that `ConfigMap` is mounted, if any.
    pub rules_dir: Option<PathBuf>,
    /// The directory where the break-glass `ConfigMap` is mounted, if any.
    pub breakglass_dir: Option<PathBuf>,
    /// Where the last good document is kept over restarts, if anywhere.
    pub state_dir: Option<PathBuf>,
    /// Where Envoy leaves the payload of a verified token, unless the ruleset says where.
    pub payload_place: PayloadPlace,
    /// Key of the hash that hides subjects from the store.
    pub hash_key: HashKey,
    /// Whether a response that passed for want of a store says so.
    pub mode_header: bool,
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("gateway", &self.gateway)
            .field("instance", &self.instance)
            .field("listen", &self.listen)
            .field("admin", &self.admin)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Name under which `/status` lists the ruleset: that of its `ConfigMap`, watched or not.
    pub(crate) fn ruleset_name(&self) -> String {
        match &self.rules_configmap {
            Some(configmap) => configmap.name.clone(),
            None => format!("{}-rules-0", self.gateway),
        }
    }

    /// The `ConfigMap` with the break-glass map: beside the rules.
    pub(crate) fn breakglass_configmap(&self) -> Option<ConfigMapName> {
        let rules = self.rules_configmap.as_ref()?;
        Some(ConfigMapName { namespace: rules.namespace.clone(), name: format!("{}-breakglass", self.gateway) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listen_address_is_a_unix_path_or_a_tcp_address() {
        assert_eq!("unix:/run/x.sock".parse::<Listen>().unwrap(), Listen::Unix("/run/x.sock".into()));
        assert_eq!("tcp:127.0.0.1:80".parse::<Listen>().unwrap(), Listen::Tcp("127.0.0.1:80".parse().unwrap()));
        for text in ["", "unix:", "/run/x.sock", "tcp:localhost", "http://127.0.0.1:80"] {
            assert!(text.parse::<Listen>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_configmap_needs_a_namespace_and_a_name() {
        assert_eq!("a/b".parse::<ConfigMapName>().unwrap().name, "b");
        for text in ["", "a", "a/", "/b", "a/b/c"] {
            assert!(text.parse::<ConfigMapName>().is_err(), "{text:?}");
        }
    }
}
