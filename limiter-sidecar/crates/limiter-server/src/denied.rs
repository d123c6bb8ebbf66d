// SPDX-License-Identifier: Apache-2.0
//! What the store has refused, so that the same question is answered here until it could be answered otherwise.
//!
//! Exact: while a call is remembered, the store would refuse it. Others can only take from its counters, but for the rules
//! of which the core says that their refusals may end early; those are not remembered. A call is known by all its bytes, so
//! any change of a limit, an override, a cost or a calendar's window is another call.
//!
//! The wait counts from the moment of sending, by our own clock, and ends as well when the store's clock has come so far:
//! that may have been set forward. A store may also forget, all at once and unseen; nothing is remembered for longer than
//! [`LONGEST`] or over a change of the links to the store.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use limiter_core::{Lasting, Part, Prepared, Reply, RuleUse, StoreCall, Wait};
use serde::Serialize;
use tokio::time::Instant;

use crate::metrics::Metrics;

/// The longest time that a refusal is remembered, and so the longest that somebody is refused after the store has lost its
/// counters. At 1,000 refused requests/s of one client, one in a thousand still asks.
const LONGEST: Duration = Duration::from_secs(1);

/// A refusal is forgotten so much before its wait is over: for what two clocks drift apart in that time (100 ppm of a second
/// are 0.1 ms), and for waits that the store rounds up by a microsecond.
const EARLY: Duration = Duration::from_millis(1);

/// The calls that were refused.
pub(crate) struct Denied {
    /// How many calls are remembered at most.
    most: usize,
    entries: Mutex<Entries>,
    metrics: Arc<Metrics>,
}

/// The moment at which something was asked or answered.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) local: Instant,
    /// µs since the epoch by the store's clock, as far as it is known.
    pub(crate) store_us: u64,
    /// Changes with every link to the store that comes or goes.
    pub(crate) links: u64,
    /// That of the rules: a limit that comes back after another one may meet counters that the other one has left.
    pub(crate) revision: u64,
}

/// What `/status` says of the calls that were refused.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeniedReport {
    most: usize,
    entries: usize,
    hits: u64,
    evictions: u64,
}

#[derive(Default)]
struct Entries {
    by_call: HashMap<Arc<StoreCall>, Entry, BuildHasherDefault<ByWords>>,
    /// In the order of `read`.
    oldest_first: VecDeque<(Instant, Arc<StoreCall>)>,
}

/// A hash that costs little: eight bytes at a time. Nobody outside can make two calls meet in it, because what makes calls
/// differ are the keys in them, which hold a keyed hash.
#[derive(Default)]
struct ByWords(u64);

struct Entry {
    reply: Reply,
    read: Instant,
    until: Instant,
    until_store_us: u64,
    links: u64,
    revision: u64,
}

impl Denied {
    /// Remembers at most `most` calls; 0 for none.
    pub(crate) fn new(most: usize, metrics: Arc<Metrics>) -> Self {
        Self { most, entries: Mutex::default(), metrics }
    }

    /// What the store would say to this call of `prepared`, if it is certain to refuse it: the checks that refuse for sure,
    /// with the waits that are left, and those that enforce and passed. Rules in shadow were not evaluated.
    pub(crate) fn find(&self, call: &StoreCall, prepared: &Prepared<'_>, now: Moment) -> Option<Part> {
        if self.most == 0 {
            return None;
        }
        let entries = self.lock();
        if entries.by_call.is_empty() {
            return None;
        }
        let entry = entries.by_call.get(call).filter(|entry| entry.holds(now))?;
        let part = entry.part(call, prepared, now.local);
        self.metrics.denied_hits.inc();
        Some(part)
    }

    /// Remembers a refusal. `sent`: when the store was asked, at the latest. `split`: whether the store has several servers.
    pub(crate) fn remember(
        &self,
        (call, reply): (&StoreCall, &Reply),
        prepared: &Prepared<'_>,
        split: bool,
        sent: Moment,
        read: Instant,
    ) {
        let needed = if split { Lasting::Yes } else { Lasting::OnOneServer };
        let refusing = || rules(call, prepared).zip(&reply.checks).filter(|(rule, check)| enforces(*rule) && !check.ok);
        if self.most == 0 || !refusing().all(|(rule, _)| rule.is_some_and(|rule| rule.rule.lasting() >= needed)) {
            return;
        }
        let longest = refusing().map(|(_, check)| lasts(check.wait)).max();
        let Some(life) = longest.and_then(|wait| wait.checked_sub(EARLY)).filter(|life| !life.is_zero()) else {
            return;
        };
        let life_us = u64::try_from(life.as_micros()).unwrap_or(u64::MAX);
        let entry = Entry {
            reply: reply.clone(),
            read,
            until: sent.local + life,
            until_store_us: reply.now_us.saturating_add(life_us),
            links: sent.links,
            revision: sent.revision,
        };
        let mut entries = self.lock();
        let evicted = entries.insert(Arc::new(call.clone()), entry, self.most);
        self.metrics.denied_evictions.inc_by(evicted);
        self.metrics.denied_entries.set(i64::try_from(entries.by_call.len()).unwrap_or(i64::MAX));
    }

    /// What is remembered, for people.
    pub(crate) fn report(&self) -> DeniedReport {
        DeniedReport {
            most: self.most,
            entries: self.lock().by_call.len(),
            hits: self.metrics.denied_hits.get(),
            evictions: self.metrics.denied_evictions.get(),
        }
    }

    /// The entries are whole whatever happened to a holder of the lock: nothing panics with it held.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Adds an entry, drops those that are over, and says how many others had to make room.
    fn insert(&mut self, call: Arc<StoreCall>, entry: Entry, most: usize) -> u64 {
        let now = entry.read;
        self.oldest_first.push_back((now, Arc::clone(&call)));
        self.by_call.insert(call, entry);
        let mut evicted = 0;
        while let Some((read, call)) = self.oldest_first.front() {
            let over = now.saturating_duration_since(*read) >= LONGEST;
            if !over && self.oldest_first.len() <= most {
                break;
            }
            // A call that was refused again has a younger entry.
            if let Some(entry) = self.by_call.get(call).filter(|entry| entry.read == *read) {
                evicted += u64::from(now < entry.until);
                self.by_call.remove(&Arc::clone(call));
            }
            self.oldest_first.pop_front();
        }
        evicted
    }
}

impl Hasher for ByWords {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The constant is the fraction of the golden ratio, which spreads neighbours.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes its places from the lowest bits and its tags from the highest: both get all of the others.
        self.0 ^ self.0 >> 32
    }
}

impl Entry {
    fn holds(&self, now: Moment) -> bool {
        let in_time = now.local < self.until && now.store_us < self.until_store_us;
        in_time && now.links == self.links && now.revision == self.revision
    }

    /// What is told counts from when the answer was read: nobody is told to come back too early.
    fn part(&self, call: &StoreCall, prepared: &Prepared<'_>, now: Instant) -> Part {
        let since = now.saturating_duration_since(self.read);
        let since_us = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        let mut part =
            Part { checks: Vec::with_capacity(call.checks.len()), reply: Reply { checks: Vec::new(), ..self.reply } };
        for ((place, rule), mut check) in call.checks.iter().zip(rules(call, prepared)).zip(self.reply.checks.clone()) {
            let refuses_still = check.ok || lasts(check.wait) > since;
            if !refuses_still || !enforces(rule) {
                continue;
            }
            if let Wait::Us(us) = &mut check.wait {
                *us = us.saturating_sub(since_us);
            }
            check.reset_us = check.reset_us.saturating_sub(since_us);
            part.checks.push(*place);
            part.reply.checks.push(check);
        }
        part
    }
}

/// For how long a check that refuses goes on refusing, as far as anybody wants to know.
fn lasts(wait: Wait) -> Duration {
    match wait {
        Wait::Us(us) => Duration::from_micros(us).min(LONGEST),
        Wait::Never => LONGEST,
    }
}

fn enforces(rule: Option<&RuleUse<'_>>) -> bool {
    rule.is_some_and(RuleUse::enforces)
}

/// The rules that a call asks about, in its order.
fn rules<'p, 'r>(call: &'p StoreCall, prepared: &'p Prepared<'r>) -> impl Iterator<Item = Option<&'p RuleUse<'r>>> {
    call.checks.iter().map(|place| prepared.checks().nth(*place).map(|(rule, _)| rule))
}

#[cfg(test)]
mod tests;
