// SPDX-License-Identifier: Apache-2.0
//! The store's URL. It may hold a password, so no message quotes it.

use redis::{Client, IntoConnectionInfo};

use crate::options::ConfigError;

const FORMS: &str = "redis://[user:password@]host[:port][/db], rediss://… for TLS, \
                     or redis+unix:///path[?db=&user=&pass=] for a Unix socket";

/// A client for `url`; opens no connection.
///
/// # Errors
/// [`ConfigError`] that says which forms are right.
pub(super) fn client(url: &str) -> Result<Client, ConfigError> {
    let scheme = url.split(':').next().unwrap_or_default();
    if !matches!(scheme, "redis" | "rediss" | "redis+unix") {
        return Err(ConfigError::new("store", format!("is no URL of a store; use {FORMS}")));
    }
    let info = url.into_connection_info();
    let client = info.and_then(Client::open);
    // The library's error may quote parts of the URL, so it is not passed on.
    client.map_err(|_| ConfigError::new("store", format!("does not parse; use {FORMS}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_accepted() {
        for url in [
            "redis://127.0.0.1:6379",
            "rediss://user:secret@store.example:6380/2",
            "redis+unix:///run/redis.sock?db=1&user=limiter&pass=secret",
        ] {
            assert!(client(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn an_error_does_not_quote_the_password() {
        for url in ["redis://user:hunter2@host:99999", "http://user:hunter2@host", "redis://:hunter2@host:6379/notadb"]
        {
            let error = client(url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.is_empty(), "{url} must be refused");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
