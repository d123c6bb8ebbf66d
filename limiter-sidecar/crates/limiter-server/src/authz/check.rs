// SPDX-License-Identifier: Apache-2.0
//! One decision from start to end: decode, prepare, ask the store once, decide, count, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use limiter_core::{Delivery, PayloadPlace, Prepared, Reply, Verdict};
use redis::Cmd;
use tokio::time::Instant;

use super::grpc::Status;
use super::messages::CheckResponse;
use super::wire::{self, Received};
use crate::clock::now_ms;
use crate::evidence::Subject;
use crate::options::Options;
use crate::rules::Live;
use crate::shared::Shared;
use crate::store::{Call, StoreFailure, slot_of};

/// Decides requests. One for all connections of the data plane.
pub(crate) struct Decider {
    shared: Arc<Shared>,
    /// For rulesets that say nothing of it.
    payload_place: PayloadPlace,
    store_deadline: Duration,
    mode_header: bool,
    sequence: AtomicU64,
}

impl Call for Prepared<'_> {
    fn slot(&self) -> u16 {
        self.keys().first().map_or(0, |key| slot_of(key.as_bytes()))
    }

    fn write(&self, command: &mut Cmd) {
        command.arg(self.keys().len());
        for key in self.keys() {
            command.arg(key.as_bytes());
        }
        // The store's own clock counts, so that the limiters' clocks need not agree.
        self.ship_arguments(None, |argument| {
            command.arg(argument);
        });
    }
}

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
        let prepared = live.ruleset.prepare(&request, now_ms() / 1000);
        let verdict = if prepared.needs_store() {
            self.ask(&prepared, decoded + self.store_deadline).await
        } else {
            prepared.verdict_without_store()
        };
        self.count(&live, &prepared, &verdict);
        let delivery = Delivery {
            // Read again: the wait that is told counts from the store's answer.
            now_ms: now_ms(),
            instance: &self.shared.instance,
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            mode_header: self.mode_header,
        };
        let answer = wire::answer(prepared.respond(&request, &verdict, &delivery));
        self.shared.metrics.decision.observe(decoded.elapsed().as_secs_f64());
        Ok(answer)
    }

    async fn ask(&self, prepared: &Prepared<'_>, deadline: Instant) -> Verdict {
        let metrics = &self.shared.metrics;
        let sent = Instant::now();
        let answer = self.shared.store.decide(prepared, deadline).await;
        if !matches!(answer, Err(StoreFailure::Connection)) {
            metrics.store_latency.observe(sent.elapsed().as_secs_f64());
        }
        let verdict = answer.and_then(|integers| {
            let reply = Reply::decode(&integers, prepared.check_count());
            reply.and_then(|reply| prepared.verdict(&reply)).map_err(|_| StoreFailure::Protocol)
        });
        verdict.unwrap_or_else(|failure| {
            metrics.count_store_failure(failure);
            prepared.verdict_on_store_failure()
        })
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
