// SPDX-License-Identifier: Apache-2.0
//! Token and leaky buckets: a debt that drains.
//!
//! A token bucket needs room for the whole cost. A leaky one needs room for one token and charges the cost, so that those
//! behind a dear request wait for as long as it is worth. What passes there must be held until what was owed has drained.

use super::debt::{Debt, Rate};
use super::state::State;
use super::{exact, whole};
use crate::limit::{Demand, Kind, MAX_EXACT};
use crate::reply::{CheckReply, Wait};

/// A subject's bucket during one call.
pub(super) struct Account {
    now: f64,
    rate: Rate,
    leaks: bool,
    /// cost × p.
    increment: f64,
    /// The room that the request must find.
    need: f64,
    /// No waiting helps.
    never: bool,
    capacity: f64,
    owed: Debt,
    /// µs to hold the request back.
    hold_us: u64,
    passes: bool,
}

impl Account {
    pub(super) fn open(demand: &Demand, state: Option<&State>, now_us: u64) -> Self {
        let [increment, capacity, weight, drain_per_us] = demand.numbers.map(exact);
        let rate = Rate { weight, drain_per_us };
        let now = exact(now_us);
        let owed = match state {
            Some(State::Debt { at, debt, rate: old }) => Debt::of((*at, *debt, *old), rate, now),
            _ => Debt::none(rate),
        };
        let leaks = demand.kind == Kind::LeakyBucket;
        let need = if leaks { increment.min(weight) } else { increment };
        let beyond = if leaks { increment - weight } else { 0.0 };
        // Charged on top of a full queue, the sum would not be exact.
        let never = need > capacity || capacity + beyond > exact(MAX_EXACT);
        // In this order no step leaves the exact integers; debt + need might. What costs nothing always passes.
        let passes = increment == 0.0 || !never && need <= capacity - owed.units;
        Self { now, rate, leaks, increment, need, never, capacity, owed, hold_us: 0, passes }
    }

    pub(super) fn passes(&self) -> bool {
        self.passes
    }

    pub(super) fn charge(&mut self, state: &mut Option<State>) {
        if self.leaks {
            // A clock that went back does not make the wait any longer.
            self.hold_us = whole((self.owed.units / self.rate.drain_per_us).ceil());
        }
        self.owed = self.owed.charged(self.increment);
        *state = Some(State::Debt { at: self.owed.at(self.now), debt: self.owed.units, rate: self.rate });
    }

    pub(super) fn reply(&self) -> CheckReply {
        let free = self.capacity - self.owed.units;
        CheckReply {
            ok: self.passes,
            remaining: whole((free.max(0.0) / self.rate.weight).floor()),
            wait: match self.passes {
                true => Wait::Us(self.hold_us),
                false if self.never => Wait::Never,
                false => Wait::Us(self.owed.drains_in_us(self.need - free)),
            },
            reset_us: self.owed.drains_in_us(self.owed.units),
        }
    }
}
