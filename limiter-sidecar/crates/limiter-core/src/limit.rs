// SPDX-License-Identifier: Apache-2.0
//! The numbers of one limit, checked and prepared for the script.
//!
//! Owns which numbers make sense, what they become in the script's plan and what clients are told of them. Every number is
//! an integer that a double holds without loss, and so is everything that the counters make of it.

mod change;
mod checks;
mod share;
mod wording;

use crate::calendar::{Calendar, Edges};
use crate::ruleset::{Algorithm, LimitDoc};

use checks::Terms;

pub use checks::{MAX_EXACT, MAX_LOG, MAX_QUEUE, MAX_TOKENS};
pub use share::{MAX_SHARE_MILLI, Share};

const US_PER_S: u64 = 1_000_000;

/// How the script counts: the kind byte of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Debt that drains.
    TokenBucket = 1,
    /// Debt that drains, of which some is waited for.
    LeakyBucket = 2,
    /// A count per period.
    FixedWindow = 3,
    /// Two counts.
    SlidingWindowCounter = 4,
    /// All times.
    SlidingWindowLog = 5,
    /// A count between two edges that come with the call.
    CalendarWindow = 6,
}

/// What one check asks for, in the script's numbers. Which is which depends on the kind: `lua/README.md` has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// How it is counted.
    pub kind: Kind,
    /// a, b, c and d.
    pub numbers: [u64; 4],
    /// The windows around the present, for [`Kind::CalendarWindow`]; else zeros.
    pub edges: Edges,
}

/// A member of the document, and what is wrong with it.
pub type Wrong = (&'static str, String);

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    doc: LimitDoc,
    terms: Terms,
    calendar: Option<Calendar>,
    /// `;q=<quota>;w=<seconds>`; the seconds are left out where they depend on the time.
    policy_parameters: Box<str>,
    /// What this limiter grants by itself while the store is away.
    local: Option<Box<Self>>,
}

impl Limit {
    /// Checks the numbers of a limit and derives the script's.
    ///
    /// # Errors
    /// The first number that is out of range.
    pub fn from_doc(doc: &LimitDoc) -> Result<Self, Wrong> {
        let (terms, calendar) = checks::terms(doc)?;
        let window_s = terms.window_us.map_or_else(String::new, |us| ceil_seconds(us).to_string());
        Ok(Self {
            doc: doc.clone(),
            terms,
            calendar,
            policy_parameters: format!(";q={};w={window_s}", terms.quota).into(),
            local: None,
        })
    }

    /// As the document has it.
    pub fn doc(&self) -> &LimitDoc {
        &self.doc
    }

    /// How it counts.
    pub fn algorithm(&self) -> Algorithm {
        self.doc.algorithm()
    }

    /// What may come at once: the burst, those who may wait and one more, or the requests of a window.
    pub fn quota(&self) -> u64 {
        self.terms.quota
    }

    /// The highest cost of a request that can ever pass.
    pub fn largest_cost(&self) -> u64 {
        self.terms.largest_cost
    }

    /// The member that bounds the cost of a request.
    pub fn cost_member(&self) -> &'static str {
        if let LimitDoc::TokenBucket { .. } = self.doc { "burst" } else { "requests" }
    }

    /// What a request of this cost asks for at `now_us` (µs since the epoch). A cost above [`Limit::largest_cost`] saturates,
    /// which is above everything that any limit allows.
    pub fn demand(&self, cost: u64, now_us: u64) -> Demand {
        let [unit, b, c, d] = self.terms.numbers;
        Demand {
            kind: self.terms.kind,
            numbers: [cost.saturating_mul(unit), b, c, d],
            edges: self.calendar.as_ref().map_or([0; 4], |calendar| calendar.edges(now_us)),
        }
    }

    /// Whether a rule of this limit is kept in a store key of its own.
    pub fn needs_own_key(&self) -> bool {
        self.terms.kind == Kind::SlidingWindowLog
    }

    /// Appends the parameters of a `RateLimit-Policy` item: the quota and the length of its window, at `now_us`.
    pub(crate) fn append_policy_parameters(&self, now_us: u64, field: &mut String) {
        field.push_str(&self.policy_parameters);
        if let Some(calendar) = &self.calendar {
            let [_, start, end, _] = calendar.edges(now_us);
            field.push_str(itoa::Buffer::new().format(ceil_seconds(end - start)));
        }
    }

    /// Whole seconds until one more request passes where that does not depend on what was used before: a bucket's.
    pub(crate) fn token_s(&self) -> Option<u64> {
        let [weight, _, _, drain_per_us] = self.terms.numbers;
        let is_bucket = matches!(self.terms.kind, Kind::TokenBucket | Kind::LeakyBucket);
        is_bucket.then(|| ceil_seconds(weight.div_ceil(drain_per_us)))
    }
}

/// Whole seconds that cover `us`, at least 1: a client that waits them is never early.
pub(crate) fn ceil_seconds(us: u64) -> u64 {
    us.div_ceil(US_PER_S).max(1)
}

#[cfg(test)]
mod tests;
