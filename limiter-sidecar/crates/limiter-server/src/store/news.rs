// SPDX-License-Identifier: Apache-2.0
//! Rings when a link to the store comes or goes: for those who wait for one, and for those who remember what one said.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The bell, and how often it has rung.
#[derive(Default)]
pub(super) struct News {
    bell: Notify,
    rung: AtomicU64,
}

impl News {
    pub(super) fn ring(&self) {
        self.rung.fetch_add(1, Ordering::Relaxed);
        self.bell.notify_waiters();
    }

    /// Waits for the next ring.
    pub(super) fn notified(&self) -> Notified<'_> {
        self.bell.notified()
    }

    /// How often it has rung.
    pub(super) fn rung(&self) -> u64 {
        self.rung.load(Ordering::Relaxed)
    }
}
