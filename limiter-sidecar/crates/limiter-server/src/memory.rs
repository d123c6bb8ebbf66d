// SPDX-License-Identifier: Apache-2.0
//! Counters in this limiter's own memory: for the rules that are counted in each limiter by itself, and for those of which
//! each limiter grants a share while the store is away. They stay when it comes back, so an outage that comes and goes gives
//! nobody a fresh budget.
//!
//! A lock is enough: it is held for microseconds, and few threads decide. What is counted and who is forgotten is the core's matter.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use limiter_core::{Answer, LocalCall, LocalCounters, Part, Prepared, Reply};

use crate::metrics::Metrics;

/// The counters.
pub(crate) struct Memory {
    counters: Mutex<LocalCounters>,
    metrics: Arc<Metrics>,
}

/// What memory said, and what it takes to give the charge back.
pub(crate) struct Counted {
    pub(crate) call: LocalCall,
    pub(crate) reply: Reply,
}

impl Memory {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { counters: Mutex::default(), metrics }
    }

    /// Counts a request by the rules of this instance, at `now_us`. Nothing when no calendar's windows hold that time.
    pub(crate) fn decide(&self, prepared: &mut Prepared<'_>, now_us: u64) -> Option<Counted> {
        prepared.set_clock(now_us);
        self.count(prepared.local_call(), now_us)
    }

    /// Counts a request by this limiter's shares of what the store did not decide; `beside`: what was decided. Nothing also
    /// when there is no such rule.
    pub(crate) fn stand_in(&self, prepared: &mut Prepared<'_>, beside: &[Part], now_us: u64) -> Option<Counted> {
        prepared.set_clock(now_us);
        let call = prepared.fallback_call(beside);
        if call.charges.is_empty() { None } else { self.count(call, now_us) }
    }

    fn count(&self, call: LocalCall, now_us: u64) -> Option<Counted> {
        let mut counters = self.lock();
        let evicted = counters.evictions();
        let answer = counters.decide(now_us, &call.charges);
        self.metrics.local_evictions.inc_by(counters.evictions() - evicted);
        match answer {
            Answer::Decided(reply) => Some(Counted { call, reply }),
            Answer::Stale { .. } => None,
        }
    }

    /// How many subjects are remembered.
    pub(crate) fn subjects(&self) -> usize {
        self.lock().len()
    }

    /// Gives back what was charged.
    pub(crate) fn refund(&self, counted: &Counted, now_us: u64) {
        let charged = counted.call.charged(&counted.reply);
        self.lock().refund(now_us, counted.reply.now_us, &charged);
    }

    /// The counters are whole whatever happened to a holder of the lock: nothing panics with it held.
    fn lock(&self) -> MutexGuard<'_, LocalCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// As a part of the answer.
    pub(crate) fn part(&self) -> Part {
        self.call.answered(&self.reply)
    }
}
