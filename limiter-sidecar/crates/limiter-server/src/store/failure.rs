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
    /// The server is kept from answering by a script that runs too long.
    #[error("busy")]
    Busy,
    /// Wrong credentials, or a command that the user may not run.
    #[error("auth")]
    Auth,
    /// The script itself failed, or somebody has ended it.
    #[error("script")]
    Script,
    /// A key holds what is none of ours.
    #[error("wrongtype")]
    WrongType,
    /// A cluster in which nobody serves the slot, or that sends the question in circles.
    #[error("cluster")]
    Cluster,
    /// A slot on its way between two nodes, where neither has all keys of the question.
    #[error("migrating")]
    Migrating,
    /// Not asked: most of what was asked lately came to nothing.
    #[error("breaker")]
    Breaker,
    /// What came was no answer of a Redis, or not the answer of this script.
    #[error("protocol")]
    Protocol,
    /// Everything else.
    #[error("other")]
    Other,
}

impl StoreFailure {
    /// Every value.
    pub(crate) const ALL: [Self; 14] = [
        Self::Timeout,
        Self::Connection,
        Self::Breaker,
        Self::Oom,
        Self::ReadOnly,
        Self::Loading,
        Self::Busy,
        Self::Auth,
        Self::Script,
        Self::WrongType,
        Self::Cluster,
        Self::Migrating,
        Self::Protocol,
        Self::Other,
    ];

    /// Whether the link is of no more use: it broke, or leads to a server that is no longer the primary.
    pub(super) fn breaks_link(self) -> bool {
        matches!(self, Self::Connection | Self::Protocol | Self::ReadOnly)
    }

    /// Whether it says something about the server, and not about one slot, one key or one script.
    pub(super) fn counts_against_server(self) -> bool {
        match self {
            Self::Timeout
            | Self::Connection
            | Self::Oom
            | Self::ReadOnly
            | Self::Loading
            | Self::Busy
            | Self::Auth
            | Self::Protocol
            | Self::Other => true,
            Self::Script | Self::WrongType | Self::Cluster | Self::Migrating | Self::Breaker => false,
        }
    }

    /// Whether a server was asked at all.
    pub(crate) fn was_asked(self) -> bool {
        !matches!(self, Self::Connection | Self::Breaker)
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
            (_, "BUSY") => Self::Busy,
            (_, "WRONGTYPE") => Self::WrongType,
            (_, "NOSCRIPT") | (ErrorKind::Server(ServerErrorKind::ResponseError), _) => Self::Script,
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
/// rest of a server's answer may quote the command; and what they can do about it.
pub(super) fn describe(error: &RedisError) -> String {
    match (error.code(), error.kind()) {
        (_, ErrorKind::AuthenticationFailed) => {
            "the server refused the credentials; check user and password of the store's URL".to_owned()
        }
        (Some(code), _) => match remedy(code) {
            Some(remedy) => format!("the server answered {code}: {remedy}"),
            None => format!("the server answered {code}"),
        },
        (None, ErrorKind::Io) => error.to_string(),
        (None, ErrorKind::Parse | ErrorKind::UnexpectedReturnType) => {
            "what answers there does not speak the Redis protocol; check host and port of the store's URL, and whether \
             it asks for TLS (rediss://)"
                .to_owned()
        }
        (None, _) => error.category().to_owned(),
    }
}

/// What an error of a server means for the limiter, and what would end it.
fn remedy(code: &str) -> Option<&'static str> {
    Some(match code {
        "OOM" => "its memory is full; raise maxmemory, or find out what else is kept there",
        "READONLY" => "it is a replica; name the primary, or wait for the failover to end",
        "MISCONF" => "it cannot save to its disk and takes no writes; look at its log and its disk",
        "NOREPLICAS" => "too few replicas follow it, so it takes no writes (min-replicas-to-write)",
        "LOADING" => "it is loading its data after a start; that ends by itself",
        "MASTERDOWN" => "it is a replica that has lost its primary; name the primary, or wait for the failover to end",
        "CLUSTERDOWN" => "the cluster is down; look at CLUSTER INFO, and whether every slot has a primary",
        "MOVED" | "ASK" | "CROSSSLOT" => "it is a node of a cluster; name it as redis+cluster://…",
        "TRYAGAIN" => "a slot is on its way between two nodes; that ends by itself",
        "NOAUTH" => "it asks for a password, and the store's URL has none",
        "WRONGPASS" => "it does not know this user and password; check the store's URL",
        "NOPERM" => "the user may not run a command that the limiter needs; docs/reference/store.md has them all",
        "WRONGTYPE" => "a key of the limiter holds something else; give the limiter a database of its own",
        "BUSY" => "a script runs too long there; SCRIPT KILL ends it",
        "UNKILLABLE" => "a script runs too long there and has written; only SHUTDOWN NOSAVE ends it",
        "NOSCRIPT" => "it forgot the script as soon as it was sent; look for something that runs SCRIPT FLUSH",
        "ERR" => "the script failed, or somebody ended it with SCRIPT KILL; the server's log says more",
        _ => return None,
    })
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
            ("-NOAUTH Authentication required.\r\n", StoreFailure::Auth),
            ("-OOM command not allowed when used memory > 'maxmemory'.\r\n", StoreFailure::Oom),
            ("-READONLY You can't write against a read only replica.\r\n", StoreFailure::ReadOnly),
            ("-MISCONF Redis is configured to save RDB snapshots\r\n", StoreFailure::ReadOnly),
            ("-BUSY Redis is busy running a script.\r\n", StoreFailure::Busy),
            ("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", StoreFailure::WrongType),
            ("-ERR Error running script: Script killed by user with SCRIPT KILL.\r\n", StoreFailure::Script),
        ] {
            let error = server_error(code);
            assert_eq!(StoreFailure::from(&error), failure, "{code}");
            assert!(describe(&error).contains(": "), "{code} says what to do");
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
