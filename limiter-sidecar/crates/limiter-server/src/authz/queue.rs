// SPDX-License-Identifier: Apache-2.0
//! From a verdict that lets a request pass to the moment when it may leave: holds those that a leaky bucket wants held.
//!
//! Owns what becomes of the charge of whoever does not get that far. How requests wait is `hold`'s matter, how charges
//! are given back is `refunds`'.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use limiter_core::{Prepared, Verdict};
use tokio::time::Instant;

use super::charge::{Charge, Desk};
use super::hold::{NoPlace, Place, Room};
use crate::metrics::RefundReason;
use crate::shared::Shared;
use crate::store::{Store, StoreFailure};

/// Time that refunds have after the last request.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Where requests wait, and where their charges go if they give up.
pub(super) struct Queue {
    room: Room,
    pub(super) desk: Arc<Desk>,
}

/// A verdict with what was charged for it.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) charge: Charge,
    /// Why the store did not decide it, or not all of it.
    pub(super) failure: Option<StoreFailure>,
    /// When the request may leave if it must be held, by the schedules of the store and of memory.
    pub(super) leave: Instant,
}

/// A request that has a place to wait. Dropped, it gives its charge back.
pub(super) struct Waiting {
    pub(super) hold_us: u64,
    place: Place,
    charge: Charge,
}

impl Queue {
    /// The queue of an event loop that reaches the store by `store`, and the work beside it that gives charges back.
    pub(super) fn new(
        shared: &Arc<Shared>,
        store: &Arc<Store>,
        room: Room,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let (desk, refunds) = Desk::new(shared, store);
        (Self { room, desk }, refunds)
    }

    /// Takes a place for a request that must wait; nobody waits for its answer after `patience`. A request for which there
    /// is none is refused, and its charge given back.
    pub(super) fn admit(
        &self,
        judged: Judged,
        prepared: &Prepared<'_>,
        patience: Option<Instant>,
    ) -> (Verdict, Option<Waiting>) {
        let Judged { verdict, charge, leave, .. } = judged;
        let hold_us = verdict.hold_us(prepared);
        if hold_us == 0 {
            charge.spend();
            return (verdict, None);
        }
        match self.room.enter(leave, patience) {
            Ok(place) => (verdict, Some(Waiting { hold_us, place, charge })),
            Err(reason) => {
                charge.give_back(reason.into());
                (verdict.without_hold(prepared), None)
            }
        }
    }

    /// Returns when the request may leave.
    ///
    /// # Errors
    /// [`NoPlace`] when it must be refused after all; its charge is then given back, as it is when this is dropped.
    pub(super) async fn wait(waiting: Waiting) -> Result<(), NoPlace> {
        let Waiting { place, charge, .. } = waiting;
        let settle = |reason: Option<RefundReason>| match reason {
            None => charge.spend(),
            Some(reason) => charge.give_back(reason),
        };
        place.wait(settle).await
    }

    /// Returns when nothing is left to be given back, or the time for it is over.
    pub(super) async fn settle(&self) {
        self.desk.flush(SETTLE_TIME).await;
    }
}
