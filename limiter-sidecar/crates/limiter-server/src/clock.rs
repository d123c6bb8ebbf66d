// SPDX-License-Identifier: Apache-2.0
//! The wall clock, read here and nowhere else, and what is known of the store's.
//!
//! Limits are counted by the store's clock. Overrides' windows, calendars and the resets that clients are told go by it too,
//! so that all limiters agree whatever their own clocks say.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

const US_PER_MS: u64 = 1_000;

/// Of a clock that has heard from no store.
const NOTHING_HEARD: i64 = i64::MIN;

/// The store's clock, as its latest answer showed it, or the opening of the latest link. It goes on by the time that has passed since, and not by this machine's
/// clock, which somebody may set.
#[derive(Debug)]
pub(crate) struct StoreClock {
    born: Instant,
    /// How far the store's time is ahead of the time since `born`.
    ahead_us: AtomicI64,
}

impl Default for StoreClock {
    fn default() -> Self {
        Self { born: Instant::now(), ahead_us: AtomicI64::new(NOTHING_HEARD) }
    }
}

/// Milliseconds since the epoch; 0 for a machine whose clock stands before it.
pub(crate) fn now_ms() -> u64 {
    local_us() / US_PER_MS
}

/// Microseconds since the epoch by this machine's clock.
fn local_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl StoreClock {
    /// Microseconds since the epoch by the store's clock; by this machine's while no store has answered.
    pub(crate) fn now_us(&self) -> u64 {
        match self.ahead_us.load(Ordering::Relaxed) {
            NOTHING_HEARD => local_us(),
            ahead_us => self.age_us().saturating_add_signed(ahead_us),
        }
    }

    /// Learns from an answer that has just come: the store's time when it was made. What it says too little is the way
    /// back, which a deadline bounds.
    pub(crate) fn learn(&self, store_us: u64) {
        let ahead_us = i128::from(store_us) - i128::from(self.age_us());
        self.ahead_us.store(i64::try_from(ahead_us).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    fn age_us(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_time_goes_on_from_its_latest_answer() {
        for store_us in [1_000, local_us() + 86_400_000_000] {
            let clock = StoreClock::default();
            clock.learn(store_us);
            let passed_us = clock.now_us() - store_us;
            assert!(passed_us < 10_000_000, "{passed_us}");
        }
    }

    #[test]
    fn without_an_answer_it_is_this_machines_time() {
        let before_us = local_us();
        assert!(StoreClock::default().now_us() >= before_us);
    }
}
