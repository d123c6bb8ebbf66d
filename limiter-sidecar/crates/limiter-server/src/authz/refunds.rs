// SPDX-License-Identifier: Apache-2.0
//! Gives charges back: a queue beside the requests' path, worked off a few at a time.
//!
//! When an Envoy dies, every request that was held for it gives its charge back in the same moment. The store must not
//! see them all at once: each would stand in the way of somebody's decision. A refund that comes late gives back less,
//! never too much.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use crate::metrics::{Metrics, RefundOutcome, RefundReason};

/// Refunds under way at the same time: enough to fill the round trip, too few to be felt by decisions.
const AT_ONCE: usize = 8;
/// Refunds that may wait. Arbitrary; beyond it charges stay, which admits nobody.
const MAX_DUE: u32 = 65_536;

/// The desk where charges of the kind `C` are handed in.
pub(super) struct Refunds<C> {
    room: Arc<Semaphore>,
    queue: mpsc::UnboundedSender<Due<C>>,
    metrics: Arc<Metrics>,
}

/// A charge to be given back, with its place in the room until that is done.
struct Due<C> {
    charge: C,
    reason: RefundReason,
    place: OwnedSemaphorePermit,
}

impl<C> Refunds<C> {
    /// The desk, and the work that gives back what is handed in, with `give_back` for one charge: to be run beside the
    /// requests. `give_back` says whether it succeeded.
    pub(super) fn new<F: Future<Output = bool>>(
        metrics: Arc<Metrics>,
        give_back: impl Fn(C) -> F,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, mut due) = mpsc::unbounded_channel::<Due<C>>();
        let counts = Arc::clone(&metrics);
        let work = poll_fn(move |context| due.poll_recv(context)).for_each_concurrent(AT_ONCE, move |due| {
            let Due { charge, reason, place } = due;
            let (attempt, counts) = (give_back(charge), Arc::clone(&counts));
            async move {
                let outcome = if attempt.await { RefundOutcome::Done } else { RefundOutcome::Failed };
                counts.count_refund(reason, outcome);
                drop(place);
            }
        });
        (Self { room: Arc::new(Semaphore::new(MAX_DUE as usize)), queue, metrics }, work)
    }

    /// Hands in a charge. Never waits.
    pub(super) fn hand_in(&self, charge: C, reason: RefundReason) {
        let place = Arc::clone(&self.room).try_acquire_owned();
        let queued = place.is_ok_and(|place| self.queue.send(Due { charge, reason, place }).is_ok());
        if !queued {
            self.metrics.count_refund(reason, RefundOutcome::Dropped);
        }
    }

    /// Returns when everything that was handed in has been given back, at the latest after `within`.
    pub(super) async fn flush(&self, within: Duration) {
        let _out_of_time = timeout(within, self.room.acquire_many(MAX_DUE)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::Notify;

    use super::*;
    use crate::metrics::Connections;

    fn shows(metrics: &Metrics, line: &str) -> bool {
        metrics
            .encode(Connections { store_up: true, open_breakers: 0, watch_connected: true })
            .lines()
            .any(|shown| shown == line)
    }

    #[tokio::test(start_paused = true)]
    async fn everything_handed_in_is_given_back_in_order_before_the_flush_ends() {
        let (metrics, given) = (Arc::new(Metrics::new()), Arc::new(Mutex::new(Vec::new())));
        let record = Arc::clone(&given);
        let (refunds, work) = Refunds::new(Arc::clone(&metrics), move |charge: u32| {
            record.lock().unwrap().push(charge);
            async move { charge != 7 }
        });
        tokio::spawn(work);
        for charge in 0..100 {
            refunds.hand_in(charge, RefundReason::ClientGone);
        }
        refunds.flush(Duration::from_secs(1)).await;
        assert_eq!(*given.lock().unwrap(), (0..100).collect::<Vec<_>>());
        assert!(shows(&metrics, "weir_refunds_total{reason=\"client_gone\",outcome=\"done\"} 99"));
        assert!(shows(&metrics, "weir_refunds_total{reason=\"client_gone\",outcome=\"failed\"} 1"));
    }

    #[tokio::test(start_paused = true)]
    async fn few_are_under_way_at_once() {
        let (started, go) = (Arc::new(Mutex::new(0)), Arc::new(Notify::new()));
        let (count, wait) = (Arc::clone(&started), Arc::clone(&go));
        let (refunds, work) = Refunds::new(Arc::new(Metrics::new()), move |(): ()| {
            *count.lock().unwrap() += 1;
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                true
            }
        });
        tokio::spawn(work);
        for () in [(); 1000] {
            refunds.hand_in((), RefundReason::ClientGone);
        }
        refunds.flush(Duration::from_secs(1)).await;
        assert_eq!(*started.lock().unwrap(), AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_does_not_wait_for_a_store_that_is_away() {
        let (refunds, work) = Refunds::new(Arc::new(Metrics::new()), |(): ()| std::future::pending());
        tokio::spawn(work);
        refunds.hand_in((), RefundReason::Draining);
        refunds.flush(Duration::from_secs(1)).await;
    }

    #[tokio::test]
    async fn charges_beyond_what_may_wait_stay() {
        let metrics = Arc::new(Metrics::new());
        let (refunds, _work) = Refunds::new(Arc::clone(&metrics), |(): ()| std::future::pending());
        for _ in 0..=MAX_DUE {
            refunds.hand_in((), RefundReason::ClientGone);
        }
        assert!(shows(&metrics, "weir_refunds_total{reason=\"client_gone\",outcome=\"dropped\"} 1"));
    }
}
