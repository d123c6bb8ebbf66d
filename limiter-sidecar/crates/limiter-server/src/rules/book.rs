// SPDX-License-Identifier: Apache-2.0
//! The rules in force, and the one way in which others take their place.
//!
//! Requests read without a lock. Documents are parsed on the thread that offers them, never on the data plane's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwapOption, Guard};
use limiter_core::HashKey;
use limiter_core::ruleset::Document;
use serde::{Deserialize, Serialize};

use super::live::Live;
use super::state_dir::StateDir;
use super::unpack::unpack;
use crate::clock::now_ms;
use crate::metrics::Metrics;

/// Where a document came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Source {
    Watch,
    Mount,
    State,
    Push,
}

/// A document that was refused while the last good one stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{error}")]
pub(crate) struct Refusal {
    /// As far as it could be read; 0 otherwise.
    revision: u64,
    /// As far as it could be read; empty otherwise.
    digest: String,
    /// What is wrong, with the path of the member.
    error: String,
    at_ms: u64,
}

/// What became of a document that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// It is in force.
    Applied,
    /// A document of this revision or a later one is in force already.
    NotNewer { offered: u64, running: u64 },
}

/// The book.
pub(crate) struct RuleBook {
    gateway: String,
    name: String,
    hash_key: HashKey,
    metrics: Arc<Metrics>,
    state: Option<StateDir>,
    live: ArcSwapOption<Live>,
    desk: Mutex<Desk>,
}

/// What only the one who is changing the book may touch.
#[derive(Default)]
struct Desk {
    refusal: Option<Refusal>,
    /// The ruleset before the one in force, kept so that no request is the one to free a big ruleset.
    retired: Option<Arc<Live>>,
}

/// Just enough of a document to talk about one that is wrong.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Peek {
    revision: u64,
    digest: String,
}

impl RuleBook {
    /// A book without rules, for the ruleset called `name` of `gateway`.
    pub(crate) fn new(
        (gateway, name): (String, String),
        hash_key: HashKey,
        metrics: Arc<Metrics>,
        state: Option<StateDir>,
    ) -> Self {
        Self { gateway, name, hash_key, metrics, state, live: ArcSwapOption::empty(), desk: Mutex::default() }
    }

    pub(crate) fn gateway(&self) -> &str {
        &self.gateway
    }

    /// The ruleset's name, as `/status` lists it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The rules in force, for the length of one look.
    pub(crate) fn live(&self) -> Guard<Option<Arc<Live>>> {
        self.live.load()
    }

    /// The rules in force, for as long as a request needs them.
    pub(crate) fn live_for_request(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    pub(crate) fn has_rules(&self) -> bool {
        self.live.load().is_some()
    }

    /// The last document that was refused after the one in force.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.desk().refusal.clone()
    }

    /// Brings back what was in force before a restart.
    pub(crate) fn restore(&self) {
        match self.state.as_ref().map(StateDir::load).transpose() {
            Ok(document) => {
                if let Some(document) = document.flatten() {
                    // A refusal is remembered, and the other sources are still to come.
                    let _refused = self.offer(&document, Source::State);
                }
            }
            Err(error) => tracing::warn!(%error, "the state directory cannot be read"),
        }
    }

    /// Puts a document into force if it is good and newer.
    ///
    /// # Errors
    /// [`Refusal`] when it is bad; the last good one stays and the refusal shows in `/status`.
    pub(crate) fn offer(&self, document: &[u8], source: Source) -> Result<Offer, Refusal> {
        let mut desk = self.desk();
        let json = match unpack(document) {
            Ok(json) => json,
            Err(error) => return Err(self.refuse(&mut desk, Peek::default(), error)),
        };
        let peek: Peek = serde_json::from_slice(&json).unwrap_or_default();
        let running = self.live.load().as_ref().map_or(0, |live| live.ruleset.revision());
        if peek.revision > 0 && peek.revision <= running {
            return Ok(Offer::NotNewer { offered: peek.revision, running });
        }
        match self.compile(&json, source) {
            Ok(live) => {
                self.put(&mut desk, live);
                if source != Source::State {
                    self.keep(document);
                }
                Ok(Offer::Applied)
            }
            Err(error) => Err(self.refuse(&mut desk, peek, error)),
        }
    }

    fn compile(&self, json: &[u8], source: Source) -> Result<Live, String> {
        let document = Document::parse(json).map_err(|error| error.to_string())?;
        if document.gateway != self.gateway {
            return Err(format!(
                "gateway: this limiter serves {:?}, the document is for {:?}",
                self.gateway, document.gateway
            ));
        }
        let before = self.live.load();
        Live::compile(&document, &self.hash_key, before.as_deref(), (source, now_ms()))
            .map_err(|error| error.to_string())
    }

    fn put(&self, desk: &mut Desk, live: Live) {
        let live = Arc::new(live);
        tracing::info!(
            revision = live.ruleset.revision(), digest = live.ruleset.digest(), source = ?live.source,
            policies = live.ruleset.policies().len(), overrides = live.ruleset.override_count(), "rules are in force"
        );
        self.metrics.ruleset_applied.inc();
        self.metrics.ruleset_revision.set(live.ruleset.revision());
        let before = self.live.swap(Some(Arc::clone(&live)));
        for gone in before.iter().flat_map(|before| before.rules_not_in(&live)) {
            self.metrics.forget_rule(&gone.policy, &gone.name);
        }
        *desk = Desk { refusal: None, retired: before };
    }

    fn refuse(&self, desk: &mut Desk, peek: Peek, error: String) -> Refusal {
        let refusal = Refusal { revision: peek.revision, digest: peek.digest, error, at_ms: now_ms() };
        match &desk.refusal {
            // The same document again, after a reconnect.
            Some(before) if before.is_same(&refusal) => {}
            _ => {
                self.metrics.ruleset_rejected.inc();
                tracing::warn!(
                    revision = refusal.revision,
                    error = refusal.error,
                    "a ruleset was refused; the last good rules stay"
                );
                desk.refusal = Some(refusal.clone());
            }
        }
        refusal
    }

    fn keep(&self, document: &[u8]) {
        if let Some(Err(error)) = self.state.as_ref().map(|state| state.save(document)) {
            tracing::warn!(%error, "the rules could not be kept for a restart");
        }
    }

    /// Frees the ruleset that was replaced. Called a while after a change, when no request uses it any more.
    pub(crate) fn tidy(&self) {
        self.desk().retired = None;
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refusal {
    fn is_same(&self, other: &Self) -> bool {
        (self.revision, &self.digest, &self.error) == (other.revision, &other.digest, &other.error)
    }
}
