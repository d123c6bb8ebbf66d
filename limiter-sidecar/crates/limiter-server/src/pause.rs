// SPDX-License-Identifier: Apache-2.0
//! Pauses between attempts, spread so that many limiters do not come back in step.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Between 75 % and 125 % of `pause`.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 512;
    pause.mul_f64(0.75 + f64::from(u32::try_from(random).unwrap_or_default()) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_stays_within_a_quarter_of_its_length() {
        for _ in 0..1000 {
            let pause = jittered(Duration::from_secs(1));
            assert!((750..=1250).contains(&pause.as_millis()), "{pause:?}");
        }
    }
}
