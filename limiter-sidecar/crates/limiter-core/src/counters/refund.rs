// SPDX-License-Identifier: Apache-2.0
//! Giving back what one call charged: never more than would be there had the call not been made.
//!
//! Where what has happened since leaves that open, nothing is given back. A record's time never moves back.

use std::hash::Hash;

use super::debt::Rate;
use super::state::State;
use super::window::around;
use super::{Charge, Counters, exact};
use crate::limit::{Demand, Kind, MAX_EXACT};
use crate::reply::CheckReply;

impl<K: Eq + Hash + Clone> Counters<K> {
    /// Gives back what `charges` took at `charged_at_us` (the reply's time). They must be those that were charged: shadow
    /// rules that did not pass are not among them. Each with the demand that [`Demand::given_back`] makes of its own.
    pub fn refund(&mut self, now_us: u64, charged_at_us: u64, charges: &[Charge<K>]) {
        for charge in charges {
            let Some(records) = self.records.get_mut(&charge.key) else { continue };
            records.change(charge.id, |state| give_back(state, &charge.demand, charged_at_us, now_us));
            if records.is_empty() {
                self.records.remove(&charge.key);
            }
        }
    }
}

impl Demand {
    /// What is asked of a refund, by the reply to the charge: a bucket's second number is then what it owed before.
    pub(crate) fn given_back(mut self, check: &CheckReply) -> Self {
        let [taken, second, _, drain_per_us] = &mut self.numbers;
        if matches!(self.kind, Kind::TokenBucket | Kind::LeakyBucket) {
            *second = owed_before(*taken, *drain_per_us, check.reset_us);
        }
        self
    }
}

/// What a bucket owed before a charge after which it was reset in `reset_us`, or less, because that was rounded up. If the
/// clock was behind, both this and what has drained since count the time until it has caught up.
pub(crate) fn owed_before(taken: u64, drain_per_us: u64, reset_us: u64) -> u64 {
    reset_us.saturating_sub(1).saturating_mul(drain_per_us).saturating_sub(taken).min(MAX_EXACT)
}

/// What is left of a state; nothing when it has nothing to say any more.
fn give_back(state: State, demand: &Demand, charged_at: u64, now: u64) -> Option<State> {
    let [taken, before, period, _] = demand.numbers;
    if state.at_us() < charged_at {
        return Some(state);
    }
    match state {
        State::Debt { at, debt, rate } => {
            let [_, _, weight, drain_per_us] = demand.numbers.map(exact);
            if rate != (Rate { weight, drain_per_us }) {
                return Some(state);
            }
            // What was owed before the charge drains first. What has drained beyond it cannot be given back: perhaps it
            // would have drained without the call, too.
            let drained = (exact(now).max(at) - exact(charged_at)) * drain_per_us;
            let debt = debt - (exact(taken) - (drained - exact(before)).max(0.0)).max(0.0);
            let still_owed = debt - (exact(now) - at).max(0.0) * drain_per_us;
            (still_owed > 0.0).then_some(State::Debt { at, debt, rate })
        }
        State::Window { at, count, end } => {
            let window = match demand.kind {
                Kind::CalendarWindow => around(&demand.edges, charged_at),
                _ => Some((charged_at - charged_at % period, charged_at - charged_at % period + period)),
            };
            let same = window.is_some_and(|(_, charged_end)| charged_end == end);
            let count = if same { count.saturating_sub(taken) } else { count };
            (count > 0).then_some(State::Window { at, count, end })
        }
        State::Sliding { at, mut current, mut previous, period: recorded } => {
            let start = at - at % recorded;
            if recorded == period && charged_at >= start {
                current = current.saturating_sub(taken);
            } else if recorded == period && charged_at + period >= start {
                previous = previous.saturating_sub(taken);
            }
            (current + previous > 0).then_some(State::Sliding { at, current, previous, period: recorded })
        }
        State::Log { at, period, mut times } => {
            let from = times.partition_point(|time| *time < charged_at);
            let equal = times.partition_point(|time| *time <= charged_at) - from;
            let gone = usize::try_from(taken).unwrap_or(usize::MAX).min(equal);
            times.drain(from..from + gone);
            (!times.is_empty()).then_some(State::Log { at, period, times })
        }
    }
}
