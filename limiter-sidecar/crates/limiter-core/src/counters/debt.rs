// SPDX-License-Identifier: Apache-2.0
//! What a record's subject owes now, and how long that takes to drain, also after the limit has changed.
//!
//! A record keeps the numbers that it was charged under until it is charged again, and a refusal charges nothing. So the
//! time since the last charge counts at the faster of the two rates: who is refused profits from a raised rate at once,
//! and keeps what a lowered one has not yet made slower.

use super::whole;

/// How fast tokens come back: L/p of them per µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// p: what a token weighs.
    pub(super) weight: f64,
    /// L: what drains per µs.
    pub(super) drain_per_us: f64,
}

/// What is owed under a rule's rate, at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debt {
    /// In the rule's units; after a lowered limit it may exceed the capacity.
    pub(super) units: f64,
    /// µs until the clock reaches the record's time: nothing drains before.
    behind_us: f64,
    rate: Rate,
    /// The rate that it drains at: the rule's own, or the record's if that is faster.
    drains_at: Rate,
}

impl Rate {
    /// Compared as products of doubles, as the script does.
    fn is_faster_than(self, other: Self) -> bool {
        self.drain_per_us * other.weight > other.drain_per_us * self.weight
    }
}

impl Debt {
    /// Nothing owed.
    pub(super) fn none(rate: Rate) -> Self {
        Self { units: 0.0, behind_us: 0.0, rate, drains_at: rate }
    }

    /// What was owed `debt` at the time `at` under the rate `old`, is owed at `now` under a rule's rate. An older clock
    /// drains nothing.
    pub(super) fn of((at, debt, old): (f64, f64, Rate), rate: Rate, now: f64) -> Self {
        let (elapsed_us, behind_us) = ((now - at).max(0.0), (at - now).max(0.0));
        let mut drains_at = rate;
        let units = if old == rate {
            debt - elapsed_us * rate.drain_per_us
        } else if old.is_faster_than(rate) {
            let left = debt - elapsed_us * old.drain_per_us;
            if left > 0.0 {
                drains_at = old;
            }
            convert(left.max(0.0), old.weight, rate.weight)
        } else {
            convert(debt, old.weight, rate.weight) - elapsed_us * rate.drain_per_us
        };
        Self { units: units.max(0.0), behind_us, rate, drains_at }
    }

    /// The debt after a charge of so many units, from now on at the rule's own rate.
    pub(super) fn charged(self, units: f64) -> Self {
        Self { units: self.units + units, drains_at: self.rate, ..self }
    }

    /// The time that this is the debt of: the later one of now and the record's.
    pub(super) fn at(&self, now: f64) -> f64 {
        now + self.behind_us
    }

    /// µs until `units` of it have drained. At an old rate one more makes up for the rounding of the conversion, so that
    /// this wait is always enough.
    pub(super) fn drains_in_us(&self, units: f64) -> u64 {
        let drain_us = if self.drains_at == self.rate {
            (units / self.rate.drain_per_us).ceil()
        } else {
            (units * self.drains_at.weight / (self.drains_at.drain_per_us * self.rate.weight)).ceil() + 1.0
        };
        whole(self.behind_us + drain_us)
    }
}

/// A debt in other units: whole tokens used stay used, a started one is rounded against the client.
fn convert(debt: f64, old_weight: f64, new_weight: f64) -> f64 {
    let used = (debt / old_weight).floor();
    used * new_weight + ((debt - used * old_weight) * new_weight / old_weight).ceil()
}
