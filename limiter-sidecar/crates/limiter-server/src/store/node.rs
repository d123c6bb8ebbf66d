// SPDX-License-Identifier: Apache-2.0
//! One server of the store: the link to it that requests use, and what is known of its state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::{Client, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::breaker::Tally;
use super::failure::StoreFailure;
use super::guard::Guard;
use super::health::{BreakerHealth, Condition, StoreState};
use super::link::{Link, RedisOrTimeout};
use super::news::News;
use super::preflight::{self, Finding};
use super::script::{ByName, ByText, Call, Script};

/// What people are told of a server that answers, and too late for every decision.
pub(super) const LATE: &str = "answers come later than the deadline of a decision";

/// A server that makes some decisions and refuses others, as one does whose memory is full, is not well. It counts as up
/// when it has refused none for so long; else its state would change, and be logged, with every other request.
const WELL_AFTER: Duration = Duration::from_secs(1);

/// A server, which may be away.
pub(super) struct Node {
    /// Its address in a cluster; empty for the only server of a store, which people know by their own URL.
    name: String,
    pub(super) client: Client,
    /// How long a decision waits for it.
    pub(super) patience: Duration,
    link: ArcSwapOption<Link>,
    /// Wakes the supervisor when a request found the link broken.
    pub(super) trouble: Notify,
    /// Rings when a link was opened or lost, for the cluster that the node is part of.
    pub(super) news: Arc<News>,
    /// The same for all event loops.
    pub(super) guard: Arc<Guard>,
    /// How often requests have asked it while it was taken for down.
    doubted: AtomicU64,
    /// Whether the last thing known is good: spares a request the lock.
    up: AtomicBool,
    state: Mutex<State>,
}

struct State {
    condition: Condition,
    /// When it last refused a decision for a reason of its own; none once it has taken a write long enough after that.
    refused: Option<Instant>,
    findings: Vec<Finding>,
}

impl Node {
    /// A server that is not connected yet. `news` rings whenever its link comes or goes; a decision waits for `patience`.
    pub(super) fn new(name: String, client: Client, news: Arc<News>, patience: Duration, guard: Arc<Guard>) -> Self {
        Self {
            name,
            client,
            patience,
            link: ArcSwapOption::empty(),
            trouble: Notify::new(),
            news,
            guard,
            doubted: AtomicU64::new(0),
            up: AtomicBool::new(false),
            state: Mutex::new(State { condition: Condition::unknown(), refused: None, findings: Vec::new() }),
        }
    }

    /// The open link, if there is one.
    pub(super) fn link(&self) -> Option<Arc<Link>> {
        self.link.load_full()
    }

    /// The open link; waits for it, at the latest until `deadline`, while the very first attempt to open it is under way.
    pub(super) async fn first_link(&self, deadline: Instant) -> Option<Arc<Link>> {
        if let Some(link) = self.link() {
            return Some(link);
        }
        let mut news = std::pin::pin!(self.news.notified());
        // From here on no ring is missed.
        news.as_mut().enable();
        if self.link().is_none() && self.condition().state == StoreState::Unknown {
            let _in_time = timeout_at(deadline, news).await;
        }
        self.link()
    }

    /// Runs a script once over `link`. `arriving`: the slot is on its way to this node, which said so.
    ///
    /// A server that was restarted, flushed or newly made does not know the script. Only this command failed then, so
    /// only it is sent again, as text, which teaches the server the script for everybody.
    pub(super) async fn run(
        &self,
        link: &Link,
        script: &Script,
        call: &impl Call,
        arriving: bool,
        deadline: Instant,
    ) -> Result<Value, RedisOrTimeout> {
        let by_name = ByName(script, call);
        let answer = if arriving {
            // Boxed, because every request would have room for what hardly any needs.
            Box::pin(link.ask_on_arrival(&by_name, deadline)).await
        } else {
            link.ask(&by_name, deadline).await
        };
        match answer {
            Err(error) if error.is_missing_script() => {
                let by_text = ByText(script, call);
                Box::pin(async move {
                    if arriving {
                        link.ask_on_arrival(&by_text, deadline).await
                    } else {
                        link.ask(&by_text, deadline).await
                    }
                })
                .await
            }
            answer => answer,
        }
    }

    /// Notes that a decision came in time.
    pub(super) fn decided(&self) {
        self.guard.decided();
        self.answered();
    }

    /// Notes that the server answers in time, whatever it said.
    pub(super) fn answered(&self) {
        if self.guard.answered() {
            tracing::info!(node = self.name, "breaker closed");
        }
        if !self.is_up() {
            self.doubted.fetch_add(1, Ordering::Relaxed);
            self.note_up();
        }
    }

    /// Notes that none came over `link`, and says how that is called. `awaited`: whether a request waited for it. What
    /// nobody waits for may come late without being late, and says nothing of how soon a decision would come.
    pub(super) fn failed(&self, link: &Arc<Link>, error: &RedisOrTimeout, awaited: bool) -> StoreFailure {
        let failure = error.failure();
        self.doubted.fetch_add(1, Ordering::Relaxed);
        match failure {
            // One late answer is no news; the supervisor finds out whether the server still answers at all, and whether
            // all answers have become late.
            StoreFailure::Timeout if !awaited => {}
            StoreFailure::Timeout => {
                self.guard.late();
                if self.guard.is_tripped() {
                    self.note(StoreState::Down, LATE);
                }
            }
            // Of one slot, and passes; of one key.
            StoreFailure::Migrating | StoreFailure::WrongType => {}
            // Of the cluster, which knows more about it than its nodes.
            StoreFailure::Cluster if !self.name.is_empty() => {}
            failure => {
                // A lost connection is no refusal: the next one is as good as new.
                if failure != StoreFailure::Connection {
                    lock(&self.state).refused = Some(Instant::now());
                }
                if failure.breaks_link() {
                    self.give_up(link, &error.describe());
                } else {
                    self.note(StoreState::Down, &error.describe());
                }
            }
        }
        if failure.counts_against_server() {
            self.tell_breaker(error);
        } else if awaited && self.guard.is_tripped() {
            // It was probed and has answered in time. Else a spoilt key that is much asked for would take every probe, and
            // with them the store from everybody.
            self.answered();
        }
        failure
    }

    /// Counts a failure; when that opens the breaker, says so.
    fn tell_breaker(&self, error: &RedisOrTimeout) {
        if let Some(Tally { decided, failed }) = self.guard.failed() {
            let last = if error.is_timeout() { LATE.to_owned() } else { error.describe() };
            let asked = decided + failed;
            tracing::warn!(node = self.name, failed, asked, "breaker opened; nobody waits for this server");
            self.note(StoreState::Down, &format!("breaker open, {failed} of {asked} decisions failed; {last}"));
        }
    }

    /// Rises with every request of this event loop that asks it while it is taken for down.
    pub(super) fn doubted(&self) -> u64 {
        self.doubted.load(Ordering::Relaxed)
    }

    /// Whether the last thing known of it is good.
    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    pub(super) fn connected(&self, link: Arc<Link>) {
        self.guard.renewed();
        self.link.store(Some(link));
        // That a server can be reached says nothing to one who was refused there: he asks it for a write first.
        if lock(&self.state).refused.is_none() {
            self.note_up();
        }
        self.news.ring();
    }

    pub(super) fn disconnected(&self, error: &str) {
        self.note(StoreState::Down, error);
        self.news.ring();
    }

    /// Puts `link` away if it is still the current one, and lets the supervisor open the next.
    pub(super) fn give_up(&self, link: &Arc<Link>, error: &str) {
        if self.uses(link) {
            self.link.store(None);
            self.disconnected(error);
            self.trouble.notify_one();
        }
    }

    pub(super) fn uses(&self, link: &Arc<Link>) -> bool {
        self.link.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, link))
    }

    /// Looks whether the server can keep limits, and says so when it cannot.
    pub(super) async fn examine(&self, link: &Link, deadline: Instant) {
        let findings = preflight::examine(link, !self.name.is_empty(), deadline).await;
        for finding in &findings {
            let known = lock(&self.state).findings.contains(finding);
            if !finding.ok && !known {
                tracing::warn!(
                    node = self.name,
                    check = finding.check.as_str(),
                    "store preflight: {}",
                    finding.message
                );
            }
        }
        lock(&self.state).findings = findings;
    }

    /// The latest findings, with the node's name; none before the first link.
    pub(super) fn findings(&self) -> (String, Vec<Finding>) {
        (self.name.clone(), lock(&self.state).findings.clone())
    }

    /// The state of its breaker, for people.
    pub(super) fn breaker(&self) -> BreakerHealth {
        BreakerHealth { node: self.name.clone(), open: self.guard.is_tripped() }
    }

    /// What is known of it, its error with its name.
    pub(super) fn condition(&self) -> Condition {
        let mut condition = lock(&self.state).condition.clone();
        if !self.name.is_empty() && !condition.error.is_empty() {
            condition.error = format!("{}: {}", self.name, condition.error);
        }
        condition
    }

    /// Notes that it is up, unless it has refused something a moment ago.
    fn note_up(&self) {
        let well = lock(&self.state).refused.take_if(|refused| refused.elapsed() >= WELL_AFTER).is_some();
        if well || lock(&self.state).refused.is_none() {
            self.note(StoreState::Up, "");
        }
    }

    fn note(&self, state: StoreState, error: &str) {
        self.up.store(state == StoreState::Up, Ordering::Relaxed);
        if lock(&self.state).condition.change(state, error) {
            if state == StoreState::Up {
                tracing::info!(node = self.name, "store is up");
            } else {
                tracing::warn!(node = self.name, error, "store is down; the rules' failure modes apply");
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
