// SPDX-License-Identifier: Apache-2.0
//! Policies of the document: which requests, which are exempt, what clients are told.

use serde::Deserialize;

use super::RuleDoc;

/// One policy.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyDoc {
    /// `namespace/name`.
    pub id: String,
    /// The generation of the user's object that this was compiled from.
    pub generation: u64,
    /// Which requests it sees.
    #[serde(rename = "match")]
    pub matches: MatchDoc,
    /// Requests that none of its rules counts.
    pub exempt: Vec<ExemptDoc>,
    /// In the user's order.
    pub rules: Vec<RuleDoc>,
    /// What clients are told.
    pub response: ResponseDoc,
}

/// Hosts and routes; an empty list means all.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MatchDoc {
    /// Exact names or `*.` and a suffix.
    pub hosts: Vec<String>,
    /// Any one of them.
    pub routes: Vec<RouteDoc>,
}

/// A path pattern and methods; no methods means every method.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RouteDoc {
    /// `/a/b`, `/a/*` or with `{name}` segments.
    pub path: String,
    /// Upper case.
    pub methods: Vec<String>,
}

/// One exemption.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ExemptDoc {
    /// Client addresses, as CIDR blocks.
    #[serde(rename = "clientIP")]
    ClientIp(Vec<String>),
    /// Header values, hashed.
    Header(ExemptHeaderDoc),
}

/// A header whose listed values are exempt.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExemptHeaderDoc {
    /// Lower case.
    pub name: String,
    /// `sha256:` and 64 hex digits over the value's bytes.
    #[serde(rename = "in")]
    pub values: Vec<String>,
}

/// What clients of a policy are told.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResponseDoc {
    /// The header fields' dialect.
    pub headers: Dialect,
    /// An `https` URL.
    #[serde(default)]
    pub documentation: Option<String>,
}

/// Which rate limit header fields are sent.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The IETF draft's `RateLimit` and `RateLimit-Policy`.
    RateLimit,
    /// `X-RateLimit-*`, reset in seconds.
    XRateLimit,
    /// `X-RateLimit-*`, reset as epoch seconds.
    XRateLimitEpoch,
    /// None.
    None,
}
