// SPDX-License-Identifier: Apache-2.0
//! Every metric of the sidecar, in one table. Label values come from closed sets and from names of policies and rules;
//! nothing that a client wrote can become one.

mod labels;

use std::sync::atomic::AtomicU64;

use limiter_core::Decision;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::labels::{
    DecisionLabel, DecisionLabels, FailureLabels, PreflightLabels, RefundLabels, RuleFailureLabels, RuleLabels,
    SlotLabel,
};
use crate::store::{Finding, StoreFailure};

pub(crate) use self::labels::{OutcomeLabel, RefundOutcome, RefundReason, RuleSeries};

/// Bounds in seconds of how long requests are held: from one tick of the timers to what a patient client bears.
const HOLD_BOUNDS_S: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Bounds in seconds. Dense around 1 ms, where a healthy store answers, and at 5 ms, the deadline, and
/// at 6 ms, within which a request is promised its decision.
const LATENCY_BOUNDS_S: [f64; 13] =
    [0.000_1, 0.000_2, 0.000_3, 0.000_5, 0.000_75, 0.001, 0.001_5, 0.002, 0.003, 0.005, 0.006, 0.007_5, 0.025];

/// What is connected at the moment of a scrape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connections {
    pub(crate) store_up: bool,
    pub(crate) open_breakers: usize,
    pub(crate) watch_connected: bool,
}

/// The sidecar's metrics.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<DecisionLabels, Counter>,
    /// Each series of `requests`, by its label: no request looks for its own.
    requests_by_decision: [Counter; DecisionLabel::ALL.len()],
    rule_decisions: Family<RuleLabels, Counter>,
    store_failures: Family<FailureLabels, Counter>,
    rule_store_failures: Family<RuleFailureLabels, Counter>,
    store_up: Gauge,
    store_breakers_open: Gauge,
    store_preflight_ok: Family<PreflightLabels, Gauge>,
    /// Seconds that the store took for a decision, from sending to answer.
    pub(crate) store_latency: Histogram,
    /// Seconds from the decoded request to the answer.
    pub(crate) decision: Histogram,
    /// Requests that are held at this moment.
    pub(crate) held_requests: Gauge,
    /// Seconds that requests were held which then left.
    pub(crate) hold: Histogram,
    refunds: Family<RefundLabels, Counter>,
    /// Subjects that this limiter's own memory had no room for.
    pub(crate) local_evictions: Counter,
    /// Requests that were refused by what the store had said before.
    pub(crate) denied_hits: Counter,
    /// Refusals forgotten before their time for want of room.
    pub(crate) denied_evictions: Counter,
    /// Refusals that are remembered, as of the latest one.
    pub(crate) denied_entries: Gauge,
    pub(crate) ruleset_revision: Gauge<u64, AtomicU64>,
    pub(crate) ruleset_applied: Counter,
    pub(crate) ruleset_rejected: Counter,
    watch_connected: Gauge,
    /// What the break-glass map names.
    pub(crate) break_glass_entries: Gauge,
    pub(crate) break_glass_unreadable: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let requests = Family::<DecisionLabels, Counter>::default();
        let mut metrics = Self {
            registry: Registry::default(),
            requests_by_decision: DecisionLabel::ALL
                .map(|decision| requests.get_or_create_owned(&DecisionLabels { decision })),
            requests,
            rule_decisions: Family::default(),
            store_failures: Family::default(),
            rule_store_failures: Family::default(),
            store_up: Gauge::default(),
            store_breakers_open: Gauge::default(),
            store_preflight_ok: Family::default(),
            store_latency: Histogram::new(LATENCY_BOUNDS_S),
            decision: Histogram::new(LATENCY_BOUNDS_S),
            held_requests: Gauge::default(),
            hold: Histogram::new(HOLD_BOUNDS_S),
            refunds: Family::default(),
            local_evictions: Counter::default(),
            denied_hits: Counter::default(),
            denied_evictions: Counter::default(),
            denied_entries: Gauge::default(),
            ruleset_revision: Gauge::default(),
            ruleset_applied: Counter::default(),
            ruleset_rejected: Counter::default(),
            watch_connected: Gauge::default(),
            break_glass_entries: Gauge::default(),
            break_glass_unreadable: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    /// The table: name, help, metric. Counters get their `_total` from the encoder.
    fn register(&mut self) {
        let table = &mut self.registry;
        table.register("weir_requests", "Requests by what happened to them", self.requests.clone());
        table.register("weir_rule_decisions", "Outcomes of each rule", self.rule_decisions.clone());
        table.register("weir_store_latency_seconds", "Time of one decision in the store", self.store_latency.clone());
        table.register("weir_store_failures", "Decisions that the store did not give", self.store_failures.clone());
        table.register("weir_rule_store_failures", "The same for each rule", self.rule_store_failures.clone());
        table.register("weir_store_up", "Whether the store decides", self.store_up.clone());
        table.register("weir_store_breakers_open", "Servers not waited for", self.store_breakers_open.clone());
        table.register("weir_store_preflight_ok", "Store's preflight, by check", self.store_preflight_ok.clone());
        table.register("weir_ruleset_revision", "Revision of the rules in force", self.ruleset_revision.clone());
        table.register("weir_ruleset_applied", "Rulesets that came into force", self.ruleset_applied.clone());
        table.register("weir_ruleset_rejected", "Rulesets that were refused", self.ruleset_rejected.clone());
        table.register("weir_watch_connected", "Whether the watch on the rules stands", self.watch_connected.clone());
        table.register("weir_break_glass_entries", "What is switched off by hand", self.break_glass_entries.clone());
        table.register("weir_break_glass_unreadable", "Map is refused", self.break_glass_unreadable.clone());
        table.register("weir_held_requests", "Requests that are held now", self.held_requests.clone());
        table.register("weir_hold_seconds", "Time that requests were held before they left", self.hold.clone());
        table.register("weir_refunds", "Charges to be given back, by why and how that ended", self.refunds.clone());
        table.register("weir_local_evictions", "Subjects forgotten for want of room", self.local_evictions.clone());
        table.register("weir_deny_cache_hits", "Requests refused without asking again", self.denied_hits.clone());
        table.register("weir_deny_cache_entries", "Refusals that are remembered", self.denied_entries.clone());
        table.register("weir_deny_cache_evictions", "Refusals that had to make room", self.denied_evictions.clone());
        table.register("weir_decision_seconds", "Time from decoded request to answer", self.decision.clone());
    }

    /// Counts a request.
    pub(crate) fn count_request(&self, decision: Decision) {
        self.requests_by_decision[DecisionLabel::of(decision) as usize].inc();
    }

    /// Counts a decision that the store did not give.
    pub(crate) fn count_store_failure(&self, reason: StoreFailure) {
        self.store_failures.get_or_create(&FailureLabels { reason }).inc();
    }

    /// Counts a decision on a rule that the store did not give.
    pub(crate) fn count_rule_failure(&self, rule: RuleSeries<'_>, reason: StoreFailure) {
        self.rule_store_failures.get_or_create(&failure_labels(rule, reason)).inc();
    }

    /// Counts a charge that was to be given back.
    pub(crate) fn count_refund(&self, reason: RefundReason, outcome: RefundOutcome) {
        self.refunds.get_or_create(&RefundLabels { reason, outcome }).inc();
    }

    /// Notes what the preflight found about the store.
    pub(crate) fn note_preflight(&self, findings: &[Finding]) {
        for finding in findings {
            let labels = PreflightLabels { check: finding.check.as_str() };
            self.store_preflight_ok.get_or_create(&labels).set(i64::from(finding.ok));
        }
    }

    /// The counter of one outcome of one rule, to be kept by whoever counts.
    pub(crate) fn rule_outcome(&self, rule: RuleSeries<'_>, outcome: OutcomeLabel) -> Counter {
        self.rule_decisions.get_or_create_owned(&rule_labels(rule, outcome))
    }

    /// Ends the series of a rule that no longer exists, so that their number follows the rules.
    pub(crate) fn forget_rule(&self, rule: RuleSeries<'_>) {
        for outcome in OutcomeLabel::ALL {
            self.rule_decisions.remove(&rule_labels(rule, outcome));
        }
        for reason in StoreFailure::ALL {
            self.rule_store_failures.remove(&failure_labels(rule, reason));
        }
    }

    /// All metrics as `OpenMetrics` text.
    pub(crate) fn encode(&self, now: Connections) -> String {
        self.store_up.set(i64::from(now.store_up));
        self.store_breakers_open.set(i64::try_from(now.open_breakers).unwrap_or(i64::MAX));
        self.watch_connected.set(i64::from(now.watch_connected));
        let mut body = String::new();
        if text::encode(&mut body, &self.registry).is_err() {
            // Writing to a String cannot fail; a truncated exposition would be refused by the scraper anyway.
            body.clear();
        }
        body
    }
}

fn rule_labels(rule: RuleSeries<'_>, outcome: OutcomeLabel) -> RuleLabels {
    RuleLabels { policy: rule.policy.to_owned(), rule: rule.rule.to_owned(), slot: SlotLabel(rule.slot), outcome }
}

fn failure_labels(rule: RuleSeries<'_>, reason: StoreFailure) -> RuleFailureLabels {
    RuleFailureLabels { policy: rule.policy.to_owned(), rule: rule.rule.to_owned(), slot: SlotLabel(rule.slot), reason }
}

#[cfg(test)]
mod tests {
    use limiter_core::Slot;

    use super::*;

    const BURST: RuleSeries<'_> = RuleSeries { policy: "team/p", rule: "burst", slot: None };

    #[test]
    fn the_text_has_counters_with_their_labels_and_ends_as_open_metrics_asks() {
        let metrics = Metrics::new();
        metrics.count_request(Decision::Refused);
        metrics.count_store_failure(StoreFailure::Oom);
        metrics.rule_outcome(BURST, OutcomeLabel::WouldReject).inc();
        metrics.rule_outcome(RuleSeries { slot: Some(Slot::B), ..BURST }, OutcomeLabel::Allowed).inc();
        let text = metrics.encode(Connections { store_up: true, open_breakers: 2, watch_connected: false });
        for line in [
            "weir_requests_total{decision=\"refused\"} 1",
            "weir_store_failures_total{reason=\"oom\"} 1",
            "weir_rule_decisions_total{policy=\"team/p\",rule=\"burst\",outcome=\"would_reject\"} 1",
            "weir_rule_decisions_total{policy=\"team/p\",rule=\"burst\",slot=\"b\",outcome=\"allowed\"} 1",
            "weir_store_up 1",
            "weir_store_breakers_open 2",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn every_decision_has_its_own_series_from_the_start() {
        let text = Metrics::new().encode(Connections { store_up: true, open_breakers: 0, watch_connected: false });
        for (index, label) in DecisionLabel::ALL.into_iter().enumerate() {
            assert_eq!(label as usize, index);
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("weir_requests_total{")).count(), 7, "{text}");
    }

    #[test]
    fn a_forgotten_rule_has_no_series() {
        let metrics = Metrics::new();
        metrics.rule_outcome(BURST, OutcomeLabel::Allowed).inc();
        metrics.count_rule_failure(BURST, StoreFailure::Breaker);
        metrics.forget_rule(BURST);
        assert!(
            !metrics
                .encode(Connections { store_up: false, open_breakers: 0, watch_connected: false })
                .contains("burst")
        );
    }
}
