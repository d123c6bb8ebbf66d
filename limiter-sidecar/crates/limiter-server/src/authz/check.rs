// SPDX-License-Identifier: Apache-2.0
//! One decision from start to end: decode, prepare, count in memory and in the store, decide, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use limiter_core::{Delivery, Part, PayloadPlace, Prepared, Verdict};
use tokio::time::Instant;

use super::groups::{Charge, Groups};
use super::grpc::Status;
use super::messages::CheckResponse;
use super::refunds::Refunds;
use super::wire::{self, Received};
use crate::evidence::Subject;
use crate::memory::Counted;
use crate::metrics::RefundReason;
use crate::options::Options;
use crate::rules::Live;
use crate::shared::Shared;
use crate::store::StoreFailure;

/// Decides requests. One for all connections of the data plane.
pub(crate) struct Decider {
    shared: Arc<Shared>,
    /// For rulesets that say nothing of it.
    payload_place: PayloadPlace,
    store_deadline: Duration,
    mode_header: bool,
    sequence: AtomicU64,
    refunds: Refunds<Charge>,
}

/// Time that the store has to take a charge back. No request waits for it.
const REFUND_WITHIN: Duration = Duration::from_secs(1);

impl Decider {
    /// A decider, and the work of giving charges back, to be run beside the requests.
    pub(crate) fn new(shared: Arc<Shared>, options: &Options) -> (Self, impl Future<Output = ()> + use<>) {
        let store = Arc::clone(&shared.store);
        let (refunds, work) = Refunds::new(Arc::clone(&shared.metrics), move |charge: Charge| {
            let store = Arc::clone(&store);
            async move {
                let Charge { call, charged_at_us } = charge;
                store.refund(&call, charged_at_us, Instant::now() + REFUND_WITHIN).await.is_ok()
            }
        });
        let decider = Self {
            shared,
            payload_place: options.payload_place.clone(),
            store_deadline: options.store_deadline,
            mode_header: options.mode_header,
            sequence: AtomicU64::new(0),
            refunds,
        };
        (decider, work)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.shared.is_ready()
    }

    /// Answers one `CheckRequest`.
    ///
    /// # Errors
    /// [`Status`] for a message that is none, and while there are no rules: then Envoy's own failure mode decides.
    /// That one is open for every rule, also for those that fail closed, so a limiter is not ready before it has rules.
    pub(super) async fn check(&self, message: Bytes) -> Result<CheckResponse, Status> {
        let Some(live) = self.shared.book.live_for_request() else {
            return Err(Status::NO_RULES);
        };
        let received = Received::decode(message, live.ruleset.payload_place().unwrap_or(&self.payload_place))?;
        let decoded = Instant::now();
        let request = received.request();
        let mut prepared = live.ruleset.prepare(&request, self.shared.clock.now_us());
        let verdict = self.judge(&mut prepared, decoded + self.store_deadline).await;
        self.count(&live, &prepared, &verdict);
        let delivery = Delivery {
            // Read again: the wait that is told counts from the store's answer.
            now_ms: self.shared.clock.now_us() / 1_000,
            instance: &self.shared.instance,
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            mode_header: self.mode_header,
        };
        let answer = wire::answer(prepared.respond(&request, &verdict, &delivery));
        self.shared.metrics.decision.observe(decoded.elapsed().as_secs_f64());
        Ok(answer)
    }

    /// Counts in memory first: that is done at once, and the store need not be asked about what memory refuses.
    async fn judge(&self, prepared: &mut Prepared<'_>, deadline: Instant) -> Verdict {
        let Shared { clock, memory, .. } = &*self.shared;
        let counted = if prepared.needs_memory() { memory.decide(prepared, clock.now_us()) } else { None };
        let verdict = match counted.as_ref().map(Counted::part) {
            Some(own) if !own.reply.allowed || !prepared.needs_store() => prepared.verdict_in_memory(&own),
            own if prepared.needs_store() => self.ask(prepared, own, deadline).await,
            _ => prepared.verdict_without_store(),
        };
        if let Some(counted) = counted.filter(|_| verdict.named.is_some()) {
            memory.refund(&counted, clock.now_us());
        }
        verdict
    }

    /// The verdict with what the store says, beside what memory has let pass.
    async fn ask(&self, prepared: &mut Prepared<'_>, own: Option<Part>, deadline: Instant) -> Verdict {
        let metrics = &self.shared.metrics;
        let sent = Instant::now();
        let groups = Groups::ask(&self.shared, prepared, deadline).await;
        if groups.failures.iter().all(|failure| *failure != StoreFailure::Connection) {
            metrics.store_latency.observe(sent.elapsed().as_secs_f64());
        }
        for failure in &groups.failures {
            metrics.count_store_failure(*failure);
        }
        let verdict = groups.verdict(prepared, own.clone()).unwrap_or_else(|_| {
            metrics.count_store_failure(StoreFailure::Protocol);
            prepared.verdict_on_store_failure(own.as_slice())
        });
        if verdict.named.is_some() {
            for charge in groups.charges() {
                self.refunds.hand_in(charge, RefundReason::Partial);
            }
        }
        verdict
    }

    fn count(&self, live: &Live, prepared: &Prepared<'_>, verdict: &Verdict) {
        let metrics = &*self.shared.metrics;
        metrics.count_request(verdict.decision);
        for (applied, outcome) in prepared.rules().iter().zip(&verdict.outcomes) {
            let Some(rule) = live.rules.get(applied.rule.ordinal()) else { continue };
            let subject = Subject { metrics, policy: &rule.policy, rule: &rule.name };
            rule.evidence.count(*outcome, subject);
            if applied.missing_key {
                rule.evidence.count_missing_key();
            }
            if applied.unknown_plan {
                rule.evidence.count_unknown_plan(subject);
            }
        }
    }
}
