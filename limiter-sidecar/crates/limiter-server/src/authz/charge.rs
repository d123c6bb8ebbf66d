// SPDX-License-Identifier: Apache-2.0
//! What one request was charged, kept until it is certain that the request passes.

use std::time::Duration;

use limiter_core::StoreCall;
use tokio::time::Instant;

use crate::memory::Counted;
use crate::shared::Shared;

/// Time that the store has to take a charge back. No request waits for it.
const REFUND_WITHIN: Duration = Duration::from_secs(1);

/// The charges of one request.
#[derive(Default)]
pub(super) struct Charge {
    /// Those in the store, each with the store's time of it, µs since the epoch.
    pub(super) in_store: Vec<(StoreCall, u64)>,
    /// Those in this limiter's memory.
    pub(super) in_memory: Option<Counted>,
}

impl Charge {
    /// Whether nothing was charged.
    pub(super) fn is_empty(&self) -> bool {
        self.in_store.is_empty() && self.in_memory.is_none()
    }

    /// Gives everything back; whether the store has confirmed its part. It is asked once: what is given back twice would
    /// be tokens for nothing.
    pub(super) async fn give_back(self, shared: &Shared) -> bool {
        if let Some(counted) = &self.in_memory {
            shared.memory.refund(counted, shared.clock.now_us());
        }
        let mut confirmed = true;
        for (call, charged_at_us) in &self.in_store {
            let answer = shared.store.refund(call, *charged_at_us, Instant::now() + REFUND_WITHIN).await;
            confirmed &= answer.is_ok();
        }
        confirmed
    }
}
