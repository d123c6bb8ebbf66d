// SPDX-License-Identifier: Apache-2.0
//! The shared store: asks it one question per request and never waits for it longer than the deadline.
//!
//! A request finds an open link or fails at once; connecting is the supervisor's work, on no request's path. What a
//! failure means for the request is not known here.

mod failure;
mod health;
mod link;
mod script;
mod supervisor;
mod url;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use redis::{Client, Value};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::options::ConfigError;
use crate::store::health::StoreState;
use crate::store::link::{Link, RedisOrTimeout};

pub(crate) use self::failure::StoreFailure;
pub(crate) use self::health::StoreHealth;
pub(crate) use self::script::Call;
pub use self::script::scripts;

/// The handle that requests ask through.
pub(crate) struct Store {
    client: Client,
    link: ArcSwapOption<Link>,
    /// Wakes the supervisor when a request found the link broken.
    trouble: Notify,
    /// Decisions that came in time, and those that did not.
    tally: (AtomicU64, AtomicU64),
    /// Whether the last thing known is good: spares a request the lock on `health`.
    up: AtomicBool,
    health: Mutex<StoreHealth>,
}

impl Store {
    /// A store that is not connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] when `url` is none of a store; the message does not quote it.
    pub(crate) fn new(url: &str) -> Result<Self, ConfigError> {
        Ok(Self {
            client: url::client(url)?,
            link: ArcSwapOption::empty(),
            trouble: Notify::new(),
            tally: (AtomicU64::new(0), AtomicU64::new(0)),
            up: AtomicBool::new(false),
            health: Mutex::new(StoreHealth::unknown()),
        })
    }

    /// Connects, and reconnects for as long as the current runtime lives.
    pub(crate) async fn supervise(self: Arc<Self>) {
        supervisor::run(self).await;
    }

    /// Runs the decision script once.
    ///
    /// # Errors
    /// The failure, at the latest at `deadline`; at once while there is no link.
    pub(crate) async fn decide(&self, call: &impl Call, deadline: Instant) -> Result<Vec<i64>, StoreFailure> {
        let Some(link) = self.link.load_full() else {
            return Err(StoreFailure::Connection);
        };
        let mut answer = link.ask(&script::by_name(call), deadline).await;
        if answer.as_ref().is_err_and(RedisOrTimeout::is_missing_script) {
            // The server was restarted or its scripts were flushed. Only this command failed, so only it is resent;
            // EVAL also teaches the server the script again, for everybody.
            answer = link.ask(&script::by_text(call), deadline).await;
        }
        match answer {
            Ok(value) => {
                let integers = integers(value).ok_or(StoreFailure::Protocol)?;
                self.decided();
                Ok(integers)
            }
            Err(error) => Err(self.failed(&link, &error)),
        }
    }

    /// What is known about the store, for people.
    pub(crate) fn health(&self) -> StoreHealth {
        self.lock_health().clone()
    }

    /// Whether the store decides, as far as is known.
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// How many decisions came in time and how many did not, since the start.
    fn tally(&self) -> (u64, u64) {
        (self.tally.0.load(Ordering::Relaxed), self.tally.1.load(Ordering::Relaxed))
    }

    fn decided(&self) {
        self.tally.0.fetch_add(1, Ordering::Relaxed);
        if !self.up.swap(true, Ordering::Relaxed) {
            self.note(StoreState::Up, "");
        }
    }

    fn failed(&self, link: &Arc<Link>, error: &RedisOrTimeout) -> StoreFailure {
        let failure = error.failure();
        match failure {
            // One late answer is no news; the supervisor finds out whether the server still answers at all, and whether
            // all answers have become late.
            StoreFailure::Timeout => {
                self.tally.1.fetch_add(1, Ordering::Relaxed);
            }
            failure if failure.breaks_link() => self.give_up(link, &error.describe()),
            _ => self.note(StoreState::Down, &error.describe()),
        }
        failure
    }

    fn connected(&self, link: Arc<Link>) {
        self.link.store(Some(link));
        self.note(StoreState::Up, "");
    }

    fn disconnected(&self, error: &str) {
        self.note(StoreState::Down, error);
    }

    /// Puts `link` away if it is still the current one, and lets the supervisor open the next.
    fn give_up(&self, link: &Arc<Link>, error: &str) {
        if self.uses(link) {
            self.link.store(None);
            self.disconnected(error);
            self.trouble.notify_one();
        }
    }

    fn uses(&self, link: &Arc<Link>) -> bool {
        self.link.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, link))
    }

    /// Preflight: a server that may evict keys forgets counters, and whoever it forgets starts with a full bucket.
    async fn examine(&self, link: &Link, deadline: Instant) {
        let policy = link.maxmemory_policy(deadline).await;
        if !policy.is_empty() && policy != "noeviction" {
            tracing::warn!(%policy, "the store may evict counters under memory pressure; set maxmemory-policy noeviction");
        }
        self.lock_health().maxmemory_policy = policy;
    }

    fn note(&self, state: StoreState, error: &str) {
        self.up.store(state == StoreState::Up, Ordering::Relaxed);
        if self.lock_health().change(state, error) {
            if state == StoreState::Up {
                tracing::info!("store is up");
            } else {
                tracing::warn!(error, "store is down; the rules' failure modes apply");
            }
        }
    }

    fn lock_health(&self) -> std::sync::MutexGuard<'_, StoreHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The script's flat answer.
fn integers(value: Value) -> Option<Vec<i64>> {
    let Value::Array(items) = value else { return None };
    items.into_iter().map(|item| if let Value::Int(integer) = item { Some(integer) } else { None }).collect()
}
