// SPDX-License-Identifier: Apache-2.0
//! The wall clock, read here and nowhere else, and what is known of the store's.
//!
//! Limits are counted by the store's clock. Overrides' windows, calendars and the resets that clients are told go by it too,
//! so that all limiters agree whatever their own clocks say.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const US_PER_MS: u64 = 1_000;

/// How far the store's clock is from this machine's, as its latest answer showed.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    ahead_us: AtomicI64,
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
        local_us().saturating_add_signed(self.ahead_us.load(Ordering::Relaxed))
    }

    /// Learns from an answer that has just come: the store's time when it was made. What it says too little is the way
    /// back, which a deadline bounds.
    pub(crate) fn learn(&self, store_us: u64) {
        self.ahead_us.store(ahead_us(store_us, local_us()), Ordering::Relaxed);
    }
}

fn ahead_us(store_us: u64, local_us: u64) -> i64 {
    let distance = i64::try_from(store_us.abs_diff(local_us)).unwrap_or(i64::MAX);
    if store_us < local_us { -distance } else { distance }
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
