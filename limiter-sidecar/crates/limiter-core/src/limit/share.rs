// SPDX-License-Identifier: Apache-2.0
//! What one limiter grants of a limit by itself, while the store is away.
//!
//! A rate stays exact, as a fraction. Whatever is counted in whole requests (burst, queue, the requests of a window) is
//! rounded down, so that all limiters together never grant more than the whole; but nothing falls below what the dearest
//! request costs, or such a request would be refused for as long as the store is away, and a limit that is smaller than the
//! fleet would refuse everybody.

use super::{Limit, MAX_EXACT, MAX_LOG, MAX_QUEUE, MAX_TOKENS};
use crate::ruleset::LimitDoc;

/// The highest factor of a share, in thousandths.
pub const MAX_SHARE_MILLI: u64 = 1_000_000;

/// A part of a limit, which may also be more than the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    numerator: u64,
    denominator: u64,
}

impl Share {
    /// One limiter's part of a limit that so many share. None of them is none.
    pub fn split(limiters: u64) -> Option<Self> {
        (limiters > 0).then_some(Self { numerator: 1, denominator: limiters })
    }

    /// So many thousandths for each limiter.
    pub fn of_milli(milli: u64) -> Option<Self> {
        (1..=MAX_SHARE_MILLI).contains(&milli).then_some(Self { numerator: milli, denominator: 1_000 })
    }

    /// The share of a count of requests, at most `most`; at least `least`, or all where that is less.
    fn count(self, whole: u64, least: u64, most: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(part).unwrap_or(most).max(least.min(whole)).clamp(1, most.max(1))
    }

    /// The share of a rate, as requests and period: exactly, or nothing where they would be too large.
    fn rate(self, requests: u64, period_us: u64) -> Option<(u64, u64)> {
        let requests = u128::from(requests) * u128::from(self.numerator);
        let divisor = gcd(requests, u128::from(self.denominator));
        let period = u128::from(period_us) * (u128::from(self.denominator) / divisor);
        let requests = u64::try_from(requests / divisor).ok().filter(|requests| *requests <= MAX_TOKENS)?;
        Some((requests, u64::try_from(period).ok().filter(|period| *period <= MAX_EXACT)?))
    }
}

impl Limit {
    /// This limit with the part that a limiter grants by itself, in which a request finds room that costs `dearest`.
    #[must_use]
    pub fn with_share(self, share: Option<Share>, dearest: u64) -> Self {
        let local = share.map(|share| Box::new(self.shared(share, dearest)));
        Self { local, ..self }
    }

    /// What this limiter grants by itself while the store is away; none unless the rule has a share.
    pub fn local(&self) -> Option<&Self> {
        self.local.as_deref()
    }

    /// A share that cannot be counted exactly (with a period of months it might be) is the whole limit.
    fn shared(&self, share: Share, dearest: u64) -> Self {
        let part = || Self::from_doc(&shared(&self.doc, share, dearest)?).ok();
        part().unwrap_or_else(|| self.clone())
    }
}

fn shared(doc: &LimitDoc, share: Share, dearest: u64) -> Option<LimitDoc> {
    let mut doc = doc.clone();
    match &mut doc {
        LimitDoc::TokenBucket { requests, period_us, burst } => {
            (*requests, *period_us) = share.rate(*requests, *period_us)?;
            *burst = share.count(*burst, dearest, MAX_TOKENS);
        }
        LimitDoc::LeakyBucket { requests, period_us, queue, .. } => {
            (*requests, *period_us) = share.rate(*requests, *period_us)?;
            // Whatever a request costs, it may leave after those before it.
            if *queue > 0 {
                *queue = share.count(*queue, 1, MAX_QUEUE);
            }
        }
        LimitDoc::FixedWindow { requests, .. } => *requests = share.count(*requests, dearest, MAX_TOKENS),
        LimitDoc::SlidingWindowCounter { requests, period_us } => {
            // As many as the estimate can count exactly.
            *requests = share.count(*requests, dearest, MAX_EXACT / *period_us);
        }
        LimitDoc::SlidingWindowLog { requests, .. } => *requests = share.count(*requests, dearest, MAX_LOG),
    }
    Some(doc)
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
