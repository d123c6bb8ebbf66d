// SPDX-License-Identifier: Apache-2.0
//! One decision from start to end: decode, prepare, count in memory and in the store, decide, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use limiter_core::{Answer, Delivery, Part, PayloadPlace, Prepared, Reply, StoreCall, Verdict};
use tokio::time::Instant;

use super::grpc::Status;
use super::messages::CheckResponse;
use super::wire::{self, Received};
use crate::evidence::Subject;
use crate::memory::Counted;
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
}

/// How often the store is asked, at most: again when its clock is in another calendar window than was thought.
const ATTEMPTS: usize = 2;

impl Decider {
    pub(crate) fn new(shared: Arc<Shared>, options: &Options) -> Self {
        Self {
            shared,
            payload_place: options.payload_place.clone(),
            store_deadline: options.store_deadline,
            mode_header: options.mode_header,
            sequence: AtomicU64::new(0),
        }
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
        let sent = Instant::now();
        let answer = self.ask_store(prepared, deadline).await;
        if !matches!(answer, Err(StoreFailure::Connection)) {
            self.shared.metrics.store_latency.observe(sent.elapsed().as_secs_f64());
        }
        let verdict = answer.and_then(|part| {
            let parts: Vec<Part> = own.iter().cloned().chain([part]).collect();
            prepared.verdict(&parts).map_err(|_| StoreFailure::Protocol)
        });
        verdict.unwrap_or_else(|failure| {
            self.shared.metrics.count_store_failure(failure);
            prepared.verdict_on_store_failure(own.as_slice())
        })
    }

    async fn ask_store(&self, prepared: &mut Prepared<'_>, deadline: Instant) -> Result<Part, StoreFailure> {
        for _ in 0..ATTEMPTS {
            let calls = prepared.store_calls(self.shared.store.grouping());
            let [call] = <[StoreCall; 1]>::try_from(calls).map_err(|_| StoreFailure::Other)?;
            let reply = self.shared.store.decide(&call, deadline).await?;
            match Reply::decode(&reply, call.checks.len()).map_err(|_| StoreFailure::Protocol)? {
                Answer::Decided(reply) => {
                    self.shared.clock.learn(reply.now_us);
                    return Ok(call.answered(reply));
                }
                Answer::Stale { now_us } => prepared.set_clock(now_us),
            }
        }
        Err(StoreFailure::Protocol)
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
