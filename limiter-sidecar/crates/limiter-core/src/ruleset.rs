// SPDX-License-Identifier: Apache-2.0
//! The ruleset document as it arrives: wire types, one to one with the JSON.
//!
//! Owns the shape and the digest. What the members mean, and whether their values make sense, is `compiled`'s matter.

mod canonical;
mod key;
mod limit;
mod mode;
mod overriding;
mod policy;
mod rule;

use serde::Deserialize;
use thiserror::Error;

pub use canonical::digest_of;
pub use key::{JwtDoc, KeyDoc, NothingDoc, PlanSourceDoc, PrefixesDoc};
pub use limit::{Algorithm, CalendarUnit, LimitDoc, SetLimitDoc};
pub use mode::{Mode, Slot, StageDoc, SwitchDoc};
pub use overriding::{Action, OverrideDoc, SubjectDoc};
pub use policy::{Dialect, ExemptDoc, ExemptHeaderDoc, MatchDoc, PolicyDoc, ResponseDoc, RouteDoc};
pub use rule::{CostDoc, OnMissingKey, OnStoreFailure, PlansDoc, RuleDoc, Scope, Visibility};

/// The document's format that the operator writes.
pub const FORMAT: u64 = 2;

/// The oldest format that is read too. It has no member that [`FORMAT`] has not.
pub const OLDEST_FORMAT: u64 = 1;

/// Why a document is refused. The last good one keeps running.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RulesetError {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// Written by a version whose format is not understood.
    #[error(
        "format: this limiter reads {OLDEST_FORMAT} to {FORMAT}, found {0}; limiters are upgraded before the operator"
    )]
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
    /// [`FORMAT`], or an older one down to [`OLDEST_FORMAT`].
    pub format: u64,
    /// The gateway whose limiters run it.
    pub gateway: String,
    /// Rises with every write.
    pub revision: u64,
    /// `sha256:` and 64 hex digits over everything but `revision` and itself.
    pub digest: String,
    /// Where Envoy leaves what it has verified of a token, if not where the limiter looks anyway.
    #[serde(default)]
    pub jwt: Option<JwtDoc>,
    /// How many limiters share a limit that is split while the store is away; there whenever a rule splits its limit.
    #[serde(default)]
    pub limiters: Option<u64>,
    /// Sorted by id.
    pub policies: Vec<PolicyDoc>,
    /// In order of precedence.
    pub overrides: Vec<OverrideDoc>,
}

impl Document {
    /// Reads a document and checks its format, members and digest.
    ///
    /// # Errors
    /// [`RulesetError`] with the path of the member that is wrong.
    pub fn parse(json: &[u8]) -> Result<Self, RulesetError> {
        let value: serde_json::Value =
            serde_json::from_slice(json).map_err(|error| RulesetError::Syntax(error.to_string()))?;
        match value.get("format") {
            Some(format) if format.as_u64().is_some_and(|format| (OLDEST_FORMAT..=FORMAT).contains(&format)) => {}
            Some(other) => return Err(RulesetError::Format(other.to_string())),
            None => return Err(RulesetError::Format("none".to_owned())),
        }
        let computed = digest_of(&value)?;
        let document: Self = serde_path_to_error::deserialize(value)
            .map_err(|error| RulesetError::invalid(error.path().to_string(), error.inner().to_string()))?;
        if document.digest != computed {
            return Err(RulesetError::Digest { stated: document.digest, computed });
        }
        document.check_claim()?;
        Ok(document)
    }
}

impl Document {
    /// A document that claims an old format must be one that a reader of that format takes: it would refuse members that
    /// it does not know, and run on with old rules.
    fn check_claim(&self) -> Result<(), RulesetError> {
        if self.format == FORMAT {
            return Ok(());
        }
        for (policy, doc) in self.policies.iter().enumerate() {
            for (place, rule) in doc.rules.iter().enumerate() {
                if let Some(member) = rule.newest_member() {
                    let message = format!("is of format {FORMAT}, but the document claims {}", self.format);
                    let path = format!("policies[{policy}].rules[{place}].{member}");
                    return Err(RulesetError::invalid(path, message));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
