// SPDX-License-Identifier: Apache-2.0
//! Counters in this limiter's own memory, for the rules that are counted in each limiter by itself.
//!
//! A lock is enough: one thread decides. What is counted and who is forgotten is the core's matter.

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
        let call = prepared.local_call();
        let mut counters = self.lock();
        let evicted = counters.evictions();
        let answer = counters.decide(now_us, &call.charges);
        self.metrics.local_evictions.inc_by(counters.evictions() - evicted);
        match answer {
            Answer::Decided(reply) => Some(Counted { call, reply }),
            Answer::Stale { .. } => None,
        }
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
