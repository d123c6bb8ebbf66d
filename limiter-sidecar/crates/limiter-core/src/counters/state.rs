// SPDX-License-Identifier: Apache-2.0
//! What is remembered of a subject: one record for each rule that has something to say.

use super::debt::Rate;
use super::whole;
use crate::subject::RuleId;

/// One rule's state. Times are µs since the epoch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// Of a bucket.
    Debt {
        /// When it was last charged.
        at: f64,
        /// What was owed then, in 1/L µs.
        debt: f64,
        /// The rate it was charged under, whose units the debt is in.
        rate: Rate,
    },
    /// Of a fixed window.
    Window {
        at: u64,
        count: u64,
        /// When the window ends that was charged.
        end: u64,
    },
    /// Of a sliding window counter.
    Sliding {
        at: u64,
        /// In the window of `at`.
        current: u64,
        /// In the window before.
        previous: u64,
        period: u64,
    },
    /// Of a log.
    Log {
        at: u64,
        period: u64,
        /// One for each unit of cost, the oldest first.
        times: Vec<u64>,
    },
}

/// All records of one key, in the order that they were made in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Records {
    list: Vec<(RuleId, Option<State>)>,
}

impl State {
    /// When it was last charged.
    pub(super) fn at_us(&self) -> u64 {
        match self {
            Self::Debt { at, .. } => whole(*at),
            Self::Window { at, .. } | Self::Sliding { at, .. } | Self::Log { at, .. } => *at,
        }
    }

    /// When it has nothing to say any more.
    pub(super) fn ends_us(&self) -> u64 {
        match self {
            Self::Debt { at, debt, rate } => whole(at + (debt / rate.drain_per_us).ceil()),
            Self::Window { end, .. } => *end,
            Self::Sliding { at, period, .. } => at - at % period + 2 * period,
            Self::Log { at, period, .. } => at + period,
        }
    }

    /// Whether it counts at `now_us`: a record past its own end says nothing, whether or not it was dropped. A debt says
    /// so by itself.
    pub(super) fn counts_at(&self, now_us: u64) -> bool {
        matches!(self, Self::Debt { .. }) || now_us < self.ends_us()
    }
}

impl Records {
    pub(super) fn find(&self, id: RuleId) -> Option<&State> {
        self.list.iter().find(|(known, _)| *known == id)?.1.as_ref()
    }

    /// The place for a rule's state.
    pub(super) fn slot(&mut self, id: RuleId) -> &mut Option<State> {
        let place = self.list.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            self.list.push((id, None));
            self.list.len() - 1
        });
        &mut self.list[place].1
    }

    /// Puts what `change` makes of a rule's state in its place, if there is one.
    pub(super) fn change(&mut self, id: RuleId, change: impl FnOnce(State) -> Option<State>) {
        let Some(place) = self.list.iter().position(|(known, _)| *known == id) else { return };
        match self.list[place].1.take().and_then(change) {
            Some(state) => self.list[place].1 = Some(state),
            None => drop(self.list.remove(place)),
        }
    }

    /// Drops what has nothing to say at `now_us`.
    pub(super) fn drop_ended(&mut self, now_us: u64) {
        self.list.retain(|(_, state)| state.as_ref().is_some_and(|state| now_us < state.ends_us()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// When the last of them ends.
    pub(super) fn ends_us(&self) -> u64 {
        self.list.iter().filter_map(|(_, state)| state.as_ref().map(State::ends_us)).max().unwrap_or(0)
    }

    /// How many times are kept in logs.
    pub(super) fn logged(&self) -> usize {
        let logged = |state: &State| if let State::Log { times, .. } = state { times.len() } else { 0 };
        self.list.iter().filter_map(|(_, state)| state.as_ref().map(logged)).sum()
    }
}
