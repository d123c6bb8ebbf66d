// SPDX-License-Identifier: Apache-2.0
//! The ruleset document as it arrives: wire types, one to one with the JSON.
//!
//! Owns the shape and the digest. What the members mean, and whether their values make sense, is `compiled`'s matter.

mod canonical;

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

pub use canonical::digest_of;

/// The document's format that this version reads and the operator writes.
pub const FORMAT: u64 = 1;

/// Why a document is refused. The last good one keeps running.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RulesetError {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// Written by a version whose format is not understood.
    #[error("format: expected {FORMAT}, found {0}")]
    Format(String),
    /// The content is not what its digest says.
    #[error("digest: the document says {stated}, its content gives {computed}")]
    Digest {
        /// From the document.
        stated: String,
        /// From its bytes.
        computed: String,
    },
    /// A member with an impossible value, a missing or an unknown member.
    #[error("{path}: {message}")]
    Invalid {
        /// Where, as `policies[0].rules[1].limit.burst`.
        path: String,
        /// What is wrong and what would be right.
        message: String,
    },
}

impl RulesetError {
    pub(crate) fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { path: path.into(), message: message.into() }
    }
}

/// The document.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    /// Always [`FORMAT`].
    pub format: u64,
    /// The gateway whose limiters run it.
    pub gateway: String,
    /// Rises with every write.
    pub revision: u64,
    /// `sha256:` and 64 hex digits over everything but `revision` and itself.
    pub digest: String,
    /// Sorted by id.
    pub policies: Vec<PolicyDoc>,
    /// In order of precedence.
    pub overrides: Vec<OverrideDoc>,
}

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

/// One rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleDoc {
    /// Its identity inside the policy.
    pub name: String,
    /// The effective mode.
    pub mode: Mode,
    /// What tells subjects apart; empty for one counter for all.
    pub key: Vec<KeyDoc>,
    /// What happens to requests without the key.
    pub on_missing_key: OnMissingKey,
    /// The limit of requests without a listed plan.
    pub limit: LimitDoc,
    /// Limits by plan.
    #[serde(default)]
    pub plans: Option<PlansDoc>,
    /// First match counts; none means 1.
    pub cost: Vec<CostDoc>,
    /// What happens while the store does not answer.
    pub on_store_failure: OnStoreFailure,
    /// Whether clients are told about the rule.
    pub visibility: Visibility,
    /// The problem's `code`.
    pub code: String,
}

/// Whether a rule acts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Refuses.
    Enforce,
    /// Counts what it would refuse.
    Shadow,
    /// Costs nothing and does nothing.
    Disabled,
}

impl Mode {
    /// As users write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Shadow => "Shadow",
            Self::Disabled => "Disabled",
        }
    }
}

/// One source of a rule's key.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum KeyDoc {
    /// A header, by lower-case name.
    Header(String),
    /// The client's network.
    #[serde(rename = "clientIP")]
    ClientIp(PrefixesDoc),
}

/// How much of a client's address counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrefixesDoc {
    /// 0 to 32 bits.
    pub ipv4_prefix: u8,
    /// 0 to 128 bits.
    pub ipv6_prefix: u8,
}

/// What happens to a request that lacks a source of the key.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum OnMissingKey {
    /// The rule does not apply.
    Skip,
    /// One counter for all who lack the key.
    Share,
    /// Refused.
    Deny,
}

/// The numbers of a limit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitDoc {
    /// How it counts.
    pub algorithm: Algorithm,
    /// Tokens per period.
    pub requests: u64,
    /// In µs.
    pub period_us: u64,
    /// Tokens of a full bucket.
    pub burst: u64,
}

/// How a limit counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Rate and burst.
    TokenBucket,
}

impl Algorithm {
    /// As users write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenBucket => "TokenBucket",
        }
    }
}

/// Limits by plan.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlansDoc {
    /// What names the plan.
    pub from: PlanSourceDoc,
    /// The limit of each plan.
    pub limits: BTreeMap<String, LimitDoc>,
}

/// Where a request's plan is read from.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum PlanSourceDoc {
    /// A header, by lower-case name.
    Header(String),
}

/// What requests of one route cost.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CostDoc {
    /// Which requests.
    #[serde(rename = "match")]
    pub matches: RouteDoc,
    /// Tokens; 0 is free.
    pub cost: u64,
}

/// What a rule does while the store does not answer.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum OnStoreFailure {
    /// Lets requests pass.
    Open,
    /// Refuses them with 503.
    Closed,
}

/// Whether clients are told about a rule.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// Headers and a full problem body.
    Public,
    /// A generic refusal, nothing else.
    Silent,
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

/// One override.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OverrideDoc {
    /// `namespace/name`.
    pub id: String,
    /// The policy's id.
    pub policy: String,
    /// Names of the policy's rules.
    pub rules: Vec<String>,
    /// Any one of them.
    pub subjects: Vec<Vec<SubjectDoc>>,
    /// What it does.
    pub action: Action,
    /// For [`Action::Set`].
    #[serde(default)]
    pub limit: Option<SetLimitDoc>,
    /// Epoch seconds, inclusive.
    #[serde(default)]
    pub not_before: Option<u64>,
    /// Epoch seconds, exclusive.
    #[serde(default)]
    pub not_after: Option<u64>,
}

/// One source's value in an override's subject.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubjectDoc {
    /// `header:<name>` or `clientIP`.
    pub source: String,
    /// 64 hex digits over the value's bytes.
    pub sha256: String,
}

/// What an override does to its subjects.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Action {
    /// Replaces numbers of the limit.
    Set,
    /// The rule does not apply.
    Exempt,
    /// Refuses.
    Block,
}

/// The numbers that a `Set` override replaces; what is left out stays.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetLimitDoc {
    /// Tokens per period.
    #[serde(default)]
    pub requests: Option<u64>,
    /// In µs.
    #[serde(default)]
    pub period_us: Option<u64>,
    /// Tokens of a full bucket.
    #[serde(default)]
    pub burst: Option<u64>,
}

impl Document {
    /// Reads a document and checks its format, members and digest.
    ///
    /// # Errors
    /// [`RulesetError`] with the path of the member that is wrong.
    pub fn parse(json: &[u8]) -> Result<Self, RulesetError> {
        let value: serde_json::Value = serde_json::from_slice(json).map_err(|error| RulesetError::Syntax(error.to_string()))?;
        match value.get("format") {
            Some(format) if format.as_u64() == Some(FORMAT) => {}
            Some(other) => return Err(RulesetError::Format(other.to_string())),
            None => return Err(RulesetError::Format("none".to_owned())),
        }
        let computed = digest_of(&value)?;
        let document: Self = serde_path_to_error::deserialize(value)
            .map_err(|error| RulesetError::invalid(error.path().to_string(), error.inner().to_string()))?;
        if document.digest != computed {
            return Err(RulesetError::Digest { stated: document.digest, computed });
        }
        Ok(document)
    }
}



