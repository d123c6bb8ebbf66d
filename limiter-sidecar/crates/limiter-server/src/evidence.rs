// SPDX-License-Identifier: Apache-2.0
//! What each rule did, counted: the evidence that a policy's owner and the rollout judge by.
//!
//! Counts belong to a version of a rule: one with other numbers, or for other requests, starts at zero; what goes from shadow
//! to enforced, or stays while the ruleset around it changes, keeps its counts. The metrics beside them only ever rise, as Prometheus wants it.

mod limited;
mod plans;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use limiter_core::{Outcome, Slot, Subject as StoreSubject};
use prometheus_client::metrics::counter::Counter;
use serde::Serialize;

use self::limited::{Limited, TopSubject};
use self::plans::{PlanCounts, Plans, Said};
use crate::metrics::{Metrics, OutcomeLabel, RuleSeries};
use crate::store::StoreFailure;

/// One rule's counts and its series.
pub(crate) struct RuleEvidence {
    since_ms: u64,
    /// When the policy last matched a request, µs since the epoch.
    matched_at_us: AtomicU64,
    /// Requests that the rule could refuse, and those that it could not.
    enforced: AtomicU64,
    shadowed: AtomicU64,
    rejected: AtomicU64,
    would_reject: AtomicU64,
    store_failures: AtomicU64,
    local: AtomicU64,
    missing_key: AtomicU64,
    unknown_plan: AtomicU64,
    held: AtomicU64,
    would_hold: AtomicU64,
    plans: Plans,
    /// Made by the first refusal.
    limited: OnceLock<Limited>,
    /// Made when first needed: most rules never see most outcomes.
    series: [OnceLock<Counter>; OutcomeLabel::ALL.len()],
}

/// The counts as the status document shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    since_ms: u64,
    /// Whatever the rule was asked; none before the first.
    last_request_ms: Option<u64>,
    requests: u64,
    /// Of them those that the rule could refuse.
    enforced: u64,
    rejected: u64,
    would_reject: u64,
    store_failures: u64,
    /// Of them those that this limiter's own share has decided.
    local: u64,
    missing_key: u64,
    unknown_plan: u64,
    held: u64,
    would_hold: u64,
    by_plan: BTreeMap<String, PlanCounts>,
    subjects: Subjects,
    top: Vec<TopSubject>,
}

/// How many subjects a rule concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Subjects {
    /// An estimate of those that were or would have been refused.
    limited: u64,
}

/// Who a count is for, and where its series live.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) policy: &'a str,
    pub(crate) rule: &'a str,
    pub(crate) slot: Option<Slot>,
}

impl RuleEvidence {
    /// All zero, from `since_ms` (epoch) on. `plans`: what the rule's limits are called.
    pub(crate) fn new(since_ms: u64, plans: Vec<String>) -> Self {
        Self {
            since_ms,
            matched_at_us: AtomicU64::new(0),
            enforced: AtomicU64::new(0),
            shadowed: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            would_reject: AtomicU64::new(0),
            store_failures: AtomicU64::new(0),
            local: AtomicU64::new(0),
            missing_key: AtomicU64::new(0),
            unknown_plan: AtomicU64::new(0),
            held: AtomicU64::new(0),
            would_hold: AtomicU64::new(0),
            plans: Plans::new(plans),
            limited: OnceLock::new(),
            series: Default::default(),
        }
    }

    /// Counts one request that the rule was asked about, or that needed no question. `failure`: why the store did not decide
    /// it, or not all of it. A request that the rule did not apply to is no evidence: among the requests it would make a rule in
    /// shadow look milder than it is for those whom it meets.
    pub(crate) fn count(
        &self,
        (enforces, outcome): (bool, Outcome),
        failure: Option<StoreFailure>,
        subject: Subject<'_>,
    ) {
        if outcome == Outcome::NotEvaluated {
            return;
        }
        if was_judged(outcome) {
            bump(if enforces { &self.enforced } else { &self.shadowed });
        }
        match said(outcome) {
            Said::Rejected => bump(&self.rejected),
            Said::WouldReject => bump(&self.would_reject),
            Said::Nothing => {}
        }
        if outcome.is_local() {
            bump(&self.local);
        }
        if outcome.is_local() || matches!(outcome, Outcome::StoreFailureOpen | Outcome::StoreFailureClosed) {
            bump(&self.store_failures);
            if let Some(reason) = failure {
                subject.metrics.count_rule_failure(subject.series(), reason);
            }
        }
        if let Some(label) = OutcomeLabel::of(outcome) {
            self.series(label, subject).inc();
        }
    }

    /// Notes that the policy matched a request, whatever became of it.
    pub(crate) fn note_match(&self, now_us: u64) {
        self.matched_at_us.store(now_us, Ordering::Relaxed);
    }

    /// Counts the same request by its plan, a place among the rule's limits.
    pub(crate) fn count_plan(&self, plan: usize, outcome: Outcome) {
        if was_judged(outcome) {
            self.plans.count(plan, said(outcome));
        }
    }

    /// Notes the subject if it was refused, or would have been. `label` says who that is.
    pub(crate) fn note_limited(
        &self,
        outcome: Outcome,
        subject: impl FnOnce() -> Option<StoreSubject>,
        label: impl FnOnce(StoreSubject) -> String,
    ) {
        if said(outcome) != Said::Nothing
            && let Some(subject) = subject()
        {
            self.limited.get_or_init(Limited::new).note(subject.digits(), || label(subject));
        }
    }

    /// Counts that a request lacked the rule's key, beside what the rule did about it: skip, share or deny.
    pub(crate) fn count_missing_key(&self) {
        bump(&self.missing_key);
    }

    /// Counts that a request named a plan that the rule does not list.
    pub(crate) fn count_unknown_plan(&self, subject: Subject<'_>) {
        bump(&self.unknown_plan);
        self.series(OutcomeLabel::UnknownPlan, subject).inc();
    }

    /// Counts that the rule had a request wait, beside that it allowed it; a shadow rule only would have.
    pub(crate) fn count_hold(&self, enforces: bool, subject: Subject<'_>) {
        let (counter, label) =
            if enforces { (&self.held, OutcomeLabel::Held) } else { (&self.would_hold, OutcomeLabel::WouldHold) };
        bump(counter);
        self.series(label, subject).inc();
    }

    /// The counts at this moment.
    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            since_ms: self.since_ms,
            last_request_ms: Some(read(&self.matched_at_us) / 1_000).filter(|at_ms| *at_ms > 0),
            requests: read(&self.enforced) + read(&self.shadowed),
            enforced: read(&self.enforced),
            rejected: read(&self.rejected),
            would_reject: read(&self.would_reject),
            store_failures: read(&self.store_failures),
            local: read(&self.local),
            missing_key: read(&self.missing_key),
            unknown_plan: read(&self.unknown_plan),
            held: read(&self.held),
            would_hold: read(&self.would_hold),
            by_plan: self.plans.counts(),
            subjects: Subjects { limited: self.limited.get().map_or(0, Limited::distinct) },
            top: self.limited.get().map_or_else(Vec::new, Limited::top),
        }
    }

    fn series(&self, label: OutcomeLabel, subject: Subject<'_>) -> &Counter {
        self.series[label as usize].get_or_init(|| subject.metrics.rule_outcome(subject.series(), label))
    }
}

impl<'a> Subject<'a> {
    fn series(&self) -> RuleSeries<'a> {
        RuleSeries { policy: self.policy, rule: self.rule, slot: self.slot }
    }
}

fn said(outcome: Outcome) -> Said {
    match outcome {
        Outcome::Rejected | Outcome::LocalRejected => Said::Rejected,
        Outcome::WouldReject | Outcome::LocalWouldReject => Said::WouldReject,
        Outcome::LocalAllowed
        | Outcome::StoreFailureOpen
        | Outcome::StoreFailureClosed
        | Outcome::Allowed
        | Outcome::SkippedMissingKey
        | Outcome::Exempt
        | Outcome::Blocked
        | Outcome::NotEvaluated => Said::Nothing,
    }
}

/// Whether the rule applied to the request, be it that the store could not be asked.
fn was_judged(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Allowed
        | Outcome::Rejected
        | Outcome::WouldReject
        | Outcome::Blocked
        | Outcome::LocalAllowed
        | Outcome::LocalRejected
        | Outcome::LocalWouldReject
        | Outcome::StoreFailureOpen
        | Outcome::StoreFailureClosed => true,
        Outcome::NotEvaluated | Outcome::Exempt | Outcome::SkippedMissingKey => false,
    }
}

fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Connections;

    #[test]
    fn outcomes_are_counted_and_shown_as_series() {
        let metrics = Metrics::new();
        let subject = Subject { metrics: &metrics, policy: "team/p", rule: "burst", slot: None };
        let evidence = RuleEvidence::new(7, vec![String::new()]);
        evidence.count((true, Outcome::Allowed), None, subject);
        evidence.count((true, Outcome::Rejected), None, subject);
        evidence.count((true, Outcome::StoreFailureOpen), Some(StoreFailure::Oom), subject);
        evidence.count((true, Outcome::LocalRejected), Some(StoreFailure::Oom), subject);
        evidence.count_unknown_plan(subject);
        evidence.count((true, Outcome::SkippedMissingKey), None, subject);
        evidence.count((true, Outcome::Exempt), None, subject);
        evidence.count((true, Outcome::NotEvaluated), None, subject);
        evidence.count((false, Outcome::WouldReject), None, subject);
        evidence.count_missing_key();
        evidence.count_hold(true, subject);
        evidence.count_hold(false, subject);
        let counts = evidence.counts();
        assert_eq!((counts.requests, counts.rejected, counts.unknown_plan), (5, 2, 1));
        assert_eq!((counts.enforced, counts.would_reject), (4, 1));
        assert_eq!((counts.store_failures, counts.local), (2, 1));
        assert_eq!((counts.missing_key, counts.held, counts.would_hold), (1, 1, 1));
        assert_eq!(counts.since_ms, 7);
        let text = metrics.encode(Connections { store_up: false, open_breakers: 0, watch_connected: false });
        assert!(text.contains("outcome=\"rejected\"} 1"), "{text}");
        assert!(text.contains("weir_rule_store_failures_total{policy=\"team/p\",rule=\"burst\",reason=\"oom\"} 2"));
    }

    #[test]
    fn every_label_has_its_own_series() {
        for (index, label) in OutcomeLabel::ALL.into_iter().enumerate() {
            assert_eq!(label as usize, index);
        }
    }
}
