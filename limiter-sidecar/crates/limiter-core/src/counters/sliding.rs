// SPDX-License-Identifier: Apache-2.0
//! Sliding window counter: the present window's count and the share of the one before that has not yet slid out.
//!
//! The share is rounded up. Products of a count and a period are exact: the limit's own checks see to its requests, and a
//! count that was taken over from another period is cut to what is.

use super::state::State;
use crate::limit::{Demand, MAX_EXACT};
use crate::reply::{CheckReply, Wait};

/// A subject's two windows during one call.
pub(super) struct Account {
    now: u64,
    /// The later one of now and the record's time.
    at: u64,
    /// The start of its window.
    start: u64,
    cost: u64,
    requests: u64,
    period: u64,
    current: u64,
    previous: u64,
    passes: bool,
}

impl Account {
    pub(super) fn open(demand: &Demand, state: Option<&State>, now: u64) -> Self {
        let [cost, requests, period, _] = demand.numbers;
        let (charged_at, current, previous) = counts(state, period);
        let at = now.max(charged_at);
        let start = at - at % period;
        let (current, previous) = if charged_at >= start {
            (current, previous)
        } else if charged_at + period >= start {
            (0, current)
        } else {
            (0, 0)
        };
        let mut account = Self { now, at, start, cost, requests, period, current, previous, passes: true };
        account.passes = cost == 0 || cost <= requests.saturating_sub(account.used());
        account
    }

    pub(super) fn passes(&self) -> bool {
        self.passes
    }

    pub(super) fn charge(&mut self, state: &mut Option<State>) {
        self.current += self.cost;
        let Self { at, current, previous, period, .. } = *self;
        *state = Some(State::Sliding { at, current, previous, period });
    }

    pub(super) fn reply(&self) -> CheckReply {
        let next = self.start + self.period - self.now;
        CheckReply {
            ok: self.passes,
            remaining: self.requests.saturating_sub(self.used()),
            wait: match self.passes {
                true => Wait::Us(0),
                false if self.cost > self.requests => Wait::Never,
                false => Wait::Us(self.wait_us(next)),
            },
            reset_us: match (self.current, self.previous) {
                (0, 0) => 0,
                (0, _) => next,
                _ => next + self.period,
            },
        }
    }

    fn used(&self) -> u64 {
        self.current + share(self.previous, self.period, self.at - self.start)
    }

    /// Until so much has slid out of the window before that the cost fits, or, where the present window alone is too
    /// full, out of that one after it has become the one before. `next`: µs until then.
    fn wait_us(&self, next: u64) -> u64 {
        let free = self.requests - self.cost;
        if self.current <= free {
            // It was refused, so there is a window before.
            let gone = (free - self.current) * self.period / self.previous.max(1);
            return self.start + (self.period - gone) - self.now;
        }
        next + self.period.saturating_sub(free * self.period / self.current)
    }
}

/// When a record was charged, and its two counts for windows of `period`. Those of another period are taken over as what
/// was in use then.
fn counts(state: Option<&State>, period: u64) -> (u64, u64, u64) {
    match state {
        Some(State::Sliding { at, current, previous, period: old }) if *old == period => (*at, *current, *previous),
        Some(State::Sliding { at, current, previous, period: old }) => {
            let used = current + share(*previous, *old, at % old);
            (*at, used.min(MAX_EXACT / period), 0)
        }
        _ => (0, 0, 0),
    }
}

/// How much of a window's count is still inside so long after its end.
fn share(count: u64, period: u64, elapsed: u64) -> u64 {
    (count * (period - elapsed)).div_ceil(period)
}
