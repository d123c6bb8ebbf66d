// SPDX-License-Identifier: Apache-2.0
//! How long to ask a timer for: pauses between attempts, spread so that many limiters do not come back in step, and
//! deadlines.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Between 75 % and 125 % of `pause`.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + random() / 2.0)
}

/// Between 80 % and 100 % of `longest`: for where something has promised to come back within it.
pub(crate) fn shortened(longest: Duration) -> Duration {
    longest.mul_f64(0.8 + random() / 5.0)
}

/// Timers go by whole milliseconds and round up twice, once in the runtime's wheel and once in the wait for the kernel:
/// one of 5 ms rings after 5 to 7.
const TIMER_LAG: Duration = Duration::from_millis(1);

/// For a timer that is to ring within a millisecond of `time`, on either side of it. A short time keeps half of itself.
pub(crate) fn punctual(time: Duration) -> Duration {
    time.saturating_sub(TIMER_LAG.min(time / 2))
}

/// From 0 to just below 1.
fn random() -> f64 {
    let random = RandomState::new().build_hasher().finish() % 1024;
    f64::from(u32::try_from(random).unwrap_or_default()) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_asked_for_a_millisecond_early_and_never_at_once() {
        let asked = [5_000, 2_000, 1_000, 100].map(|us| punctual(Duration::from_micros(us)).as_micros());
        assert_eq!([4_000, 1_000, 500, 50], asked);
    }

    #[test]
    fn a_pause_stays_within_a_quarter_of_its_length() {
        for _ in 0..1000 {
            let pause = jittered(Duration::from_secs(1));
            assert!((750..=1250).contains(&pause.as_millis()), "{pause:?}");
            let pause = shortened(Duration::from_secs(1));
            assert!((800..=1000).contains(&pause.as_millis()), "{pause:?}");
        }
    }
}
