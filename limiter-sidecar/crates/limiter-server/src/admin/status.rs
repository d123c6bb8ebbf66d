// SPDX-License-Identifier: Apache-2.0
//! The status document: what the operator polls to know which rules run here, and what they did.

use std::collections::BTreeMap;

use limiter_core::{Mode, Slot};
use serde::Serialize;

use crate::denied::DeniedReport;
use crate::evidence::Counts;
use crate::rules::{GlassReport, Refusal, Source, WatchHealth};
use crate::shared::{CallsReport, Shared};
use crate::store::StoreHealth;

/// The document's format. A reader that does not know it must say so instead of guessing.
const FORMAT: u32 = 1;

/// Format 1 of the status document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusDocument<'a> {
    format: u32,
    instance: &'a str,
    version: &'a str,
    gateway: &'a str,
    started_at_ms: u64,
    ready: bool,
    rulesets: BTreeMap<&'a str, RulesetStatus>,
    watch: WatchHealth,
    store: StoreHealth,
    deny_cache: DeniedReport,
    memory: MemoryStatus,
    checks: CallsReport,
    break_glass: GlassReport,
    rules: Vec<RuleStatus>,
}

/// What is counted in this limiter's own memory.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryStatus {
    subjects: usize,
    /// How many were forgotten for want of room.
    evictions: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RulesetStatus {
    /// 0 while every document so far was refused.
    revision: u64,
    digest: String,
    source: Option<Source>,
    applied_at_ms: u64,
    policies: usize,
    overrides: usize,
    rejected: Option<Refusal>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleStatus {
    policy: String,
    rule: String,
    version: Option<String>,
    slot: Option<&'static str>,
    generation: u64,
    /// What holds outside the stage, before switches.
    mode: &'static str,
    /// What holds outside the stage at this moment.
    effective_mode: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

/// The state of this limiter at this moment.
pub(crate) fn document(shared: &Shared) -> StatusDocument<'_> {
    StatusDocument {
        format: FORMAT,
        instance: &shared.instance,
        version: &shared.version,
        gateway: shared.book.gateway(),
        started_at_ms: shared.started_at_ms,
        ready: shared.is_ready(),
        rulesets: rulesets(shared),
        watch: shared.watch.get(),
        store: shared.stores.health(),
        deny_cache: shared.denied.report(),
        memory: MemoryStatus { subjects: shared.memory.subjects(), evictions: shared.metrics.local_evictions.get() },
        checks: shared.calls.report(),
        break_glass: shared.glass.report(),
        rules: rules(shared),
    }
}

fn rulesets(shared: &Shared) -> BTreeMap<&str, RulesetStatus> {
    let rejected = shared.book.refusal();
    let status = match shared.book.live().as_ref() {
        Some(live) => RulesetStatus {
            revision: live.ruleset.revision(),
            digest: live.ruleset.digest().to_owned(),
            source: Some(live.source),
            applied_at_ms: live.applied_at_ms,
            policies: live.ruleset.policies().len(),
            overrides: live.ruleset.override_count(),
            rejected,
        },
        None if rejected.is_some() => RulesetStatus {
            revision: 0,
            digest: String::new(),
            source: None,
            applied_at_ms: 0,
            policies: 0,
            overrides: 0,
            rejected,
        },
        None => return BTreeMap::new(),
    };
    BTreeMap::from([(shared.book.name(), status)])
}

fn rules(shared: &Shared) -> Vec<RuleStatus> {
    let live = shared.book.live();
    let Some(live) = live.as_ref() else { return Vec::new() };
    let now_s = shared.clock.now_us() / 1_000_000;
    let judged = live.ruleset.rules().zip(&*live.rules);
    judged
        .map(|((_, rule), live_rule)| {
            let cap = live.caps.as_ref().map_or(Mode::Enforce, |caps| caps.of(rule));
            RuleStatus {
                policy: live_rule.policy.clone(),
                rule: live_rule.name.clone(),
                version: rule.version().map(str::to_owned),
                slot: rule.slot().map(Slot::as_str),
                generation: live_rule.generation,
                mode: rule.mode().as_str(),
                effective_mode: rule.mode_at(now_s).min(cap).as_str(),
                counts: live_rule.evidence.counts(),
            }
        })
        .collect()
}
