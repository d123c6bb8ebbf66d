// SPDX-License-Identifier: Apache-2.0
//! What the data plane and the control plane both see: written without locks on a request's path, read by the admin port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::clock::StoreClock;
use crate::denied::Denied;
use crate::memory::Memory;
use crate::metrics::{Connections, Metrics};
use crate::rules::{Glass, RuleBook, WatchReport, WatchState};
use crate::store::Stores;

/// How often the data plane shows that it runs.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Silence after which it counts as stuck. A healthy event loop is never busy for longer than a few milliseconds.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Calls by Envoy, whatever became of them: whether there are any is what tells a quiet gateway from one that asks nobody.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    total: AtomicU64,
    last_us: AtomicU64,
}

/// The same as the status document shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallsReport {
    total: u64,
    last_ms: Option<u64>,
}

impl Calls {
    pub(crate) fn note(&self, now_us: u64) {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.last_us.store(now_us, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> CallsReport {
        let total = self.total.load(Ordering::Relaxed);
        CallsReport { total, last_ms: (total > 0).then(|| self.last_us.load(Ordering::Relaxed) / 1_000) }
    }
}

/// The state of one server.
pub(crate) struct Shared {
    pub(crate) instance: String,
    pub(crate) version: String,
    pub(crate) started_at_ms: u64,
    pub(crate) book: Arc<RuleBook>,
    pub(crate) watch: Arc<WatchReport>,
    pub(crate) stores: Stores,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) memory: Memory,
    pub(crate) denied: Denied,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) glass: Arc<Glass>,
    pub(crate) calls: Calls,
    pub(crate) draining: AtomicBool,
    pub(crate) born: Instant,
    /// When each event loop of the data plane last showed that it runs, counted from `born`.
    pub(crate) heartbeats_ms: Box<[AtomicU64]>,
}

impl Shared {
    /// Ready to decide: there are rules, the store has been tried, and the end has not begun. The listener is bound before
    /// there is a `Shared`. A store that is down does not make a limiter unready: the rules say what holds then.
    pub(crate) fn is_ready(&self) -> bool {
        self.book.has_rules() && self.stores.was_tried() && !self.draining.load(Ordering::Relaxed)
    }

    /// Whether every event loop of the data plane turns.
    pub(crate) fn is_alive(&self) -> bool {
        let turns = |beat_ms: &AtomicU64| {
            let beat = Duration::from_millis(beat_ms.load(Ordering::Relaxed));
            self.born.elapsed().saturating_sub(beat) < STUCK_AFTER
        };
        self.heartbeats_ms.iter().all(turns)
    }

    /// What is connected, for the metrics.
    pub(crate) fn connections(&self) -> Connections {
        let watch_connected = self.watch.get().state == WatchState::Connected;
        Connections { store_up: self.stores.is_up(), open_breakers: self.stores.open_breakers(), watch_connected }
    }

    /// Runs on the data plane's event loop of this number.
    pub(crate) async fn beat(self: Arc<Self>, number: usize) {
        loop {
            let age_ms = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
            if let Some(beat_ms) = self.heartbeats_ms.get(number) {
                beat_ms.store(age_ms, Ordering::Relaxed);
            }
            sleep(HEARTBEAT).await;
        }
    }
}
