// SPDX-License-Identifier: Apache-2.0
//! Overrides of the document: other numbers, exemptions and blocks for single subjects.

use serde::Deserialize;

use super::SetLimitDoc;

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
    /// For [`Action::Multiply`], in thousandths.
    #[serde(default)]
    pub factor_milli: Option<u64>,
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
    /// The name of a key's source, as `header:x-api-key`.
    pub source: String,
    /// 64 hex digits over the value's bytes.
    pub sha256: String,
}

/// What an override does to its subjects.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Action {
    /// Replaces numbers of the limit.
    Set,
    /// Multiplies what the limit lets through at once and over time.
    Multiply,
    /// The rule does not apply.
    Exempt,
    /// Refuses.
    Block,
}
