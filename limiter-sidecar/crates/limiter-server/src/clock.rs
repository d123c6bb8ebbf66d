// SPDX-License-Identifier: Apache-2.0
//! The wall clock, read here and nowhere else. Limits are counted by the store's clock; this one serves overrides'
//! windows and the times that people read.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch; 0 for a machine whose clock stands before it.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
