// SPDX-License-Identifier: Apache-2.0
//! Rules of the document: limits, plans, costs, failure mode.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{KeyDoc, LimitDoc, Mode, PlanSourceDoc, RouteDoc, Slot, StageDoc, SwitchDoc};

/// One rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleDoc {
    /// Its identity inside the policy.
    pub name: String,
    /// For requests that no stage takes out, before switches.
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
    /// Names the numbers and the requests they hold for, in 12 lower-case hex digits: what evidence is about.
    #[serde(default)]
    pub version: Option<String>,
    /// Which of two entries of one name it is.
    #[serde(default)]
    pub slot: Option<Slot>,
    /// Requests with another mode.
    #[serde(default)]
    pub stage: Option<StageDoc>,
    /// The weakest that is live caps the mode.
    #[serde(default)]
    pub switches: Vec<SwitchDoc>,
}

impl RuleDoc {
    /// A member that only the newest format has.
    pub(super) fn newest_member(&self) -> Option<&'static str> {
        let members = [
            ("version", self.version.is_some()),
            ("slot", self.slot.is_some()),
            ("stage", self.stage.is_some()),
            ("switches", !self.switches.is_empty()),
        ];
        members.into_iter().find(|(_, there)| *there).map(|(name, _)| name)
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
