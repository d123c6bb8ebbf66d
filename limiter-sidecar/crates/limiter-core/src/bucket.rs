// SPDX-License-Identifier: Apache-2.0
//! The token bucket, in memory: the same arithmetic and the same bytes as the decision script.
//!
//! Owns the semantics of one call: all enforcing rules pass and all are charged, or nothing changes. Numbers are doubles
//! as in Lua; every input is an integer below 2^53, and the steps are in an order that keeps it so.

mod debt;
mod record;

use std::collections::BTreeMap;

use crate::reply::{CheckReply, Reply, Wait};
use crate::subject::RuleId;

use debt::{Debt, Rate};
use record::{Record, Records};

/// One rule of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge<K> {
    /// Which bucket string.
    pub key: K,
    /// Which record in it.
    pub id: RuleId,
    /// p: what a token weighs, above 0.
    pub weight: u64,
    /// L: what drains per µs, above 0.
    pub drain_per_us: u64,
    /// burst × p, below 2^53.
    pub capacity: u64,
    /// cost × p; 0 asks without taking.
    pub increment: u64,
    /// Whether it can refuse; a shadow rule is charged only if it passes itself.
    pub enforcing: bool,
}

/// One stored bucket string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The records, as the store holds them.
    pub value: Vec<u8>,
    /// ms from the write until the store may forget it, at least 1.
    pub ttl_ms: u64,
}

/// Bucket strings by key: what a store would hold, without expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets<K> {
    strings: BTreeMap<K, Stored>,
}

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self { strings: BTreeMap::new() }
    }
}

/// A rule's state during one call.
struct Judged<'c, K> {
    charge: &'c Charge<K>,
    /// What is owed, perhaps more than the capacity.
    owed: Debt,
    passes: bool,
}

impl<K: Ord + Clone> Buckets<K> {
    /// The string of a key, if it was ever written.
    pub fn stored(&self, key: &K) -> Option<&Stored> {
        self.strings.get(key)
    }

    /// Decides one request at `now_us` (µs since the epoch) and charges it if every enforcing rule passes.
    pub fn decide(&mut self, now_us: u64, charges: &[Charge<K>]) -> Reply {
        let now = exact(now_us);
        let mut read: BTreeMap<&K, Records> = BTreeMap::new();
        for charge in charges {
            read.entry(&charge.key).or_insert_with(|| Records::unpack(self.strings.get(&charge.key)));
        }
        let mut judged: Vec<Judged<'_, K>> = charges
            .iter()
            .map(|charge| judge(charge, read.get(&charge.key).and_then(|records| records.find(charge.id)), now))
            .collect();
        let allowed = judged.iter().all(|rule| rule.passes || !rule.charge.enforcing);
        if allowed {
            for rule in judged.iter_mut().filter(|rule| rule.passes && rule.charge.increment > 0) {
                // What passes owes no more than the capacity.
                rule.owed = rule.owed.charged(rule.owed.units + exact(rule.charge.increment));
                if let Some(records) = read.get_mut(&rule.charge.key) {
                    records.put(rule.record(now));
                }
            }
            for (key, records) in read.into_iter().filter(|(_, records)| records.changed()) {
                self.strings.insert(key.clone(), records.pack(now));
            }
        }
        Reply { allowed, checks: judged.iter().map(Judged::reply).collect() }
    }
}

impl<K> Judged<'_, K> {
    fn record(&self, now: f64) -> Record {
        Record { id: self.charge.id, at: now, debt: self.owed.units, rate: self.charge.rate() }
    }

    fn reply(&self) -> CheckReply {
        let (capacity, increment) = (exact(self.charge.capacity), exact(self.charge.increment));
        let wait = if self.passes {
            Wait::Us(0)
        } else if self.charge.increment > self.charge.capacity {
            Wait::Never
        } else {
            Wait::Us(self.owed.drains_in_us(increment - (capacity - self.owed.units)))
        };
        CheckReply {
            ok: self.passes,
            remaining: whole(((capacity - self.owed.units).max(0.0) / exact(self.charge.weight)).floor()),
            wait,
            reset_us: self.owed.drains_in_us(self.owed.units),
        }
    }
}

impl<K> Charge<K> {
    fn rate(&self) -> Rate {
        Rate { weight: exact(self.weight), drain_per_us: exact(self.drain_per_us) }
    }
}

/// What the rule's subject owes at `now`, and whether the increment fits on top.
fn judge<'c, K>(charge: &'c Charge<K>, record: Option<&Record>, now: f64) -> Judged<'c, K> {
    let rate = charge.rate();
    let owed = record.map_or(Debt::none(rate), |record| Debt::of(record, rate, now));
    let capacity = exact(charge.capacity);
    // A lowered limit binds at once, and what costs nothing always passes.
    let debt = owed.units.min(capacity);
    // In this order no step leaves the exact integers; debt + increment might.
    Judged { charge, owed, passes: exact(charge.increment) <= capacity - debt }
}

/// Integers of this module are below 2^53, where doubles hold every one. What saturates above is above every capacity.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53, see above")]
fn exact(number: u64) -> f64 {
    number as f64
}

/// Back from a double that holds a whole number from 0 to 2^53.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range; the cast saturates")]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests;
