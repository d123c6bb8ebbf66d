// SPDX-License-Identifier: Apache-2.0
//! What is known of the store's state, for people. Nothing decides by it.

use serde::Serialize;

use super::preflight::Finding;
use crate::clock::now_ms;

/// Whether the store decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum StoreState {
    /// It does.
    Up,
    /// It does not, or not for all subjects; the rules' failure modes apply.
    Down,
    /// Not tried yet.
    Unknown,
}

/// The store's part of the status document.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreHealth {
    pub(crate) state: StoreState,
    /// Why it is down, with the node's address in a cluster; empty otherwise. Holds no URL and no credentials.
    pub(crate) error: String,
    /// Since when the state holds, milliseconds since the epoch.
    pub(crate) since_ms: u64,
    /// The breakers of all servers.
    pub(crate) breakers: Vec<BreakerHealth>,
    /// What was looked at to find out whether the store can keep limits; empty before the first connection.
    pub(crate) preflight: Vec<Finding>,
}

/// The breaker of one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BreakerHealth {
    /// The server's address in a cluster; empty for the only server of a store.
    pub(crate) node: String,
    /// Whether nobody waits for it.
    pub(crate) open: bool,
}

/// The state of one part of the store: a server, or the map of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) state: StoreState,
    pub(super) error: String,
    pub(super) since_ms: u64,
}

impl Condition {
    pub(super) fn unknown() -> Self {
        Self { state: StoreState::Unknown, error: String::new(), since_ms: now_ms() }
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

    /// The condition of a whole: down while any of its parts is, unknown while any is, up otherwise. The first part
    /// that is down says why.
    pub(super) fn of(parts: impl Iterator<Item = Self>) -> Self {
        let worse = |state| match state {
            StoreState::Up => 0,
            StoreState::Unknown => 1,
            StoreState::Down => 2,
        };
        let mut parts = parts;
        let Some(first) = parts.next() else { return Self::unknown() };
        parts.fold(first, |whole, part| match worse(part.state).cmp(&worse(whole.state)) {
            std::cmp::Ordering::Greater => part,
            std::cmp::Ordering::Less => whole,
            // Up is as old as its youngest part, down as old as its oldest.
            std::cmp::Ordering::Equal if whole.state == StoreState::Down => {
                Self { since_ms: whole.since_ms.min(part.since_ms), ..whole }
            }
            std::cmp::Ordering::Equal => Self { since_ms: whole.since_ms.max(part.since_ms), ..whole },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(state: StoreState, error: &str, since_ms: u64) -> Condition {
        Condition { state, error: error.to_owned(), since_ms }
    }

    #[test]
    fn a_cluster_is_down_while_one_node_is_and_says_which() {
        let whole = Condition::of(
            [
                condition(StoreState::Up, "", 5),
                condition(StoreState::Down, "b: refused", 9),
                condition(StoreState::Unknown, "", 7),
                condition(StoreState::Down, "c: refused", 8),
            ]
            .into_iter(),
        );
        assert_eq!((whole.state, &*whole.error, whole.since_ms), (StoreState::Down, "b: refused", 8));
    }

    #[test]
    fn a_cluster_is_up_since_its_last_node_is() {
        let whole = Condition::of([condition(StoreState::Up, "", 5), condition(StoreState::Up, "", 9)].into_iter());
        assert_eq!((whole.state, whole.since_ms), (StoreState::Up, 9));
        assert_eq!(Condition::of(std::iter::empty()).state, StoreState::Unknown);
    }
}
