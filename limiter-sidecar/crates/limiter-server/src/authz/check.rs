// SPDX-License-Identifier: Apache-2.0
//! One decision from start to end: decode, prepare, count in memory and in the store, decide, hold, answer.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use limiter_core::{Delivery, Part, PayloadPlace, Prepared, Request, Scope, Verdict, subject_label};
use tokio::time::Instant;

use super::Drain;
use super::answer;
use super::charge::Charge;
use super::fallback;
use super::groups::Groups;
use super::grpc::Status;
use super::hold::Room;
use super::lateness::Lateness;
use super::queue::{Judged, Queue, Waiting};
use super::wire::Received;
use crate::denied::Moment;
use crate::evidence::Subject;
use crate::memory::Counted;
use crate::metrics::RefundReason;
use crate::options::Options;
use crate::pause::punctual;
use crate::rules::Live;
use crate::shared::Shared;
use crate::store::StoreFailure;

/// Decides requests. One for all connections of an event loop.
pub(crate) struct Decider {
    shared: Arc<Shared>,
    /// For rulesets that say nothing of it.
    payload_place: PayloadPlace,
    /// What a timer is asked for, so that nobody waits a millisecond longer than the store has for a decision.
    store_deadline: Duration,
    mode_header: bool,
    /// The same for all event loops, so that no two decisions have one id.
    sequence: Arc<AtomicU64>,
    lateness: Lateness,
    queue: Queue,
}

/// By which rules the store is asked, and until when.
#[derive(Clone, Copy)]
struct Asked {
    deadline: Instant,
    revision: u64,
}

/// A request that is held: its place, and the answer if it cannot leave after all.
struct Held {
    waiting: Waiting,
    refusal: Bytes,
}

impl Decider {
    /// A decider for each event loop, and the work of giving charges back, to be run beside the loop's requests.
    pub(crate) fn each(
        shared: &Arc<Shared>,
        options: &Options,
        drain: Drain,
    ) -> Vec<(Self, impl Future<Output = ()> + use<>)> {
        let (sequence, room) =
            (Arc::new(AtomicU64::new(0)), Room::new(options.max_held, drain, Arc::clone(&shared.metrics)));
        let decider = |store| {
            let (queue, refunds) = Queue::new(shared, store, room.clone());
            let decider = Self {
                shared: Arc::clone(shared),
                payload_place: options.payload_place.clone(),
                store_deadline: punctual(options.store_deadline),
                mode_header: options.mode_header,
                sequence: Arc::clone(&sequence),
                lateness: Lateness::new(options.store_deadline),
                queue,
            };
            (decider, refunds)
        };
        shared.stores.each().map(decider).collect()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.shared.is_ready()
    }

    /// Returns when no charge is left to be given back, or the time for it is over.
    pub(super) async fn settle(&self) {
        self.queue.settle().await;
    }

    /// The framed answer to one `CheckRequest`, whose caller gives up after `patience`. Dropped while it holds the request,
    /// it gives the charge back.
    ///
    /// # Errors
    /// [`Status`] for a message that is none, and while there are no rules: then Envoy's own failure mode decides.
    /// That one is open for every rule, also for those that fail closed, so a limiter is not ready before it has rules.
    pub(super) async fn check(&self, message: Bytes, patience: Option<Duration>) -> Result<Bytes, Status> {
        // Boxed, so that a request that is held keeps nothing of what deciding it took.
        match Box::pin(self.decide(message, patience)).await? {
            (answer, None) => Ok(answer),
            // The same for what waiting takes, which most requests do not.
            (answer, Some(Held { waiting, refusal })) => {
                Ok(Box::pin(Queue::wait(waiting)).await.map_or(refusal, |()| answer))
            }
        }
    }

    /// The answer, and what keeps it back.
    async fn decide(&self, message: Bytes, patience: Option<Duration>) -> Result<(Bytes, Option<Held>), Status> {
        let now_us = self.shared.clock.now_us();
        self.shared.calls.note(now_us);
        let Some(live) = self.shared.book.live_for_request() else {
            return Err(Status::NO_RULES);
        };
        let received = Received::decode(&message, live.ruleset.payload_place().unwrap_or(&self.payload_place))?;
        let decoded = Instant::now();
        let request = received.request();
        let mut prepared = live.ruleset.prepare_under(live.caps.as_ref(), &request, now_us);
        let asked = Asked { deadline: decoded + self.store_deadline, revision: live.ruleset.revision() };
        let judged = self.judge(&mut prepared, asked).await;
        let failure = judged.failure;
        let (verdict, waiting) = self.queue.admit(judged, &prepared, patience.map(|patience| decoded + patience));
        self.count(&live, (&request, &prepared), &verdict, (waiting.is_some(), failure));
        let answered = match waiting {
            None => (self.answer(&prepared, &request, &verdict, 0), None),
            Some(waiting) => {
                let refusal = self.answer(&prepared, &request, &verdict.clone().without_hold(&prepared), 0);
                let leaving = verdict.after_hold(waiting.hold_us);
                let answer = self.answer(&prepared, &request, &leaving, waiting.hold_us);
                (answer, Some(Held { waiting, refusal }))
            }
        };
        self.shared.metrics.decision.observe(decoded.elapsed().as_secs_f64());
        Ok(answered)
    }

    /// The framed answer as it is sent `after_us` from now.
    fn answer(&self, prepared: &Prepared<'_>, request: &Request<'_>, verdict: &Verdict, after_us: u64) -> Bytes {
        let delivery = Delivery {
            // Read again: the wait that is told counts from the store's answer.
            now_ms: self.shared.clock.now_us().saturating_add(after_us) / 1_000,
            instance: &self.shared.instance,
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            mode_header: self.mode_header,
        };
        answer::frame(&prepared.respond(request, verdict, &delivery))
    }

    /// Counts in memory first: that is done at once, and the store need not be asked about what memory refuses. A request
    /// that goes away while the store is asked has its charge in memory given back, as `charge` is dropped.
    async fn judge(&self, prepared: &mut Prepared<'_>, asked: Asked) -> Judged {
        let begun = Instant::now();
        let Shared { clock, memory, .. } = &*self.shared;
        let mut charge = Charge::none(&self.queue.desk);
        if prepared.needs_memory() {
            charge.in_memory.extend(memory.decide(prepared, clock.now_us()));
        }
        let mut failure = None;
        let (verdict, made) = match charge.in_memory.first().map(Counted::part) {
            Some(own) if !own.reply.allowed || !prepared.needs_store() => (prepared.verdict_in_memory(&own), begun),
            own if prepared.needs_store() => self.ask(prepared, own, asked, (&mut charge, &mut failure)).await,
            _ => (prepared.verdict_without_store(), begun),
        };
        if verdict.named.is_some() {
            charge.uncount();
        }
        // Each place holds from the moment when it charged.
        let until = |from: Instant, scope| from + Duration::from_micros(verdict.hold_in_us(prepared, scope));
        let leave = until(begun, Scope::Instance).max(until(made, Scope::Region));
        Judged { verdict, charge, failure, leave }
    }

    /// The verdict with what the store says, beside what memory has let pass, and when it was made. What was charged for a
    /// request that must be held, or by this limiter's own shares, is added to `charge`; why the store said nothing is noted.
    async fn ask(
        &self,
        prepared: &mut Prepared<'_>,
        own: Option<Part>,
        asked: Asked,
        (charge, failure): (&mut Charge, &mut Option<StoreFailure>),
    ) -> (Verdict, Instant) {
        let Shared { metrics, stores, denied, .. } = &*self.shared;
        let store = &self.queue.desk.store;
        let calls = prepared.store_calls(store.grouping());
        let moment = Moment {
            local: Instant::now(),
            store_us: prepared.now_us(),
            links: stores.links(),
            revision: asked.revision,
        };
        if let [call] = calls.as_slice()
            && let Some(part) = denied.find(call, prepared, moment)
        {
            let parts: Vec<Part> = own.into_iter().chain([part]).collect();
            let verdict = prepared.verdict(&parts).unwrap_or_else(|_| prepared.verdict_on_store_failure(&parts, None));
            return (verdict, moment.local);
        }
        let mut groups = Groups::ask(&self.queue.desk, prepared, calls, asked.deadline).await;
        let read = Instant::now();
        if let Some(refusal) = groups.refusal() {
            denied.remember(refusal, prepared, store.is_split(), moment, read);
        }
        let late = groups.times_us().map(|now_us| self.lateness.of(now_us, read)).min().unwrap_or_default();
        if groups.failures.iter().all(|failure| failure.was_asked()) {
            metrics.store_latency.observe((read - moment.local).as_secs_f64());
        }
        let verdict = match groups.verdict(prepared, own) {
            Ok(verdict) => verdict,
            Err(beside) => fallback::verdict(&self.shared, prepared, &beside, charge),
        };
        for failure in &groups.failures {
            metrics.count_store_failure(*failure);
        }
        *failure = groups.failures.first().copied();
        if verdict.named.is_some() {
            groups.give_back(RefundReason::Partial);
        } else if verdict.hold_us(prepared) > 0 {
            charge.in_store = groups.charged();
        } else {
            groups.spend();
        }
        (verdict, read.checked_sub(late).unwrap_or(read))
    }

    fn count(
        &self,
        live: &Live,
        (request, prepared): (&Request<'_>, &Prepared<'_>),
        verdict: &Verdict,
        (held, failure): (bool, Option<StoreFailure>),
    ) {
        let metrics = &*self.shared.metrics;
        metrics.count_request(verdict.decision);
        let holds_us = verdict.holds_us().chain(iter::repeat(0));
        for ((applied, outcome), hold_us) in prepared.rules().iter().zip(&verdict.outcomes).zip(holds_us) {
            let Some(rule) = live.rules.get(applied.rule.ordinal()) else { continue };
            let subject = Subject { metrics, policy: &rule.policy, rule: &rule.name, slot: rule.slot };
            rule.evidence.note_match(prepared.now_us());
            rule.evidence.count((applied.enforces(), *outcome), failure, subject);
            rule.evidence.count_plan(applied.plan, *outcome);
            rule.evidence.note_limited(
                *outcome,
                || prepared.subject(applied),
                |subject| subject_label(applied, subject, request),
            );
            let enforces = applied.enforces();
            if hold_us > 0 && (held || !enforces) {
                rule.evidence.count_hold(enforces, subject);
            }
            if applied.missing_key {
                rule.evidence.count_missing_key();
            }
            if applied.unknown_plan {
                rule.evidence.count_unknown_plan(subject);
            }
        }
    }
}
