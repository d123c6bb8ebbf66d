// SPDX-License-Identifier: Apache-2.0
//! The room where requests wait for their time to leave: bounded, and without a promise to those that go away.
//!
//! Owns how many may wait, the timer, and what the end of a wait means for the request's charge. Knows no rule and no
//! message. A waiting request is a timer and its answer, nothing that others would have to wait for.
//!
//! The event loop's timers tick once a millisecond, round up and are never early. The time to leave comes from the store's
//! schedule and not from the departure before, so lateness never adds up: every request leaves a millisecond or two after
//! its time, and above some 500 requests/s those of one tick leave together, in their order.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::Drain;
use crate::metrics::{Metrics, RefundReason};

/// Time that an answer has at least to reach Envoy before the connections end. Arbitrary; some hundred times what it needs.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// The room, one for all event loops.
#[derive(Clone)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    drain: Drain,
    metrics: Arc<Metrics>,
}

/// A place in the room until `leave`.
pub(super) struct Place {
    leave: Instant,
    drain: Drain,
    seat: Seat,
}

/// What a place takes away from the others, given back when it is dropped.
struct Seat {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

/// Why a request does not wait to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// As many requests wait as may.
    Full,
    /// The limiter ends before the request could leave.
    Draining,
    /// Envoy does not wait that long.
    Impatient,
}

/// The charge of a waiting request: given back when the request goes away before its time.
///
/// At its time the charge is spent, also when nobody takes the answer any more: an Envoy that has just lost its patience
/// passes the request on.
struct Charge<F: FnOnce(Option<RefundReason>)> {
    leave: Instant,
    settle: Option<F>,
}

impl Room {
    /// A room for `most` requests, which is emptied when the drain begins.
    pub(super) fn new(most: usize, drain: Drain, metrics: Arc<Metrics>) -> Self {
        Self { places: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))), drain, metrics }
    }

    /// Takes a place for a request that may leave at `leave`, and that nobody waits for after `patience`.
    ///
    /// # Errors
    /// [`NoPlace`] when there is none; the request's charge is then for the caller to give back.
    pub(super) fn enter(&self, leave: Instant, patience: Option<Instant>) -> Result<Place, NoPlace> {
        if patience.is_some_and(|end| leave > end) {
            return Err(NoPlace::Impatient);
        }
        if self.drain.borrow().is_some_and(|end| is_too_late(leave, end)) {
            return Err(NoPlace::Draining);
        }
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| NoPlace::Full)?;
        self.metrics.held_requests.inc();
        let seat = Seat { metrics: Arc::clone(&self.metrics), _permit: permit };
        Ok(Place { leave, drain: self.drain.clone(), seat })
    }
}

impl Place {
    /// Waits for the time to leave. `settle` is called, once: with nothing when the charge is spent, or with why it must be
    /// given back, because the request does not come that far. So also when the returned future is dropped, because the
    /// client went away. A future that never began to wait drops `settle` instead.
    ///
    /// # Errors
    /// [`NoPlace::Draining`] as soon as it shows that the limiter ends before that time.
    pub(super) async fn wait(mut self, settle: impl FnOnce(Option<RefundReason>)) -> Result<(), NoPlace> {
        let (entered, leave) = (Instant::now(), self.leave);
        let mut charge = Charge { leave, settle: Some(settle) };
        let too_late = |end: &Option<Instant>| end.is_some_and(|end| is_too_late(leave, end));
        tokio::select! {
            biased;
            () = sleep_until(leave) => {
                charge.settle(None);
                self.seat.metrics.hold.observe(entered.elapsed().as_secs_f64());
                Ok(())
            }
            // The other side ends only with the server.
            Ok(_) = self.drain.wait_for(too_late) => {
                charge.settle(Some(RefundReason::Draining));
                Err(NoPlace::Draining)
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.metrics.held_requests.dec();
    }
}

impl<F: FnOnce(Option<RefundReason>)> Charge<F> {
    fn settle(&mut self, reason: Option<RefundReason>) {
        if let Some(settle) = self.settle.take() {
            settle(reason);
        }
    }
}

impl<F: FnOnce(Option<RefundReason>)> Drop for Charge<F> {
    fn drop(&mut self) {
        self.settle((Instant::now() < self.leave).then_some(RefundReason::ClientGone));
    }
}

impl From<NoPlace> for RefundReason {
    fn from(reason: NoPlace) -> Self {
        match reason {
            NoPlace::Full => Self::HeldFull,
            NoPlace::Draining => Self::Draining,
            NoPlace::Impatient => Self::Impatient,
        }
    }
}

fn is_too_late(leave: Instant, end: Instant) -> bool {
    leave + ANSWER_TIME > end
}

#[cfg(test)]
mod tests;
