// SPDX-License-Identifier: Apache-2.0
//! What is known of the store's state, for people. Nothing decides by it.

use serde::Serialize;

use crate::clock::now_ms;

/// Whether the store decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum StoreState {
    /// It does.
    Up,
    /// It does not; the rules' failure modes apply.
    Down,
    /// Not tried yet.
    Unknown,
}

/// The store's part of the status document.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreHealth {
    pub(crate) state: StoreState,
    /// Why it is down; empty otherwise. Holds no URL and no credentials.
    pub(crate) error: String,
    /// Since when the state holds, milliseconds since the epoch.
    pub(crate) since_ms: u64,
    /// The server's `maxmemory-policy`; empty while it is not known. Only `noeviction` keeps every counter.
    pub(crate) maxmemory_policy: String,
}

impl StoreHealth {
    pub(super) fn unknown() -> Self {
        Self { state: StoreState::Unknown, error: String::new(), since_ms: now_ms(), maxmemory_policy: String::new() }
    }

    /// Notes a state; true when it is another one than before.
    pub(super) fn change(&mut self, state: StoreState, error: &str) -> bool {
        let changed = self.state != state;
        if changed {
            self.state = state;
            self.since_ms = now_ms();
        }
        if self.error != error {
            error.clone_into(&mut self.error);
        }
        changed
    }
}
