// SPDX-License-Identifier: Apache-2.0
//! The numbers of one token bucket, checked and prepared for the script.
//!
//! Debt is counted in 1/L µs: with g = gcd(period, requests) a token weighs p = period/g units and the bucket drains
//! L = requests/g units per µs, so that every rate is exact. All of them fit a double without loss.

use std::fmt;

use crate::ruleset::{LimitDoc, SetLimitDoc};

/// The largest integer up to which doubles hold every integer.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// The largest `requests` and `burst`; fits the integers of RFC 9651 with room.
pub const MAX_TOKENS: u64 = 1_000_000_000_000;

const US_PER_S: u64 = 1_000_000;
const MIN_PERIOD_US: u64 = 1_000;

/// A token bucket's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    requests: u64,
    period_us: u64,
    burst: u64,
    weight: u64,
    drain_per_us: u64,
    capacity: u64,
    arguments: [Box<str>; 3],
    policy_parameters: Box<str>,
}

impl Limit {
    /// Checks the numbers of a limit and derives the script's.
    ///
    /// # Errors
    /// (member, message) of the first number that is out of range.
    pub fn new(requests: u64, period_us: u64, burst: u64) -> Result<Self, (&'static str, String)> {
        for (member, value) in [("requests", requests), ("burst", burst)] {
            if !(1..=MAX_TOKENS).contains(&value) {
                return Err((member, format!("must be from 1 to {MAX_TOKENS}, not {value}")));
            }
        }
        if period_us < MIN_PERIOD_US {
            return Err(("periodUs", format!("must be at least {MIN_PERIOD_US} µs, not {period_us}")));
        }
        let divisor = gcd(period_us, requests);
        let (weight, drain_per_us) = (period_us / divisor, requests / divisor);
        let capacity = burst.checked_mul(weight).filter(|capacity| *capacity <= MAX_EXACT).ok_or_else(|| {
            let most = MAX_EXACT / weight;
            ("burst", format!("must be at most {most} with {requests} requests per {period_us} µs, not {burst}"))
        })?;
        let window_s = ceil_seconds(capacity.div_ceil(drain_per_us));
        Ok(Self {
            requests,
            period_us,
            burst,
            weight,
            drain_per_us,
            capacity,
            arguments: [weight, drain_per_us, capacity].map(|number| number.to_string().into()),
            policy_parameters: format!(";q={burst};w={window_s}").into(),
        })
    }

    /// From the document.
    ///
    /// # Errors
    /// As [`Limit::new`].
    pub fn from_doc(doc: LimitDoc) -> Result<Self, (&'static str, String)> {
        Self::new(doc.requests, doc.period_us, doc.burst)
    }

    /// This limit with the named numbers replaced.
    ///
    /// # Errors
    /// As [`Limit::new`].
    pub fn replaced(&self, by: SetLimitDoc) -> Result<Self, (&'static str, String)> {
        Self::new(
            by.requests.unwrap_or(self.requests),
            by.period_us.unwrap_or(self.period_us),
            by.burst.unwrap_or(self.burst),
        )
    }

    /// Tokens that come back per period.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The period in µs.
    pub fn period_us(&self) -> u64 {
        self.period_us
    }

    /// Tokens of a full bucket.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// p: what a token weighs, in debt units.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// L: how many debt units drain in one µs.
    pub fn drain_per_us(&self) -> u64 {
        self.drain_per_us
    }

    /// burst × p: the debt of an empty bucket.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// cost × p. Saturates, which is above every capacity: such a request can never pass.
    pub fn increment(&self, cost: u64) -> u64 {
        cost.saturating_mul(self.weight)
    }

    /// Whole seconds until one token has come back, at least 1.
    pub fn token_s(&self) -> u64 {
        ceil_seconds(self.weight.div_ceil(self.drain_per_us))
    }

    /// p, L and capacity as the script's arguments.
    pub(crate) fn arguments(&self) -> &[Box<str>; 3] {
        &self.arguments
    }

    /// The `RateLimit-Policy` item's parameters: `;q=<burst>;w=<seconds to refill it>`.
    pub(crate) fn policy_parameters(&self) -> &str {
        &self.policy_parameters
    }
}

/// For people: `100 requests per 1 s with a burst of 200`.
impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.requests == 1 { "request" } else { "requests" };
        write!(out, "{} {noun} per ", self.requests)?;
        match self.period_us {
            us if us % US_PER_S == 0 => write!(out, "{} s", us / US_PER_S)?,
            us if us % 1_000 == 0 => write!(out, "{} ms", us / 1_000)?,
            us => write!(out, "{us} µs")?,
        }
        if self.burst != self.requests {
            write!(out, " with a burst of {}", self.burst)?;
        }
        Ok(())
    }
}

/// Whole seconds that cover `us`, at least 1: a client that waits them is never early.
pub(crate) fn ceil_seconds(us: u64) -> u64 {
    us.div_ceil(US_PER_S).max(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
