// SPDX-License-Identifier: Apache-2.0
//! What a ruleset would do with a request, for people: which rules match, which keys they build, which limits hold.
//!
//! Shows no raw value of a key: only the hash that an override may name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::compiled::Ruleset;
use crate::hex;
use crate::matching::NormalPath;
use crate::overrides::digest_of;
use crate::prepare::{RuleUse, Standing};
use crate::request::{CLIENT_IP_HEADER, Request};
use crate::ruleset::{LimitDoc, RulesetError};
use crate::subject::{HashKey, Identity};

/// The request is not of the shape that `explain` reads.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// The ruleset is refused.
    #[error("ruleset: {0}")]
    Ruleset(#[from] RulesetError),
    /// The request is refused.
    #[error("request: {path}: {message}")]
    Request {
        /// Where.
        path: String,
        /// What is wrong.
        message: String,
    },
}

/// What a ruleset holds, after it was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The gateway it is for.
    pub gateway: String,
    /// Its revision.
    pub revision: u64,
    /// Its digest.
    pub digest: String,
    /// How many policies.
    pub policies: usize,
    /// How many rules, disabled ones included.
    pub rules: usize,
    /// How many overrides.
    pub overrides: usize,
}

impl Summary {
    /// One line of JSON.
    pub fn to_json(&self) -> String {
        // Strings and numbers only: serialising them into memory cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A request as people write it. A header's name may be in any case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestDoc {
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    host: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, rename = "clientIP")]
    client_ip: Option<String>,
    #[serde(default)]
    principal: String,
    #[serde(default)]
    claims: serde_json::Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    matched: bool,
    asks_store: bool,
    rules: Vec<RuleExplanation<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleExplanation<'a> {
    policy: &'a str,
    rule: &'a str,
    mode: &'static str,
    outcome: &'static str,
    key: Vec<SourceExplanation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a LimitDoc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    applied_override: Option<&'a str>,
    unknown_plan: bool,
}

#[derive(Serialize)]
struct SourceExplanation {
    source: String,
    /// Absent when the request has no value for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

/// Checks a ruleset document and says what it holds.
///
/// # Errors
/// [`RulesetError`] with the path of what is wrong.
pub fn check(ruleset: &[u8]) -> Result<Summary, RulesetError> {
    let ruleset = Ruleset::parse(ruleset, &HashKey::stand_in())?;
    Ok(Summary {
        gateway: ruleset.gateway().to_owned(),
        revision: ruleset.revision(),
        digest: ruleset.digest().to_owned(),
        policies: ruleset.policies().len(),
        rules: ruleset.rule_count(),
        overrides: ruleset.override_count(),
    })
}

/// Explains a request (`{method, host, path, headers, clientIP, principal, claims}`, JSON) at `now_s`; returns JSON.
///
/// # Errors
/// [`ExplainError`] when the ruleset or the request is refused.
pub fn explain(ruleset: &[u8], request: &[u8], now_s: u64) -> Result<String, ExplainError> {
    let ruleset = Ruleset::parse(ruleset, &HashKey::stand_in())?;
    let mut json = serde_json::Deserializer::from_slice(request);
    let mut doc: RequestDoc = serde_path_to_error::deserialize(&mut json).map_err(|error| ExplainError::Request {
        path: error.path().to_string(),
        message: error.inner().to_string(),
    })?;
    let mut headers: BTreeMap<String, String> =
        doc.headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    headers.extend(doc.client_ip.take().map(|address| (CLIENT_IP_HEADER.to_owned(), address)));
    let request = Request {
        method: &doc.method,
        host: &doc.host,
        path: doc.path.as_bytes(),
        headers: &headers,
        principal: doc.principal.as_bytes(),
        claims: &doc.claims,
    };
    let path = NormalPath::new(request.path);
    let prepared = ruleset.prepare(&request, now_s.saturating_mul(1_000_000));
    let explanation = Explanation {
        matched: prepared.matched(),
        asks_store: prepared.needs_store(),
        rules: prepared.rules().iter().map(|rule| explain_rule(rule, request, &path)).collect(),
    };
    serde_json::to_string(&explanation)
        .map_err(|error| ExplainError::Request { path: String::new(), message: error.to_string() })
}

fn explain_rule<'r>(rule: &RuleUse<'r>, request: Request<'_>, path: &NormalPath) -> RuleExplanation<'r> {
    let identity = Identity::of(request).with_captures(rule.policy.captures(request.method, path));
    let key = rule.rule.key().sources().iter().map(|source| {
        let sha256 = identity.value(source).map(|value| hex::encode(&digest_of(&value)));
        SourceExplanation { source: source.name(), sha256 }
    });
    let (outcome, check) = match rule.standing {
        Standing::Check(check) => ("checked", Some(check)),
        Standing::Exempt => ("exempt", None),
        Standing::SkippedMissingKey => ("skipped: the request lacks the key", None),
        Standing::DeniedMissingKey(_) => ("refused: the request lacks the key", None),
        Standing::Blocked { .. } => ("refused: blocked by an override", None),
    };
    RuleExplanation {
        policy: rule.policy.id(),
        rule: rule.rule.name(),
        mode: rule.mode.as_str(),
        outcome,
        key: key.collect(),
        limit: check.map(|check| check.limit.doc()),
        cost: check.map(|check| check.cost),
        applied_override: rule.applied_override,
        unknown_plan: rule.unknown_plan,
    }
}

#[cfg(test)]
mod tests;
