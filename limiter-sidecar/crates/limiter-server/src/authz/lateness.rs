// SPDX-License-Identifier: Apache-2.0
//! How late an answer of the store arrives, so that held requests leave by the store's schedule.
//!
//! Two requests of one subject leave in the store's order and distance only if both are timed by the store's clock: the
//! moments at which its answers are read here differ by whatever the network and a busy machine add. The answer that was
//! least late shows how the two clocks stand to each other; every other one is measured by it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// One in so many microseconds that the clocks may drift apart: 100 ppm, twice what machines do that know the time.
const DRIFT: u32 = 10_000;

/// What is known of the store's clock.
pub(super) struct Lateness {
    /// No answer that counts is later. One that seems to be comes from another clock, or from one that was set back.
    most: Duration,
    seen: Mutex<Option<Seen>>,
}

/// An answer as if it had not been late: the store's time, µs since the epoch, and ours of the same moment.
#[derive(Clone, Copy)]
struct Seen {
    store_us: u64,
    local: Instant,
}

impl Lateness {
    /// Nothing is known; answers later than `most` are not awaited.
    pub(super) fn new(most: Duration) -> Self {
        Self { most, seen: Mutex::default() }
    }

    /// By how much an answer that says `store_us` is later than the least late one, when it is read at `read`.
    pub(super) fn of(&self, store_us: u64, read: Instant) -> Duration {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let late = seen.map_or(Duration::ZERO, |seen| seen.lateness(store_us, read, self.most));
        *seen = Some(Seen { store_us, local: read.checked_sub(late).unwrap_or(read) });
        late
    }
}

impl Seen {
    fn lateness(self, store_us: u64, read: Instant, most: Duration) -> Duration {
        let passed = Duration::from_micros(store_us.saturating_sub(self.store_us));
        let back = Duration::from_micros(self.store_us.saturating_sub(store_us));
        let late = (read + back).saturating_duration_since(self.local + passed);
        if late > most { Duration::ZERO } else { late.saturating_sub(passed / DRIFT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_millis(5);
    const START_US: u64 = 1_764_547_200_000_000;

    /// Lateness, in whole µs, of answers that the store gave and that were read so many µs after the start.
    fn lateness(answers: &[(u64, u64)]) -> Vec<u128> {
        let (clock, start) = (Lateness::new(MOST), Instant::now());
        let read = |&(store_us, read_us): &(u64, u64)| {
            clock.of(START_US + store_us, start + Duration::from_micros(read_us)).as_nanos().div_ceil(1_000)
        };
        answers.iter().map(read).collect()
    }

    #[test]
    fn an_answer_is_as_late_as_it_took_longer_than_the_quickest() {
        assert_eq!(vec![0, 800, 0, 100], lateness(&[(0, 200), (100, 1_100), (200, 400), (300, 600)]));
    }

    #[test]
    fn a_quicker_answer_becomes_the_measure() {
        assert_eq!(vec![0, 0, 700], lateness(&[(0, 900), (100, 300), (200, 1_100)]));
    }

    #[test]
    fn answers_of_one_moment_read_in_turn_keep_their_distance() {
        assert_eq!(vec![0, 3_000, 2_500], lateness(&[(0, 200), (1_000, 4_200), (1_500, 4_200)]));
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed_at_once() {
        let hour = 3_600_000_000;
        assert_eq!(vec![0, 0, 400], lateness(&[(hour, 200), (100, 500), (200, 1_000)]));
    }

    #[test]
    fn a_clock_that_was_set_forward_is_followed_at_once() {
        let hour = 3_600_000_000;
        assert_eq!(vec![0, 0, 400], lateness(&[(0, 200), (hour, 500), (hour + 100, 1_000)]));
    }

    #[test]
    fn clocks_that_drift_apart_are_no_lateness() {
        let second = 1_000_000;
        let drifting: Vec<_> = (0..100).map(|n| (n * second, n * (second + 90) + 200)).collect();
        assert_eq!(vec![0; 100], lateness(&drifting));
    }
}
