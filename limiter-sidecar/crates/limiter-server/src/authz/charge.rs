// SPDX-License-Identifier: Apache-2.0
//! What one request was charged, kept until it is certain that the request passes.
//!
//! A charge is a guard: whatever ends the request before somebody spends the charge (a client that resets its stream drops
//! everything the request owns) gives it back.

use std::future::Future;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use limiter_core::StoreCall;
use tokio::time::Instant;

use super::refunds::Refunds;
use crate::memory::Counted;
use crate::metrics::RefundReason;
use crate::shared::Shared;
use crate::store::{Store, StoreFailure};

/// Time that the store has to take a charge back. No request waits for it.
const REFUND_WITHIN: Duration = Duration::from_secs(1);

/// Charges in the store, each with the store's time of it, µs since the epoch.
pub(super) type InStore = Vec<(StoreCall, u64)>;

/// Where charges go that come to nothing.
pub(super) struct Desk {
    pub(super) shared: Arc<Shared>,
    /// As the desk's event loop reaches it.
    pub(super) store: Arc<Store>,
    refunds: Refunds<InStore>,
}

/// The charges of one request. Dropped, it gives them back, because then the client has gone away.
pub(super) struct Charge {
    /// Those in the store.
    pub(super) in_store: InStore,
    /// Those in this limiter's memory.
    pub(super) in_memory: Vec<Counted>,
    desk: Arc<Desk>,
}

impl Desk {
    /// The desk, and the work beside it that gives charges back.
    pub(super) fn new(shared: &Arc<Shared>, store: &Arc<Store>) -> (Arc<Self>, impl Future<Output = ()> + use<>) {
        let taker = Arc::clone(store);
        let (refunds, work) = Refunds::new(Arc::clone(&shared.metrics), move |charges: InStore| {
            let store = Arc::clone(&taker);
            async move { give_back(&store, &charges).await }
        });
        (Arc::new(Self { shared: Arc::clone(shared), store: Arc::clone(store), refunds }), work)
    }

    /// Returns when everything that was handed in has been given back, at the latest after `within`.
    pub(super) async fn flush(&self, within: Duration) {
        self.refunds.flush(within).await;
    }
}

impl Charge {
    /// Nothing was charged yet.
    pub(super) fn none(desk: &Arc<Desk>) -> Self {
        Self { in_store: Vec::new(), in_memory: Vec::new(), desk: Arc::clone(desk) }
    }

    /// The request passes, or nothing of it is left to be given back.
    pub(super) fn spend(mut self) {
        self.forget();
    }

    /// Gives everything back.
    pub(super) fn give_back(mut self, reason: RefundReason) {
        self.hand_in(reason);
    }

    /// Gives back what memory has counted for a request that the store's rules refuse. That is no refund that anybody
    /// would have to look for: it is done when this returns.
    pub(super) fn uncount(&mut self) {
        for counted in take(&mut self.in_memory) {
            self.desk.shared.memory.refund(&counted, self.desk.shared.clock.now_us());
        }
    }

    fn forget(&mut self) {
        self.in_store = Vec::new();
        self.in_memory = Vec::new();
    }

    fn hand_in(&mut self, reason: RefundReason) {
        if self.in_store.is_empty() && self.in_memory.is_empty() {
            return;
        }
        // At once, so that a store that is slow, or a desk that is full, keeps nothing that is counted here.
        self.uncount();
        self.desk.refunds.hand_in(take(&mut self.in_store), reason);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.hand_in(RefundReason::ClientGone);
    }
}

/// Gives everything back; whether the store has confirmed it. It is asked once: what is given back twice would be tokens for
/// nothing. Only where a slot is on its way, and so nothing was done, it is asked again with a call for each key.
async fn give_back(store: &Store, charges: &InStore) -> bool {
    let mut confirmed = true;
    for (call, charged_at_us) in charges {
        match refund(store, call, *charged_at_us).await {
            Err(StoreFailure::Migrating) => {
                for part in call.by_key() {
                    confirmed &= refund(store, &part, *charged_at_us).await.is_ok();
                }
            }
            answer => confirmed &= answer.is_ok(),
        }
    }
    confirmed
}

async fn refund(store: &Store, call: &StoreCall, charged_at_us: u64) -> Result<(), StoreFailure> {
    store.refund(call, charged_at_us, Instant::now() + REFUND_WITHIN).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use limiter_core::{HashKey, LocalCall, Reply};

    use super::*;
    use crate::clock::StoreClock;
    use crate::denied::Denied;
    use crate::memory::Memory;
    use crate::metrics::{Connections, Metrics};
    use crate::rules::{Glass, RuleBook, WatchReport};
    use crate::shared::Calls;
    use crate::store::Stores;

    fn shared() -> Arc<Shared> {
        let metrics = Arc::new(Metrics::new());
        let key = HashKey::new(b"a-key-that-only-this-test-has-and-knows").unwrap();
        let names = ("edge".to_owned(), "edge-rules-0".to_owned());
        let book = Arc::new(RuleBook::new(names, key, Arc::clone(&metrics), None));
        Arc::new(Shared {
            instance: "one".to_owned(),
            version: "0".to_owned(),
            started_at_ms: 0,
            glass: Arc::new(Glass::new(Arc::clone(&book), Arc::clone(&metrics), false)),
            book,
            watch: Arc::new(WatchReport::new("rules", false)),
            stores: Stores::new("redis://127.0.0.1:1", REFUND_WITHIN, 1).unwrap(),
            clock: Arc::new(StoreClock::default()),
            memory: Memory::new(Arc::clone(&metrics)),
            denied: Denied::new(0, Arc::clone(&metrics)),
            metrics,
            calls: Calls::default(),
            draining: AtomicBool::new(false),
            born: Instant::now(),
            heartbeats_ms: Box::default(),
        })
    }

    /// What the metrics say of refunds when `end` was done to a charge in memory.
    async fn refunds_after(end: impl FnOnce(Charge)) -> Vec<String> {
        let shared = shared();
        let (desk, work) = Desk::new(&shared, shared.stores.each().next().unwrap());
        tokio::spawn(work);
        let mut charge = Charge::none(&desk);
        charge.in_memory.push(Counted {
            call: LocalCall { charges: Vec::new(), checks: Vec::new() },
            reply: Reply { allowed: true, now_us: 0, checks: Vec::new() },
        });
        end(charge);
        desk.flush(REFUND_WITHIN).await;
        let shown = shared.metrics.encode(Connections { store_up: true, open_breakers: 0, watch_connected: true });
        let refunds = shown.lines().filter(|line| line.starts_with("weir_refunds_total") && !line.ends_with(" 0"));
        refunds.map(ToOwned::to_owned).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_charge_that_is_dropped_is_given_back() {
        let shown = refunds_after(drop).await;
        assert_eq!(shown, ["weir_refunds_total{reason=\"client_gone\",outcome=\"done\"} 1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_charge_is_given_back_once_and_for_its_reason() {
        let shown = refunds_after(|charge| charge.give_back(RefundReason::Draining)).await;
        assert_eq!(shown, ["weir_refunds_total{reason=\"draining\",outcome=\"done\"} 1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_charge_that_is_spent_or_uncounted_is_not_given_back_again() {
        assert_eq!(refunds_after(Charge::spend).await, [""; 0]);
        assert_eq!(refunds_after(|mut charge| charge.uncount()).await, [""; 0]);
    }
}
