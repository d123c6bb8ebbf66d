// SPDX-License-Identifier: Apache-2.0
//! What the programs are told.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// Where to listen or connect: `{"unix": path}` or `{"tcp": "127.0.0.1:port"}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Address {
    Unix(PathBuf),
    Tcp(String),
}

/// `echo`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Echo {
    pub(crate) listen: Address,
}

/// `load`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Load {
    pub(crate) address: Address,
    pub(crate) connections: usize,
    pub(crate) pace: Pace,
    /// Driven and not measured.
    pub(crate) warmup_s: f64,
    pub(crate) seconds: f64,
    pub(crate) target: Target,
}

impl Load {
    pub(crate) fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_s)
    }

    pub(crate) fn measured(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// How calls follow each other.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Pace {
    /// So many calls are always under way on each connection: the server is never idle.
    Closed { in_flight: usize },
    /// Calls begin on a schedule whatever became of the others, and their latency counts from the scheduled time: a
    /// server that stalls pays for every call that it kept waiting.
    Open { per_s: f64 },
    /// So many calls in all, of which so many are under way on each connection; no clock ends them. For counting
    /// instructions, where time means nothing.
    Counted { in_flight: usize, calls: usize },
}

/// What is called.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Target {
    /// `envoy.service.auth.v3.Authorization/Check`, these requests in turn.
    Grpc { requests: Vec<CheckedRequest> },
    /// These requests themselves, in turn, over HTTP/2: to an Envoy, which answers 2xx or 429.
    Http { requests: Vec<CheckedRequest> },
    /// Commands of a store, each a list of arguments in hexadecimal, in turn. The answer must be an array of integers.
    Script { commands: Vec<Vec<String>> },
}

/// The HTTP request that a `Check` asks about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckedRequest {
    pub(crate) method: String,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Whether it is reported apart too, beside the report over all.
    #[serde(default)]
    pub(crate) apart: bool,
}
