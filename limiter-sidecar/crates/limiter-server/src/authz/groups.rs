// SPDX-License-Identifier: Apache-2.0
//! A request's checks in the store: one call, or on a cluster one for each slot, all at once. And what must be given back
//! when only some of them have charged.
//!
//! Each call decides its own checks as a whole. Between the charge of one and the refusal of another, somebody else may be
//! refused too early; nobody passes above a limit.
//!
//! A request may go away while the store is asked. Several calls are then asked to the end all the same, by a task of their
//! own, and what they charged is given back: else a client over its own limit could spend everybody's by going away each
//! time. One call alone charges all of its rules or none, so nobody spends with it what he may not spend; its charge stays,
//! which costs only him, and saves every request a task.

use std::mem::take;
use std::sync::Arc;

use futures_util::future::join_all;
use limiter_core::{Answer, BucketKey, Part, Prepared, Reply, StoreCall, Verdict};
use tokio::time::Instant;

use super::charge::{Charge, Desk, InStore};
use crate::metrics::RefundReason;
use crate::store::{Store, StoreFailure};

/// What the store said about a request. Dropped before it was spent or taken over, it gives back what was charged.
pub(super) struct Groups {
    /// The calls that were decided.
    decided: Vec<(StoreCall, Reply)>,
    /// Those that may be asked again.
    undecided: Vec<(StoreCall, Undecided)>,
    /// Why the others were not decided.
    pub(super) failures: Vec<StoreFailure>,
    desk: Arc<Desk>,
}

/// Why a call was not decided.
#[derive(Clone, Copy)]
enum Undecided {
    /// The edges of its calendars do not enclose the store's time.
    Stale {
        now_us: u64,
    },
    Failed(StoreFailure),
}

impl Groups {
    /// Asks about every check that is counted in the store, which are these calls; ends at the latest at `deadline`.
    pub(super) async fn ask(
        desk: &Arc<Desk>,
        prepared: &mut Prepared<'_>,
        calls: Vec<StoreCall>,
        deadline: Instant,
    ) -> Self {
        let store = &desk.store;
        let alone = calls.len() == 1;
        let mut groups = Self::decide(desk, calls, alone, deadline).await;
        for (call, why) in take(&mut groups.undecided) {
            let again: Vec<_> = match why {
                Undecided::Stale { now_us } => {
                    prepared.set_clock(now_us);
                    let turned = prepared.store_calls(store.grouping()).into_iter();
                    turned.filter(|turned| turned.checks == call.checks).collect()
                }
                Undecided::Failed(StoreFailure::Migrating) => by_key(prepared, &call),
                Undecided::Failed(failure) => {
                    groups.failures.push(failure);
                    continue;
                }
            };
            let alone = alone && again.len() == 1;
            groups.take_over(Self::decide(desk, again, alone, deadline).await);
        }
        groups
    }

    /// The verdict with what the store said, beside what memory has let pass. Who refuses refuses, also where another call
    /// failed.
    ///
    /// # Errors
    /// What was let pass, when a call has failed, or a reply contradicts itself: then the failure modes decide.
    pub(super) fn verdict(&mut self, prepared: &Prepared<'_>, own: Option<Part>) -> Result<Verdict, Vec<Part>> {
        let decided = self.decided.iter().map(|(call, reply)| call.answered(reply));
        let parts: Vec<Part> = own.iter().cloned().chain(decided).collect();
        match prepared.verdict(&parts) {
            Ok(verdict) if self.failures.is_empty() || verdict.named.is_some() => Ok(verdict),
            Ok(_) => Err(parts),
            Err(_) => {
                self.failures.push(StoreFailure::Protocol);
                Err(own.into_iter().collect())
            }
        }
    }

    /// The store's times at which the calls were decided, µs since the epoch.
    pub(super) fn times_us(&self) -> impl Iterator<Item = u64> {
        self.decided.iter().map(|(_, reply)| reply.now_us)
    }

    /// The refusal of a request that took one call.
    pub(super) fn refusal(&self) -> Option<(&StoreCall, &Reply)> {
        let [(call, reply)] = self.decided.as_slice() else { return None };
        (!reply.allowed && self.failures.is_empty()).then_some((call, reply))
    }

    /// The request passes.
    pub(super) fn spend(mut self) {
        self.decided.clear();
    }

    /// What the decided calls have charged: for the caller to spend or to give back.
    ///
    /// A call that failed may have charged too. Nobody knows when, so that charge stays until it expires: too little passes
    /// then, never too much.
    pub(super) fn charged(mut self) -> InStore {
        self.take_charged()
    }

    /// Gives back what the decided calls have charged.
    pub(super) fn give_back(mut self, reason: RefundReason) {
        self.hand_in(reason);
    }

    /// One round of calls. `alone`: it is the only call of its request, which nothing of it outlives.
    async fn decide(desk: &Arc<Desk>, calls: Vec<StoreCall>, alone: bool, deadline: Instant) -> Self {
        if alone {
            return Self::round(Arc::clone(desk), calls, deadline).await;
        }
        let round = tokio::spawn(Self::round(Arc::clone(desk), calls, deadline));
        // It fails only with the event loop itself.
        round.await.unwrap_or_else(|_| {
            let mut lost = Self::none(Arc::clone(desk));
            lost.failures.push(StoreFailure::Other);
            lost
        })
    }

    async fn round(desk: Arc<Desk>, calls: Vec<StoreCall>, deadline: Instant) -> Self {
        let (shared, store) = (Arc::clone(&desk.shared), Arc::clone(&desk.store));
        let mut groups = Self::none(desk);
        let answers = match calls.as_slice() {
            [call] => vec![decide(&store, call, deadline).await],
            calls => join_all(calls.iter().map(|call| decide(&store, call, deadline))).await,
        };
        for (call, answer) in calls.into_iter().zip(answers) {
            match answer {
                Ok(Answer::Decided(reply)) => {
                    shared.clock.learn(reply.now_us);
                    groups.decided.push((call, reply));
                }
                Ok(Answer::Stale { now_us }) => groups.undecided.push((call, Undecided::Stale { now_us })),
                Err(failure) => groups.undecided.push((call, Undecided::Failed(failure))),
            }
        }
        groups
    }

    fn none(desk: Arc<Desk>) -> Self {
        Self { decided: Vec::new(), undecided: Vec::new(), failures: Vec::new(), desk }
    }

    /// Adds a second round, after which nothing is asked again.
    fn take_over(&mut self, mut second: Self) {
        self.decided.append(&mut second.decided);
        self.failures.append(&mut second.failures);
        self.failures.extend(take(&mut second.undecided).into_iter().map(|(_, why)| match why {
            // The edges were turned to the store's own time a moment ago.
            Undecided::Stale { .. } => StoreFailure::Protocol,
            Undecided::Failed(failure) => failure,
        }));
    }

    fn take_charged(&mut self) -> InStore {
        let decided = take(&mut self.decided);
        decided.iter().filter_map(|(call, reply)| Some((call.charged(reply)?, reply.now_us))).collect()
    }

    fn hand_in(&mut self, reason: RefundReason) {
        let mut charge = Charge::none(&self.desk);
        charge.in_store = self.take_charged();
        charge.give_back(reason);
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if !self.decided.is_empty() {
            self.hand_in(RefundReason::ClientGone);
        }
    }
}

async fn decide(store: &Store, call: &StoreCall, deadline: Instant) -> Result<Answer, StoreFailure> {
    let reply = store.decide(call, deadline).await?;
    Reply::decode(&reply, call.checks.len()).map_err(|_| StoreFailure::Protocol)
}

/// The same checks with a call for each key: while a slot moves, no node has all keys of a call together. Made from the
/// request and not out of the call, whose calendar edges may have been turned since by another call's answer.
fn by_key(prepared: &Prepared<'_>, call: &StoreCall) -> Vec<StoreCall> {
    let place = |key: &BucketKey| {
        let place = call.keys.iter().position(|known| known == key);
        place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX)
    };
    let mut calls = prepared.store_calls(Some(&place));
    calls.retain(|part| part.checks.iter().all(|check| call.checks.contains(check)));
    calls
}
