// SPDX-License-Identifier: Apache-2.0
//! Rules of the document: limits, plans, costs, failure mode.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{KeyDoc, LimitDoc, PlanSourceDoc, RouteDoc};

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
    /// Where it is counted.
    #[serde(default)]
    pub scope: Scope,
    /// What happens while the store does not answer.
    pub on_store_failure: OnStoreFailure,
    /// With `Local`: what each limiter grants, in thousandths of the limit; without it the limit is split.
    #[serde(default)]
    pub local_factor_milli: Option<u64>,
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

/// Where a rule is counted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In the store, for all limiters together.
    #[default]
    Region,
    /// In each limiter's own memory.
    Instance,
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
    /// Each limiter grants its share of the limit, counted in its own memory.
    Local,
}

/// Whether clients are told about a rule.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// Headers and a full problem body.
    Public,
    /// A generic refusal, nothing else.
    Silent,
}
