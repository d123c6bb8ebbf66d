// SPDX-License-Identifier: Apache-2.0
//! The rules in force, and the one way in which others take their place.
//!
//! Requests read without a lock. Documents are parsed on the thread that offers them, never on the data plane's, and with no
//! lock that anybody waits for who is not offering one himself.

use std::collections::HashSet;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwapOption, Guard};
use limiter_core::ruleset::Document;
use limiter_core::{BreakGlass, HashKey, Slot};
use serde::{Deserialize, Serialize};

use super::live::{Live, LiveRule};
use super::state_dir::StateDir;
use super::unpack::unpack;
use crate::clock::now_ms;
use crate::metrics::{Metrics, RuleSeries};

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
    /// Held by whoever is changing the book, for as long as that takes.
    pen: Mutex<()>,
    /// Held for moments.
    desk: Mutex<Desk>,
}

/// What lies beside the book.
#[derive(Default)]
struct Desk {
    refusal: Option<Refusal>,
    /// The rulesets before the one in force, kept so that no request is the one to free a big ruleset.
    retired: Vec<Arc<Live>>,
    /// Policies, names and slots of rules that went; their series are still to be ended.
    gone: Vec<(String, String, Option<Slot>)>,
    /// What is switched off without the operator.
    glass: BreakGlass,
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
        let (live, pen, desk) = (ArcSwapOption::empty(), Mutex::default(), Mutex::default());
        Self { gateway, name, hash_key, metrics, state, live, pen, desk }
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
        let _pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        let json = match unpack(document) {
            Ok(json) => json,
            Err(error) => return Err(self.refuse(Peek::default(), error)),
        };
        let peek: Peek = serde_json::from_slice(&json).unwrap_or_default();
        let running = self.live.load().as_ref().map_or(0, |live| live.ruleset.revision());
        if peek.revision > 0 && peek.revision <= running {
            return Ok(Offer::NotNewer { offered: peek.revision, running });
        }
        match self.compile(&json, source) {
            Ok(live) => {
                self.put(live);
                if source != Source::State {
                    self.keep(document);
                }
                Ok(Offer::Applied)
            }
            Err(error) => Err(self.refuse(peek, error)),
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

    /// Has `glass` hold from now on, for these rules and for all that follow.
    pub(super) fn break_glass(&self, glass: BreakGlass) {
        let mut desk = self.desk();
        desk.glass = glass;
        if let Some(before) = self.live.load_full() {
            let replaced = self.live.swap(Some(Arc::new(before.under(&desk.glass))));
            desk.retired.extend(replaced);
        }
    }

    fn put(&self, mut live: Live) {
        tracing::info!(
            revision = live.ruleset.revision(), digest = live.ruleset.digest(), source = ?live.source,
            policies = live.ruleset.policies().len(), overrides = live.ruleset.override_count(), "rules are in force"
        );
        self.metrics.ruleset_applied.inc();
        self.metrics.ruleset_revision.set(live.ruleset.revision());
        let before = self.live.load_full();
        let gone = before.iter().flat_map(|before| before.rules_not_in(&live));
        let gone: Vec<_> = gone.map(|rule| (rule.policy.clone(), rule.name.clone(), rule.slot)).collect();
        let mut desk = self.desk();
        live.caps = desk.glass.caps(&live.ruleset);
        // Not what was there a moment ago: break glass may have put another one in its place.
        let replaced = self.live.swap(Some(Arc::new(live)));
        desk.refusal = None;
        desk.retired.extend(replaced);
        desk.gone.extend(gone);
    }

    fn refuse(&self, peek: Peek, error: String) -> Refusal {
        let mut desk = self.desk();
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

    /// Frees the rulesets that were replaced and that no request uses any more. Takes a while for big ones.
    pub(crate) fn free(&self) {
        let unused: Vec<_> = self.desk().retired.extract_if(.., |live| Arc::strong_count(live) == 1).collect();
        drop(unused);
    }

    /// Ends the series of rules that went. Requests count by the same table, so a thread that gives way must not do this:
    /// they would wait for it.
    pub(crate) fn forget_gone(&self) {
        let mut desk = self.desk();
        let gone = take(&mut desk.gone);
        if gone.is_empty() {
            return;
        }
        // A rule may have come back since. With the desk held, none does while this looks.
        let live = self.live.load_full();
        let present: HashSet<_> = live.iter().flat_map(|live| &*live.rules).map(LiveRule::identity).collect();
        for (policy, rule, slot) in &gone {
            if !present.contains(&(&**policy, &**rule, *slot)) {
                self.metrics.forget_rule(RuleSeries { policy, rule, slot: *slot });
            }
        }
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
