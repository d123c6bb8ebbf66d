// SPDX-License-Identifier: Apache-2.0
//! A request's checks in the store: one call, or on a cluster one for each slot, all at once. And what must be given back
//! when only some of them have charged.
//!
//! Each call decides its own checks as a whole. Between the charge of one and the refusal of another, somebody else may be
//! refused too early; nobody passes above a limit.

use futures_util::future::join_all;
use limiter_core::{Answer, BucketKey, Part, Prepared, Reply, ReplyError, StoreCall, Verdict};
use tokio::time::Instant;

use super::charge::Charge;
use crate::shared::Shared;
use crate::store::StoreFailure;

/// What the store said about a request.
#[derive(Default)]
pub(super) struct Groups {
    /// The calls that were decided.
    decided: Vec<(StoreCall, Reply)>,
    /// Why the others were not.
    pub(super) failures: Vec<StoreFailure>,
}

impl Groups {
    /// Asks about every check that is counted in the store; ends at the latest at `deadline`.
    pub(super) async fn ask(shared: &Shared, prepared: &mut Prepared<'_>, deadline: Instant) -> Self {
        let calls = prepared.store_calls(shared.store.grouping());
        let answers = decide_all(shared, &calls, deadline).await;
        let mut groups = Self::default();
        for (call, answer) in calls.into_iter().zip(answers) {
            match answer {
                Ok(Answer::Stale { now_us }) => {
                    prepared.set_clock(now_us);
                    let turned = prepared.store_calls(shared.store.grouping()).into_iter();
                    groups.decide_again(shared, turned.filter(|turned| turned.checks == call.checks), deadline).await;
                }
                Err(StoreFailure::Migrating) => {
                    groups.decide_again(shared, by_key(prepared, &call).into_iter(), deadline).await;
                }
                answer => groups.note(shared, call, answer),
            }
        }
        groups
    }

    /// The verdict with what the store said, beside what memory has let pass. Who refuses refuses, also where another call
    /// failed; a failed call's rules follow their own failure modes.
    ///
    /// # Errors
    /// [`ReplyError`] when a reply contradicts itself.
    pub(super) fn verdict(&self, prepared: &Prepared<'_>, own: Option<Part>) -> Result<Verdict, ReplyError> {
        let decided = self.decided.iter().map(|(call, reply)| call.clone().answered(reply.clone()));
        let parts: Vec<Part> = own.into_iter().chain(decided).collect();
        let verdict = prepared.verdict(&parts)?;
        let settled = self.failures.is_empty() || verdict.named.is_some();
        Ok(if settled { verdict } else { prepared.verdict_on_store_failure(&parts) })
    }

    /// What the decided calls have charged.
    ///
    /// A call that failed may have charged too. Nobody knows when, so that charge stays until it expires: too little passes
    /// then, never too much.
    pub(super) fn charge(&self) -> Charge {
        let charged = self.decided.iter().filter_map(|(call, reply)| Some((call.charged(reply)?, reply.now_us)));
        Charge { in_store: charged.collect(), in_memory: None }
    }

    /// The store's times at which the calls were decided, µs since the epoch.
    pub(super) fn times_us(&self) -> impl Iterator<Item = u64> {
        self.decided.iter().map(|(_, reply)| reply.now_us)
    }

    async fn decide_again(&mut self, shared: &Shared, calls: impl Iterator<Item = StoreCall>, deadline: Instant) {
        let calls: Vec<_> = calls.collect();
        let answers = decide_all(shared, &calls, deadline).await;
        for (call, answer) in calls.into_iter().zip(answers) {
            self.note(shared, call, answer);
        }
    }

    fn note(&mut self, shared: &Shared, call: StoreCall, answer: Result<Answer, StoreFailure>) {
        match answer {
            Ok(Answer::Decided(reply)) => {
                shared.clock.learn(reply.now_us);
                self.decided.push((call, reply));
            }
            // The edges were turned to the store's own time a moment ago.
            Ok(Answer::Stale { .. }) => self.failures.push(StoreFailure::Protocol),
            Err(failure) => self.failures.push(failure),
        }
    }
}

async fn decide_all(shared: &Shared, calls: &[StoreCall], deadline: Instant) -> Vec<Result<Answer, StoreFailure>> {
    match calls {
        [call] => vec![decide(shared, call, deadline).await],
        calls => join_all(calls.iter().map(|call| decide(shared, call, deadline))).await,
    }
}

async fn decide(shared: &Shared, call: &StoreCall, deadline: Instant) -> Result<Answer, StoreFailure> {
    let reply = shared.store.decide(call, deadline).await?;
    Reply::decode(&reply, call.checks.len()).map_err(|_| StoreFailure::Protocol)
}

/// The same checks with a call for each key: while a slot moves, no node has all keys of a call together.
fn by_key(prepared: &Prepared<'_>, call: &StoreCall) -> Vec<StoreCall> {
    let place = |key: &BucketKey| {
        let place = call.keys.iter().position(|known| known == key);
        place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX)
    };
    let mut calls = prepared.store_calls(Some(&place));
    calls.retain(|part| part.checks.iter().all(|check| call.checks.contains(check)));
    calls
}
