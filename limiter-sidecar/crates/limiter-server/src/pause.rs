// SPDX-License-Identifier: Apache-2.0
//! Pauses between attempts, spread so that many limiters do not come back in step.

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

/// From 0 to just below 1.
fn random() -> f64 {
    let random = RandomState::new().build_hasher().finish() % 1024;
    f64::from(u32::try_from(random).unwrap_or_default()) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

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
