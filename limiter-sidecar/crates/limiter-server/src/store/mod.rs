// SPDX-License-Identifier: Apache-2.0
//! The shared store, one server or a cluster: asks it one question per request (a cluster one per slot) and never waits
//! for it longer than the deadline.
//!
//! A request finds an open link or fails at once; connecting is the supervisor's work, on no request's path. What a
//! failure means for the request is not known here.

mod address;
mod cluster;
mod failure;
mod health;
mod link;
mod node;
mod preflight;
mod script;
mod slots;
mod supervisor;
mod url;

use std::sync::Arc;

use redis::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::cluster::Cluster;
use self::health::StoreState;
use self::node::Node;
use self::script::Script;
use self::url::Target;
use crate::options::ConfigError;

pub(crate) use self::failure::StoreFailure;
pub(crate) use self::health::StoreHealth;
pub(crate) use self::preflight::Finding;
pub(crate) use self::script::Call;
pub use self::script::scripts;
pub(crate) use self::slots::slot_of;

/// The handle that requests ask through.
pub(crate) struct Store(Topology);

enum Topology {
    /// One server, which has all keys.
    Single(Arc<Node>),
    /// A cluster, whose nodes share the slots.
    Cluster(Arc<Cluster>),
}

impl Store {
    /// A store that is not connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] when `url` is none of a store; the message does not quote it.
    pub(crate) fn new(url: &str) -> Result<Self, ConfigError> {
        Ok(Self(match url::target(url)? {
            Target::Single(client) => {
                Topology::Single(Arc::new(Node::new(String::new(), client, Arc::new(Notify::new()))))
            }
            Target::Cluster { access, seeds } => Topology::Cluster(Arc::new(Cluster::new(access, seeds))),
        }))
    }

    /// Connects, and reconnects for as long as the current runtime lives.
    pub(crate) async fn supervise(self: Arc<Self>) {
        match &self.0 {
            Topology::Single(node) => supervisor::run(Arc::clone(node)).await,
            Topology::Cluster(cluster) => Arc::clone(cluster).supervise().await,
        }
    }

    /// Runs the decision script once.
    ///
    /// # Errors
    /// The failure, at the latest at `deadline`; at once while there is no link.
    pub(crate) async fn decide(&self, call: &impl Call, deadline: Instant) -> Result<Vec<i64>, StoreFailure> {
        integers(self.run(&script::DECIDE, call, deadline).await?).ok_or(StoreFailure::Protocol)
    }

    async fn run(&self, script: &Script, call: &impl Call, deadline: Instant) -> Result<Value, StoreFailure> {
        let node = match &self.0 {
            Topology::Single(node) => node,
            Topology::Cluster(cluster) => return cluster.run(script, call, deadline).await,
        };
        let link = node.link().ok_or(StoreFailure::Connection)?;
        match node.run(&link, script, call, false, deadline).await {
            Ok(value) => {
                node.decided();
                Ok(value)
            }
            Err(error) => Err(node.failed(&link, &error)),
        }
    }

    /// What is known about the store, for people.
    pub(crate) fn health(&self) -> StoreHealth {
        let condition = match &self.0 {
            Topology::Single(node) => node.condition(),
            Topology::Cluster(cluster) => cluster.condition(),
        };
        let health::Condition { state, error, since_ms } = condition;
        StoreHealth { state, error, since_ms, preflight: self.findings() }
    }

    /// What the preflight found, over all nodes.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        preflight::of_all(&match &self.0 {
            Topology::Single(node) => vec![node.findings()],
            Topology::Cluster(cluster) => cluster.findings(),
        })
    }

    /// Whether the store decides, as far as is known.
    pub(crate) fn is_up(&self) -> bool {
        self.health().state == StoreState::Up
    }
}

/// The script's flat answer.
fn integers(value: Value) -> Option<Vec<i64>> {
    let Value::Array(items) = value else { return None };
    items.into_iter().map(|item| if let Value::Int(integer) = item { Some(integer) } else { None }).collect()
}
