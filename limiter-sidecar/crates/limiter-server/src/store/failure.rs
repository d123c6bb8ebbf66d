// SPDX-License-Identifier: Apache-2.0
//! Why the store gave no decision, as a closed set, and how that is said without quoting what a server sent.

use std::fmt::Write as _;

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why there was no decision. The names are label values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub(crate) enum StoreFailure {
    /// No answer before the deadline.
    #[error("timeout")]
    Timeout,
    /// Not connected, or the connection broke.
    #[error("connection")]
    Connection,
    /// The server is out of memory and may not evict.
    #[error("oom")]
    Oom,
    /// The server is a replica, or may not write to its disk.
    #[error("readonly")]
    ReadOnly,
    /// The server is still loading its data.
    #[error("loading")]
    Loading,
    /// Wrong credentials, or a command that the user may not run.
    #[error("auth")]
    Auth,
    /// The script itself failed.
    #[error("script")]
    Script,
    /// A cluster in which nobody serves the slot, or that sends the question in circles.
    #[error("cluster")]
    Cluster,
    /// A slot on its way between two nodes, where neither has all keys of the question.
    #[error("migrating")]
    Migrating,
    /// What came was no answer of a Redis, or not the answer of this script.
    #[error("protocol")]
    Protocol,
    /// Everything else.
    #[error("other")]
    Other,
}

impl StoreFailure {
    /// Whether the link is of no more use: it broke, or leads to a server that is no longer the primary.
    pub(super) fn breaks_link(self) -> bool {
        matches!(self, Self::Connection | Self::Protocol | Self::ReadOnly)
    }
}

impl From<&RedisError> for StoreFailure {
    fn from(error: &RedisError) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        match (error.kind(), error.code().unwrap_or_default()) {
            (_, "OOM") => Self::Oom,
            (_, "READONLY" | "MISCONF" | "NOREPLICAS") => Self::ReadOnly,
            (_, "LOADING" | "MASTERDOWN") => Self::Loading,
            (_, "CLUSTERDOWN" | "MOVED" | "ASK") => Self::Cluster,
            (_, "TRYAGAIN") => Self::Migrating,
            (_, "NOAUTH" | "WRONGPASS" | "NOPERM") | (ErrorKind::AuthenticationFailed, _) => Self::Auth,
            (_, "NOSCRIPT" | "BUSY") | (ErrorKind::Server(ServerErrorKind::ResponseError), _) => Self::Script,
            (ErrorKind::Parse | ErrorKind::UnexpectedReturnType, _) => Self::Protocol,
            (ErrorKind::Io, _) => Self::Connection,
            _ => Self::Other,
        }
    }
}

impl EncodeLabelValue for StoreFailure {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> Result<(), std::fmt::Error> {
        write!(encoder, "{self}")
    }
}

/// What people are told: the operating system's words for its own errors, the code alone for a server's, because the
/// rest of a server's answer may quote the command.
pub(super) fn describe(error: &RedisError) -> String {
    match (error.code(), error.kind()) {
        (_, ErrorKind::AuthenticationFailed) => "the server refused the credentials".to_owned(),
        (Some("MOVED" | "ASK"), _) => "the server is a node of a cluster; name it as redis+cluster://…".to_owned(),
        (Some("CLUSTERDOWN"), _) => "the cluster is down: the server answered CLUSTERDOWN".to_owned(),
        (Some(code), _) => format!("the server answered {code}"),
        (None, ErrorKind::Io) => error.to_string(),
        (None, ErrorKind::Parse) => "what answers there does not speak the Redis protocol".to_owned(),
        (None, _) => error.category().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_connection_is_told_from_a_refused_one_and_from_a_parse_error() {
        let broken = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(StoreFailure::from(&broken), StoreFailure::Connection);
        let garbled = RedisError::from((ErrorKind::Parse, "no RESP"));
        assert_eq!(StoreFailure::from(&garbled), StoreFailure::Protocol);
        let denied = RedisError::from((ErrorKind::AuthenticationFailed, "Password authentication failed"));
        assert_eq!(StoreFailure::from(&denied), StoreFailure::Auth);
    }

    #[test]
    fn what_a_cluster_answers_is_told_from_what_a_script_does() {
        for (code, failure) in [
            ("-CLUSTERDOWN Hash slot not served\r\n", StoreFailure::Cluster),
            ("-TRYAGAIN Multiple keys request during rehashing of slot\r\n", StoreFailure::Migrating),
            ("-LOADING Redis is loading the dataset in memory\r\n", StoreFailure::Loading),
            ("-MASTERDOWN Link with MASTER is down\r\n", StoreFailure::Loading),
            ("-NOPERM this user has no permissions to run the 'evalsha' command\r\n", StoreFailure::Auth),
        ] {
            assert_eq!(StoreFailure::from(&server_error(code)), failure, "{code}");
        }
    }

    #[test]
    fn a_single_server_that_turns_out_to_be_a_clusters_node_says_what_to_do() {
        assert!(describe(&server_error("-MOVED 3999 127.0.0.1:6381\r\n")).contains("redis+cluster"));
    }

    fn server_error(line: &str) -> RedisError {
        redis::parse_redis_value(line.as_bytes()).unwrap().extract_error().unwrap_err()
    }

    #[test]
    fn a_description_of_refused_credentials_does_not_quote_them() {
        let denied = RedisError::from((ErrorKind::AuthenticationFailed, "failed", "hunter2".to_owned()));
        assert!(!describe(&denied).contains("hunter2"));
    }
}
