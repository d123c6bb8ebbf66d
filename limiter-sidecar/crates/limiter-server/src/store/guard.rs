// SPDX-License-Identifier: Apache-2.0
//! The breaker of one server as its requests use it: with a clock, counts and a lock.
//!
//! Owns what is counted of the decisions, and that a closed breaker costs a request no lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{Breaker, COOL_DOWN, Tally};
use crate::pause::shortened;

/// A breaker, closed at first.
#[derive(Default)]
pub(super) struct Guard {
    /// Decisions in time.
    decided: AtomicU64,
    /// Decisions that were not in time.
    late: AtomicU64,
    /// Decisions that were not made, late ones included, for a reason that speaks against the server.
    failed: AtomicU64,
    /// Whether the breaker is open.
    tripped: AtomicBool,
    breaker: Mutex<Breaker>,
}

impl Guard {
    /// Whether a request may ask: always while the breaker is closed, and as a probe now and then while it is open.
    pub(super) fn admits(&self) -> bool {
        !self.is_tripped() || self.lock().admits(Instant::now(), shortened(COOL_DOWN))
    }

    /// Whether the breaker is open.
    pub(super) fn is_tripped(&self) -> bool {
        self.tripped.load(Ordering::Relaxed)
    }

    /// Whether a probe has been due for `unasked` and no request came that could have been it.
    pub(super) fn wants_probe(&self, unasked: Duration) -> bool {
        let due = Instant::now().checked_sub(unasked);
        due.is_some_and(|due| self.is_tripped() && self.lock().admits(due, shortened(COOL_DOWN)))
    }

    /// Counts a decision that came in time.
    pub(super) fn decided(&self) {
        self.decided.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the server answers in time. Whether that closed the breaker.
    pub(super) fn answered(&self) -> bool {
        if !self.is_tripped() {
            return false;
        }
        let mut breaker = self.lock();
        self.tripped.store(false, Ordering::Relaxed);
        breaker.succeeded(Instant::now(), self.tally())
    }

    /// Counts a decision that came too late.
    pub(super) fn late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a decision that was not made, which speaks against the server. What opened the breaker, if that did.
    pub(super) fn failed(&self) -> Option<Tally> {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut breaker = self.lock();
        let opened = breaker.failed(Instant::now(), self.tally(), shortened(COOL_DOWN));
        self.tripped.fetch_or(opened.is_some(), Ordering::Relaxed);
        opened
    }

    /// Lets the breaker see how many decisions there were until now.
    pub(super) fn sample(&self) {
        self.lock().sample(Instant::now(), self.tally());
    }

    /// The server is reached anew.
    pub(super) fn renewed(&self) {
        self.lock().renewed(Instant::now());
    }

    /// How many decisions came in time and how many did not, since the start.
    pub(super) fn lateness(&self) -> (u64, u64) {
        (self.decided.load(Ordering::Relaxed), self.late.load(Ordering::Relaxed))
    }

    fn tally(&self) -> Tally {
        Tally { decided: self.decided.load(Ordering::Relaxed), failed: self.failed.load(Ordering::Relaxed) }
    }

    fn lock(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
