// SPDX-License-Identifier: Apache-2.0
//! A cluster: a map from slots to nodes, one link to each primary, and the way of a question that was sent elsewhere.
//!
//! Requests read the map and follow redirections within their deadline. Looking at the cluster, opening links and
//! dropping those of nodes that have left is one task beside them.

mod map;
mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use redis::Value;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use self::map::Map;
use self::view::Seen;
use super::address::Address;
use super::failure::StoreFailure;
use super::health::{BreakerHealth, Condition, StoreState};
use super::link::{Link, Redirection, RedisOrTimeout};
use super::news::News;
use super::node::Node;
use super::preflight::Finding;
use super::script::{Call, Script};
use super::stores::Guards;
use super::supervisor;
use super::url::Access;
use crate::clock::StoreClock;
use crate::pause::jittered;

/// How often the cluster is looked at while all is well: a redirection or a lost link tells of a change much sooner.
const LOOK_CALM: Duration = Duration::from_secs(10);
/// The same while a node is away: its replica may take over at any moment.
const LOOK_ALERT: Duration = Duration::from_millis(250);
/// Between two looks, however many requests were redirected: a slot after the other moves in a resharding.
const LOOK_GAP: Duration = Duration::from_millis(50);

/// How often one question is sent on. A cluster that agrees with itself needs one or two.
const REDIRECTIONS: usize = 5;

/// Nodes without slots that redirections have named, and how long a link to them is kept: a slot that moves to an empty
/// node is asked for there before the map knows the node.
const MOST_VISITED: usize = 64;
const VISITED_FOR: Duration = Duration::from_secs(60);

/// The handle that requests ask through.
pub(super) struct Cluster {
    access: Access,
    seeds: Vec<Address>,
    patience: Duration,
    guards: Arc<Guards>,
    map: ArcSwap<Map>,
    /// Rings when a link came or went, or the map changed.
    news: Arc<News>,
    /// Rings when the map may be wrong.
    stale: Notify,
    visited: Mutex<BTreeMap<Address, Instant>>,
    /// Of the map itself, without the nodes.
    condition: Mutex<Condition>,
}

/// Where to ask, and over what.
type Place = (Arc<Node>, Arc<Link>);

impl Cluster {
    /// A cluster that nobody has looked at yet.
    pub(super) fn new(access: Access, seeds: Vec<Address>, patience: Duration, guards: Arc<Guards>) -> Self {
        Self {
            access,
            seeds,
            patience,
            guards,
            map: ArcSwap::from_pointee(Map::default()),
            news: Arc::new(News::default()),
            stale: Notify::new(),
            visited: Mutex::new(BTreeMap::new()),
            condition: Mutex::new(Condition::unknown()),
        }
    }

    /// Runs a script once on the node that has the call's slot.
    ///
    /// # Errors
    /// The failure, at the latest at `deadline`; at once while the slot's node is known to be away.
    pub(super) async fn run<C: Call>(
        &self,
        script: &Script,
        call: &C,
        deadline: Instant,
    ) -> Result<Value, StoreFailure> {
        let primary = self.map.load().primary(call.slot()).cloned();
        let Some((address, node)) = primary else {
            self.stale.notify_one();
            return Err(self.without_node());
        };
        let mut place = match node.link() {
            Some(link) => (node, link),
            None => self.reach(&address, deadline).await?,
        };
        let (mut asked, mut arriving) = (address, false);
        for _ in 0..=REDIRECTIONS {
            let (node, link) = &place;
            if C::IS_AWAITED && !node.guard.admits() {
                return Err(StoreFailure::Breaker);
            }
            let error = match node.run(link, script, call, arriving, deadline).await {
                Ok(value) => {
                    if C::IS_AWAITED {
                        node.decided();
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            let redirection = error.redirection();
            if C::IS_AWAITED && redirection.is_some() {
                node.answered();
            }
            let next = match redirection {
                Some(Redirection::Moved(next)) => {
                    self.stale.notify_one();
                    arriving = false;
                    next
                }
                Some(Redirection::Ask(next)) => {
                    arriving = true;
                    next
                }
                None => return Err(self.failed(&place, &error, C::IS_AWAITED)),
            };
            asked = next.seen_from(&asked);
            place = self.reach(&asked, deadline).await?;
        }
        Err(StoreFailure::Cluster)
    }

    /// Looks at the cluster for as long as the current runtime lives.
    pub(super) async fn supervise(self: Arc<Self>, clock: Arc<StoreClock>) {
        let mut links = BTreeMap::new();
        loop {
            let looked = Instant::now();
            match self.look().await {
                Ok(seen) => self.adopt(seen, &mut links, &clock),
                Err(error) => self.note(StoreState::Down, &error),
            }
            let pause = if self.condition().state == StoreState::Up { LOOK_CALM } else { LOOK_ALERT };
            tokio::select! {
                () = self.stale.notified() => {}
                () = self.news.notified() => {}
                () = sleep(jittered(pause)) => {}
            }
            sleep_until(looked + LOOK_GAP).await;
        }
    }

    /// See [`super::Store::links`].
    pub(super) fn links(&self) -> u64 {
        self.news.rung()
    }

    /// The state of the whole: of the map and of every node that has slots.
    pub(super) fn condition(&self) -> Condition {
        let own = lock(&self.condition).clone();
        let map = self.map.load();
        Condition::of(std::iter::once(own).chain(map.primaries().map(|node| node.condition())))
    }

    /// The breakers of every node that has slots.
    pub(super) fn breakers(&self) -> Vec<BreakerHealth> {
        self.map.load().primaries().map(|node| node.breaker()).collect()
    }

    /// The latest findings about every node that has slots.
    pub(super) fn findings(&self) -> Vec<(String, Vec<Finding>)> {
        self.map.load().primaries().map(|node| node.findings()).collect()
    }

    /// The node at `address` and its link. Waits for a link that is being opened, and for nothing else.
    async fn reach(&self, address: &Address, deadline: Instant) -> Result<Place, StoreFailure> {
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            // From here on no ring is missed.
            news.as_mut().enable();
            let node = self.map.load().node(address).cloned();
            match node {
                Some(node) => match node.link() {
                    Some(link) => return Ok((node, link)),
                    None if node.condition().state == StoreState::Down => return Err(StoreFailure::Connection),
                    None => {}
                },
                None => self.visit(address),
            }
            if timeout_at(deadline, news).await.is_err() {
                return Err(StoreFailure::Connection);
            }
        }
    }

    /// Lets the task open a link to a node that the map does not know.
    fn visit(&self, address: &Address) {
        let mut visited = lock(&self.visited);
        if visited.len() < MOST_VISITED || visited.contains_key(address) {
            visited.insert(address.clone(), Instant::now());
        }
        self.stale.notify_one();
    }

    fn failed(&self, (node, link): &Place, error: &RedisOrTimeout, awaited: bool) -> StoreFailure {
        let failure = node.failed(link, error, awaited);
        if failure == StoreFailure::Cluster {
            self.note(StoreState::Down, &error.describe());
            self.stale.notify_one();
        }
        failure
    }

    /// Why there is no node for a slot: nothing is known yet, or nobody serves it.
    fn without_node(&self) -> StoreFailure {
        if self.map.load().is_empty() { StoreFailure::Connection } else { StoreFailure::Cluster }
    }

    /// Makes what was seen the map: new nodes get a link, and those that have left lose theirs.
    fn adopt(&self, seen: Seen, links: &mut BTreeMap<Address, AbortHandle>, clock: &Arc<StoreClock>) {
        let visited = {
            let mut visited = lock(&self.visited);
            visited.retain(|_, since| since.elapsed() < VISITED_FOR);
            visited.keys().cloned().collect::<Vec<_>>()
        };
        let before = self.map.load_full();
        let map = Map::new(seen.ranges, visited, |address| {
            let known = before.node(address).cloned();
            known.or_else(|| {
                let client = self.access.client(address).ok()?;
                let (name, guard) = (address.to_string(), self.guards.of(&address.to_string()));
                let node = Arc::new(Node::new(name, client, Arc::clone(&self.news), self.patience, guard));
                let task = tokio::spawn(supervisor::run(Arc::clone(&node), Arc::clone(clock)));
                links.insert(address.clone(), task.abort_handle());
                Some(node)
            })
        });
        links.retain(|address, task| {
            let stays = map.node(address).is_some();
            if !stays {
                task.abort();
            }
            stays
        });
        match (map.gap(), seen.down_at) {
            (Some((first, last)), _) => self.note(StoreState::Down, &format!("no node serves slots {first}-{last}")),
            (None, Some(node)) => self.note(StoreState::Down, &format!("{node}: says that the cluster is down")),
            (None, None) => self.note(StoreState::Up, ""),
        }
        self.map.store(Arc::new(map));
        self.news.ring();
    }

    fn note(&self, state: StoreState, error: &str) {
        if lock(&self.condition).change(state, error) && state == StoreState::Down {
            tracing::warn!(error, "store is down; the rules' failure modes apply");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
