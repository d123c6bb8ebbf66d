// SPDX-License-Identifier: Apache-2.0
//! The shared store, one server or a cluster: asks it one question per request (a cluster one per slot) and never waits
//! for it longer than the deadline.
//!
//! A request finds an open link or fails at once; connecting is the supervisor's work, on no request's path. Only the very
//! first attempt is waited for, within the deadline. What a failure means for the request is not known here.

mod address;
mod breaker;
mod cluster;
mod dial;
mod failure;
mod guard;
mod health;
mod link;
mod news;
mod node;
mod pipe;
mod preflight;
mod resp;
mod script;
mod slots;
mod stores;
mod supervisor;
mod url;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use limiter_core::{BucketKey, StoreCall};
use redis::Value;
use tokio::time::Instant;

use self::cluster::Cluster;
use self::health::{BreakerHealth, Condition, StoreState};
use self::news::News;
use self::node::Node;
use self::script::{Call, Refund, Script};
use self::stores::Guards;
use self::url::Target;
use crate::clock::StoreClock;
use crate::options::ConfigError;

pub(crate) use self::failure::StoreFailure;
pub(crate) use self::health::StoreHealth;
pub(crate) use self::preflight::Finding;
pub use self::script::scripts;
pub(crate) use self::stores::Stores;

/// The handle that the requests of one event loop ask through.
pub(crate) struct Store {
    topology: Topology,
    /// Set once the first attempt to reach every part of it has ended.
    tried: AtomicBool,
}

enum Topology {
    /// One server, which has all keys.
    Single(Arc<Node>),
    /// A cluster, whose nodes share the slots.
    Cluster(Arc<Cluster>),
}

impl Store {
    /// A store that is not connected yet, and for which a decision waits for `patience`. `guards`: its servers' breakers.
    ///
    /// # Errors
    /// [`ConfigError`] when `url` is none of a store; the message does not quote it.
    fn new(url: &str, patience: Duration, guards: &Arc<Guards>) -> Result<Self, ConfigError> {
        let topology = match url::target(url)? {
            Target::Single(client) => {
                let news = Arc::new(News::default());
                Topology::Single(Arc::new(Node::new(String::new(), client, news, patience, guards.of(""))))
            }
            Target::Cluster { access, seeds } => {
                Topology::Cluster(Arc::new(Cluster::new(access, seeds, patience, Arc::clone(guards))))
            }
        };
        Ok(Self { topology, tried: AtomicBool::new(false) })
    }

    /// Connects, and reconnects for as long as the current runtime lives. `clock` learns from each new link.
    pub(crate) async fn supervise(self: Arc<Self>, clock: Arc<StoreClock>) {
        match &self.topology {
            Topology::Single(node) => supervisor::run(Arc::clone(node), clock).await,
            Topology::Cluster(cluster) => Arc::clone(cluster).supervise(clock).await,
        }
    }

    /// Whether the keys of one request may be on several servers.
    pub(crate) fn is_split(&self) -> bool {
        matches!(self.topology, Topology::Cluster(_))
    }

    /// How checks must be grouped: by the slot of their key in a cluster, and not at all for one server.
    pub(crate) fn grouping(&self) -> Option<&'static dyn Fn(&BucketKey) -> u16> {
        match &self.topology {
            Topology::Single(_) => None,
            Topology::Cluster(_) => Some(&|key| slots::slot_of(key.as_bytes())),
        }
    }

    /// Runs the decision script once: the bytes of its reply.
    ///
    /// # Errors
    /// The failure, at the latest at `deadline`; at once while there is no link.
    pub(crate) async fn decide(&self, call: &StoreCall, deadline: Instant) -> Result<Vec<u8>, StoreFailure> {
        match self.run(&script::DECIDE, call, deadline).await? {
            Value::BulkString(reply) => Ok(reply),
            _ => Err(StoreFailure::Protocol),
        }
    }

    /// Gives back what a call has charged at `charged_at_us`, the time of its reply. `call`: only what was charged.
    ///
    /// Never repeat it after an error: the store may have done it, and done twice it gives away what was not taken.
    ///
    /// # Errors
    /// The failure, at the latest at `deadline`.
    pub(crate) async fn refund(
        &self,
        call: &StoreCall,
        charged_at_us: u64,
        deadline: Instant,
    ) -> Result<(), StoreFailure> {
        let refund = Refund { call, charged_at_us };
        self.run(&script::REFUND, &refund, deadline).await.map(drop)
    }

    async fn run<C: Call>(&self, script: &Script, call: &C, deadline: Instant) -> Result<Value, StoreFailure> {
        let node = match &self.topology {
            Topology::Single(node) => node,
            Topology::Cluster(cluster) => return cluster.run(script, call, deadline).await,
        };
        let link = node.first_link(deadline).await.ok_or(StoreFailure::Connection)?;
        if C::IS_AWAITED && !node.guard.admits() {
            return Err(StoreFailure::Breaker);
        }
        match node.run(&link, script, call, false, deadline).await {
            Ok(value) => {
                if C::IS_AWAITED {
                    node.decided();
                }
                Ok(value)
            }
            Err(error) => Err(node.failed(&link, &error, C::IS_AWAITED)),
        }
    }

    /// The breakers of all servers.
    fn breakers(&self) -> Vec<BreakerHealth> {
        match &self.topology {
            Topology::Single(node) => vec![node.breaker()],
            Topology::Cluster(cluster) => cluster.breakers(),
        }
    }

    /// For how many servers nobody waits.
    fn open_breakers(&self) -> usize {
        self.breakers().iter().filter(|breaker| breaker.open).count()
    }

    /// What the preflight found, by node.
    fn findings(&self) -> Vec<(String, Vec<Finding>)> {
        match &self.topology {
            Topology::Single(node) => vec![node.findings()],
            Topology::Cluster(cluster) => cluster.findings(),
        }
    }

    /// Whether the first attempt to reach it has ended, either way. It takes at most two seconds, also when nothing answers.
    /// Ready before that, a limiter that was just started would let its first requests pass uncounted.
    fn was_tried(&self) -> bool {
        if !self.tried.load(Ordering::Relaxed) && self.condition().state != StoreState::Unknown {
            self.tried.store(true, Ordering::Relaxed);
        }
        self.tried.load(Ordering::Relaxed)
    }

    /// Changes with every link that comes or goes: what was said before may have been forgotten since.
    fn links(&self) -> u64 {
        match &self.topology {
            Topology::Single(node) => node.news.rung(),
            Topology::Cluster(cluster) => cluster.links(),
        }
    }

    fn condition(&self) -> Condition {
        match &self.topology {
            Topology::Single(node) => node.condition(),
            Topology::Cluster(cluster) => cluster.condition(),
        }
    }
}
