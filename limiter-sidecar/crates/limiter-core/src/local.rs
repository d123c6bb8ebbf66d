// SPDX-License-Identifier: Apache-2.0
//! Counters in this limiter's own memory, bounded: for the rules whose scope is one instance, and for the shares that this
//! limiter grants by itself while the store is away.
//!
//! Owns who is forgotten. What has ended goes first and costs nobody anything; beyond that the least recently used, who
//! then starts afresh. That is counted, since a bound that is hit lets some pass who should not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use crate::counters::{Charge, Counters};
use crate::reply::Answer;
use crate::subject::BucketKey;

/// How many keys that have ended one call frees. All windows of a rule end in the same moment, and whoever comes first after
/// it must not pay for everybody: 100,000 of them take a fifth of a second. What has ended counts for nothing while it waits.
const FREED_AT_ONCE: usize = 64;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Subjects, under each policy that counts them.
    pub subjects: usize,
    /// Times in the logs of all of them.
    pub logged: usize,
}

/// 100,000 subjects of some hundred bytes each, and at most 64 MiB of times.
impl Default for Bounds {
    fn default() -> Self {
        Self { subjects: 100_000, logged: 8 << 20 }
    }
}

/// Bounded counters.
#[derive(Clone, Debug)]
pub struct LocalCounters<K: Eq + Hash = BucketKey> {
    bounds: Bounds,
    counters: Counters<K>,
    marks: HashMap<K, Mark>,
    by_use: BTreeMap<u64, K>,
    by_end: BTreeSet<(u64, K)>,
    /// Rises with each use.
    uses: u64,
    logged: usize,
    evictions: u64,
}

/// What is known of a key beside its counters.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The number of its latest use.
    used: u64,
    /// When nothing of it counts any more, µs since the epoch.
    ends_us: u64,
    logged: usize,
}

impl<K: Eq + Hash> Default for LocalCounters<K> {
    fn default() -> Self {
        Self {
            bounds: Bounds::default(),
            counters: Counters::default(),
            marks: HashMap::new(),
            by_use: BTreeMap::new(),
            by_end: BTreeSet::new(),
            uses: 0,
            logged: 0,
            evictions: 0,
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> LocalCounters<K> {
    /// Empty counters.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Decides one request as [`Counters::decide`] does, with calendar edges around `now_us`.
    pub fn decide(&mut self, now_us: u64, charges: &[Charge<K>]) -> Answer {
        let answer = self.counters.decide(now_us, charges);
        self.note(now_us, charges);
        answer
    }

    /// Gives back what was charged, as [`Counters::refund`] does.
    pub fn refund(&mut self, now_us: u64, charged_at_us: u64, charges: &[Charge<K>]) {
        self.counters.refund(now_us, charged_at_us, charges);
        self.note(now_us, charges);
    }

    /// How many subjects are remembered.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether nobody is remembered.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// How many subjects were forgotten although something of them still counted.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Marks the keys of a call as used and makes room again.
    fn note(&mut self, now_us: u64, charges: &[Charge<K>]) {
        for charge in charges {
            self.unmark(&charge.key);
            if let Some(ends_us) = self.counters.ends_us(&charge.key) {
                let mark = Mark { used: self.uses, ends_us, logged: self.counters.logged(&charge.key) };
                self.uses += 1;
                self.logged += mark.logged;
                self.by_use.insert(mark.used, charge.key.clone());
                self.by_end.insert((ends_us, charge.key.clone()));
                self.marks.insert(charge.key.clone(), mark);
            }
        }
        for _ in 0..FREED_AT_ONCE {
            let Some(key) = self.ended(now_us) else { break };
            self.forget(&key);
        }
        while self.marks.len() > self.bounds.subjects || self.logged > self.bounds.logged {
            if let Some(key) = self.ended(now_us) {
                self.forget(&key);
                continue;
            }
            let Some(key) = self.by_use.first_key_value().map(|(_, key)| key.clone()) else { break };
            self.forget(&key);
            self.evictions += 1;
        }
    }

    /// A key of which nothing counts any more.
    fn ended(&self, now_us: u64) -> Option<K> {
        self.by_end.first().filter(|(ends_us, _)| *ends_us <= now_us).map(|(_, key)| key.clone())
    }

    fn forget(&mut self, key: &K) {
        self.unmark(key);
        self.counters.forget(key);
    }

    fn unmark(&mut self, key: &K) {
        if let Some(mark) = self.marks.remove(key) {
            self.by_use.remove(&mark.used);
            self.by_end.remove(&(mark.ends_us, key.clone()));
            self.logged -= mark.logged;
        }
    }
}

#[cfg(test)]
mod tests;
