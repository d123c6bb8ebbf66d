// SPDX-License-Identifier: Apache-2.0
//! Fixed windows: a count that begins anew with each period of the epoch, or between the edges that come with a call.

use super::Stale;
use super::state::State;
use crate::limit::{Demand, Kind};
use crate::reply::{CheckReply, Wait};

/// A subject's window during one call.
pub(super) struct Account {
    now: u64,
    /// The later one of now and the record's time.
    at: u64,
    cost: u64,
    requests: u64,
    end: u64,
    used: u64,
    passes: bool,
}

impl Account {
    /// A charge belongs to the window, as the rule has it now, in which it was made. A record that is ahead of a calendar's
    /// edges, as after a clock that went back, brings the end of its window with it.
    ///
    /// # Errors
    /// When a calendar's edges do not hold `now`.
    pub(super) fn open(demand: &Demand, state: Option<&State>, now: u64) -> Result<Self, Stale> {
        let [cost, requests, period, _] = demand.numbers;
        let (charged_at, count, recorded_end) = match state {
            Some(State::Window { at, count, end }) => (*at, *count, *end),
            _ => (0, 0, 0),
        };
        let at = now.max(charged_at);
        let (start, end) = match demand.kind {
            Kind::CalendarWindow => {
                let present = around(&demand.edges, now).ok_or(Stale { now_us: now })?;
                if at > now { around(&demand.edges, at).unwrap_or((at, recorded_end)) } else { present }
            }
            _ => (at - at % period, at - at % period + period),
        };
        let used = if charged_at >= start { count } else { 0 };
        let passes = cost == 0 || cost <= requests.saturating_sub(used);
        Ok(Self { now, at, cost, requests, end, used, passes })
    }

    pub(super) fn passes(&self) -> bool {
        self.passes
    }

    pub(super) fn charge(&mut self, state: &mut Option<State>) {
        self.used += self.cost;
        *state = Some(State::Window { at: self.at, count: self.used, end: self.end });
    }

    pub(super) fn reply(&self) -> CheckReply {
        let left_us = self.end - self.now;
        CheckReply {
            ok: self.passes,
            remaining: self.requests.saturating_sub(self.used),
            wait: match self.passes {
                true => Wait::Us(0),
                false if self.cost > self.requests => Wait::Never,
                false => Wait::Us(left_us),
            },
            reset_us: if self.used > 0 { left_us } else { 0 },
        }
    }
}

/// The window that holds a time.
pub(super) fn around(edges: &[u64; 4], time: u64) -> Option<(u64, u64)> {
    let mut windows = edges.iter().copied().zip(edges.iter().copied().skip(1));
    windows.find(|(start, end)| (*start..*end).contains(&time))
}
