// SPDX-License-Identifier: Apache-2.0
//! Sliding window log: the time of every unit that was admitted.

use super::state::State;
use crate::limit::Demand;
use crate::reply::{CheckReply, Wait};

/// A subject's log during one call.
pub(super) struct Account {
    now: u64,
    /// The later one of now and the record's time.
    at: u64,
    cost: u64,
    requests: u64,
    period: u64,
    /// How many old times have slid out.
    outside: usize,
    inside: u64,
    newest: u64,
    /// The time that must slide out before a refused request passes.
    awaited: u64,
    passes: bool,
}

impl Account {
    pub(super) fn open(demand: &Demand, state: Option<&State>, now: u64) -> Self {
        let [cost, requests, period, _] = demand.numbers;
        let (charged_at, times) = match state {
            Some(State::Log { at, times, .. }) => (*at, times.as_slice()),
            _ => (0, [].as_slice()),
        };
        let at = now.max(charged_at);
        let outside = times.partition_point(|time| time + period <= at);
        let inside = (times.len() - outside) as u64;
        let passes = cost == 0 || cost <= requests.saturating_sub(inside);
        let excess = inside.saturating_add(cost).saturating_sub(requests);
        let awaited = usize::try_from(excess).ok().and_then(|excess| times.get((outside + excess).checked_sub(1)?));
        Self {
            now,
            at,
            cost,
            requests,
            period,
            outside,
            inside,
            newest: times.last().copied().unwrap_or(0),
            awaited: awaited.copied().unwrap_or(0),
            passes,
        }
    }

    pub(super) fn passes(&self) -> bool {
        self.passes
    }

    pub(super) fn charge(&mut self, state: &mut Option<State>) {
        let mut times = match state.take() {
            Some(State::Log { times, .. }) => times,
            _ => Vec::new(),
        };
        times.drain(..self.outside.min(times.len()));
        // A cost that passes is no more than the log holds.
        times.extend((0..self.cost).map(|_| self.at));
        (self.outside, self.inside, self.newest) = (0, self.inside + self.cost, self.at);
        *state = Some(State::Log { at: self.at, period: self.period, times });
    }

    pub(super) fn reply(&self) -> CheckReply {
        CheckReply {
            ok: self.passes,
            remaining: self.requests.saturating_sub(self.inside),
            wait: match self.passes {
                true => Wait::Us(0),
                false if self.cost > self.requests => Wait::Never,
                false => Wait::Us(self.awaited + self.period - self.now),
            },
            reset_us: if self.inside > 0 { self.newest + self.period - self.now } else { 0 },
        }
    }
}
