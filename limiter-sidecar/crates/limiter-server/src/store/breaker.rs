// SPDX-License-Identifier: Apache-2.0
//! A breaker for one server: when most of what it was asked lately came to nothing, nobody waits for it any more.
//!
//! Owns when it opens, who may probe, and when it closes. Knows no server and no clock: the time, the counts so far and
//! the length of a pause come with the call. While it is closed it costs a request nothing, since counts are only read
//! when something fails, and at the supervisor's ticks.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How far back is looked.
const WINDOW: Duration = Duration::from_secs(10);
/// Fewer calls than this say nothing about a server.
const FEWEST_CALLS: u64 = 20;
/// The counts are kept once in so long, so the window is exact to a second.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// The longest pause before a probe, and between two. Callers shorten it, each by another bit.
pub(super) const COOL_DOWN: Duration = Duration::from_secs(5);

/// What came of the calls so far; both only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) decided: u64,
    pub(super) failed: u64,
}

/// A breaker, closed at first.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// The oldest first; at most one of them is older than the window.
    samples: VecDeque<(Instant, Tally)>,
    /// When the next probe may go; none while it is closed.
    probe_at: Option<Instant>,
}

impl Breaker {
    /// Keeps the counts so far, so that later ones can be told from them.
    pub(super) fn sample(&mut self, now: Instant, tally: Tally) {
        if self.samples.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= SAMPLE_EVERY) {
            self.samples.push_back((now, tally));
        }
        while self.samples.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Notes a failure, with the counts so far. When it opens the breaker, what of the window did; the first probe comes
    /// after `pause`.
    pub(super) fn failed(&mut self, now: Instant, tally: Tally, pause: Duration) -> Option<Tally> {
        self.sample(now, tally);
        let recent = self.recent(tally);
        let asked = recent.decided + recent.failed;
        let opens = self.probe_at.is_none() && asked >= FEWEST_CALLS && 2 * recent.failed >= asked;
        if opens {
            self.probe_at = Some(now + pause);
        }
        opens.then_some(recent)
    }

    /// Whether somebody may ask now: everybody while it is closed; else one who thereby probes, and the next one not
    /// before another `pause`, whatever becomes of the first.
    pub(super) fn admits(&mut self, now: Instant, pause: Duration) -> bool {
        match self.probe_at {
            None => true,
            Some(probe_at) if now < probe_at => false,
            Some(_) => {
                self.probe_at = Some(now + pause);
                true
            }
        }
    }

    /// An answer came in time: closes it. What failed before counts no more. Whether it was open.
    pub(super) fn succeeded(&mut self, now: Instant, tally: Tally) -> bool {
        let was_open = self.probe_at.take().is_some();
        if was_open {
            self.samples = VecDeque::from([(now, tally)]);
        }
        was_open
    }

    /// The server is reached anew, which is reason enough for one probe at once.
    pub(super) fn renewed(&mut self, now: Instant) {
        if let Some(probe_at) = &mut self.probe_at {
            *probe_at = now.min(*probe_at);
        }
    }

    /// What came of the calls inside the window.
    fn recent(&self, tally: Tally) -> Tally {
        let base = self.samples.front().map(|(_, base)| *base).unwrap_or_default();
        Tally { decided: tally.decided.saturating_sub(base.decided), failed: tally.failed.saturating_sub(base.failed) }
    }
}

#[cfg(test)]
mod tests;
