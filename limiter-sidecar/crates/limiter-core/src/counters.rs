// SPDX-License-Identifier: Apache-2.0
//! All algorithms in memory: the same arithmetic as the decision script.
//!
//! Owns the semantics of one call: all enforcing rules pass and all are charged, or nothing changes; and what it means to
//! give a charge back. Forgets nothing by itself: [`crate::local`] bounds it.

mod bucket;
mod debt;
mod log;
pub(crate) mod refund;
mod sliding;
mod state;
mod window;

use std::collections::HashMap;
use std::hash::Hash;

use crate::limit::{Demand, Kind};
use crate::reply::{Answer, CheckReply, Reply};
use crate::subject::RuleId;

use state::{Records, State};

/// One rule of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge<K> {
    /// Which subject under which policy.
    pub key: K,
    /// Which record of it.
    pub id: RuleId,
    /// Whether it can refuse; a shadow rule is charged only if it passes itself.
    pub enforcing: bool,
    /// What is asked for.
    pub demand: Demand,
}

/// Counters by key.
#[derive(Clone, Debug, PartialEq)]
pub struct Counters<K: Eq + Hash> {
    records: HashMap<K, Records>,
}

/// Where one rule's subject stands during a call.
enum Account {
    Bucket(bucket::Account),
    Window(window::Account),
    Sliding(sliding::Account),
    Log(log::Account),
}

/// The time lies outside the windows that a call named.
struct Stale {
    now_us: u64,
}

impl<K: Eq + Hash> Default for Counters<K> {
    fn default() -> Self {
        Self { records: HashMap::new() }
    }
}

impl<K: Eq + Hash + Clone> Counters<K> {
    /// Decides one request at `now_us` (µs since the epoch) and charges it if every enforcing rule passes.
    pub fn decide(&mut self, now_us: u64, charges: &[Charge<K>]) -> Answer {
        let accounts = charges.iter().map(|charge| {
            let state = self.records.get(&charge.key).and_then(|records| records.find(charge.id));
            Account::open(&charge.demand, state, now_us)
        });
        let mut accounts: Vec<Account> = match accounts.collect() {
            Ok(accounts) => accounts,
            Err(Stale { now_us }) => return Answer::Stale { now_us },
        };
        let allowed = accounts.iter().zip(charges).all(|(account, charge)| account.passes() || !charge.enforcing);
        if allowed {
            for (account, charge) in accounts.iter_mut().zip(charges) {
                if account.passes() && charge.demand.takes() {
                    let records = self.records.entry(charge.key.clone()).or_default();
                    records.drop_ended(now_us);
                    account.charge(records.slot(charge.id));
                }
            }
        }
        let checks = accounts.iter().map(Account::reply).collect();
        Answer::Decided(Reply { allowed, now_us, checks })
    }

    /// When nothing of a key counts any more, in µs since the epoch; nothing for a key that was never charged.
    pub fn ends_us(&self, key: &K) -> Option<u64> {
        self.records.get(key).map(Records::ends_us)
    }

    /// How many times are kept in logs of a key.
    pub(crate) fn logged(&self, key: &K) -> usize {
        self.records.get(key).map_or(0, Records::logged)
    }

    /// Forgets a key.
    pub fn forget(&mut self, key: &K) {
        self.records.remove(key);
    }
}

impl Demand {
    /// Whether it takes anything; a cost of 0 only asks.
    fn takes(&self) -> bool {
        self.numbers[0] > 0
    }
}

impl Account {
    fn open(demand: &Demand, state: Option<&State>, now_us: u64) -> Result<Self, Stale> {
        let state = state.filter(|state| state.counts_at(now_us));
        Ok(match demand.kind {
            Kind::TokenBucket | Kind::LeakyBucket => Self::Bucket(bucket::Account::open(demand, state, now_us)),
            Kind::FixedWindow | Kind::CalendarWindow => Self::Window(window::Account::open(demand, state, now_us)?),
            Kind::SlidingWindowCounter => Self::Sliding(sliding::Account::open(demand, state, now_us)),
            Kind::SlidingWindowLog => Self::Log(log::Account::open(demand, state, now_us)),
        })
    }

    fn passes(&self) -> bool {
        match self {
            Self::Bucket(account) => account.passes(),
            Self::Window(account) => account.passes(),
            Self::Sliding(account) => account.passes(),
            Self::Log(account) => account.passes(),
        }
    }

    /// Takes what is asked for and keeps that in `state`.
    fn charge(&mut self, state: &mut Option<State>) {
        match self {
            Self::Bucket(account) => account.charge(state),
            Self::Window(account) => account.charge(state),
            Self::Sliding(account) => account.charge(state),
            Self::Log(account) => account.charge(state),
        }
    }

    fn reply(&self) -> CheckReply {
        match self {
            Self::Bucket(account) => account.reply(),
            Self::Window(account) => account.reply(),
            Self::Sliding(account) => account.reply(),
            Self::Log(account) => account.reply(),
        }
    }
}

/// Integers below 2^53, of which doubles hold every one. What saturates above is above every limit.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53, see above")]
fn exact(number: u64) -> f64 {
    number as f64
}

/// Back from a double that holds a whole number from 0 to 2^53.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range; the cast saturates")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests;
