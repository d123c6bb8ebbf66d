// SPDX-License-Identifier: Apache-2.0
//! The store as each event loop reaches it: over links of its own, so that no answer crosses from one thread to another.
//!
//! What is known of a server's failures is shared: the breaker judges by what all loops have asked, and one probe is one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::guard::Guard;
use super::health::{Condition, StoreState};
use super::{Finding, Store, StoreHealth, preflight};
use crate::options::ConfigError;

/// One store for each event loop.
pub(crate) struct Stores(Box<[Arc<Store>]>);

/// The breakers of all servers, by the servers' names.
#[derive(Default)]
pub(super) struct Guards(Mutex<BTreeMap<String, Weak<Guard>>>);

impl Stores {
    /// As many handles on the store at `url`, none of them connected yet.
    ///
    /// # Errors
    /// As [`Store::new`].
    pub(crate) fn new(url: &str, patience: Duration, loops: usize) -> Result<Self, ConfigError> {
        let guards = Arc::new(Guards::default());
        let stores = (0..loops).map(|_| Store::new(url, patience, &guards).map(Arc::new));
        Ok(Self(stores.collect::<Result<_, _>>()?))
    }

    /// That of each event loop.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Arc<Store>> {
        self.0.iter()
    }

    /// What is known about the store, for people: the worst that any loop knows.
    pub(crate) fn health(&self) -> StoreHealth {
        let Condition { state, error, since_ms } = self.condition();
        let breakers = self.0.first().map(|store| store.breakers()).unwrap_or_default();
        StoreHealth { state, error, since_ms, breakers, preflight: self.findings() }
    }

    /// For how many servers nobody waits.
    pub(crate) fn open_breakers(&self) -> usize {
        self.0.first().map_or(0, |store| store.open_breakers())
    }

    /// What the preflight found, over all nodes. Every loop looks at the same servers.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        preflight::of_all(&self.0.first().map(|store| store.findings()).unwrap_or_default())
    }

    /// Whether the store decides, as far as is known.
    pub(crate) fn is_up(&self) -> bool {
        self.condition().state == StoreState::Up
    }

    /// Whether every loop's first attempt to reach it has ended, either way.
    pub(crate) fn was_tried(&self) -> bool {
        self.0.iter().all(|store| store.was_tried())
    }

    /// Changes with every link of any loop that comes or goes: what was said before may have been forgotten since.
    pub(crate) fn links(&self) -> u64 {
        self.0.iter().map(|store| store.links()).sum()
    }

    fn condition(&self) -> Condition {
        Condition::of(self.0.iter().map(|store| store.condition()))
    }
}

impl Guards {
    /// The breaker of the server with this name.
    pub(super) fn of(&self, name: &str) -> Arc<Guard> {
        let mut guards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nodes of a cluster come and go; those that are gone for every loop are forgotten.
        guards.retain(|_, guard| guard.strong_count() > 0);
        guards.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
            let guard = Arc::new(Guard::default());
            guards.insert(name.to_owned(), Arc::downgrade(&guard));
            guard
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_share_the_breaker_of_a_server_and_no_other() {
        let guards = Guards::default();
        let (one, again, other) = (guards.of("a:1"), guards.of("a:1"), guards.of("b:1"));
        assert!(Arc::ptr_eq(&one, &again) && !Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn a_server_that_left_and_came_back_starts_with_a_closed_breaker() {
        let guards = Guards::default();
        let before = guards.of("a:1");
        before.decided();
        drop(before);
        assert_eq!((0, 0), guards.of("a:1").lateness());
    }
}
