// SPDX-License-Identifier: Apache-2.0
//! What overrides make of a limit: some numbers replaced, or all multiplied.

use super::{Limit, Wrong};
use crate::ruleset::{LimitDoc, SetLimitDoc};

/// The highest factor of a `Multiply` override, in thousandths.
pub(super) const MAX_FACTOR_MILLI: u64 = 1_000_000;

const MILLI: u128 = 1_000;

impl Limit {
    /// This limit with the named numbers replaced.
    ///
    /// # Errors
    /// As [`Limit::from_doc`]; also a number that the algorithm does not have.
    pub fn replaced(&self, by: SetLimitDoc) -> Result<Self, Wrong> {
        let mut doc = self.doc.clone();
        let numbers = [
            ("requests", by.requests),
            ("periodUs", by.period_us),
            ("burst", by.burst),
            ("queue", by.queue),
            ("maxDelayUs", by.max_delay_us),
        ];
        for (member, value) in numbers {
            let Some(value) = value else { continue };
            let Some(number) = member_of(&mut doc, member) else {
                return Err((member, format!("does not go with {}", described(&doc))));
            };
            *number = value;
        }
        Self::from_doc(&doc)
    }

    /// This limit with requests, burst and queue times so many thousandths, rounded down. Nothing falls below 1, but an
    /// empty queue stays empty.
    ///
    /// # Errors
    /// As [`Limit::from_doc`].
    pub fn multiplied(&self, factor_milli: u64) -> Result<Self, Wrong> {
        if !(1..=MAX_FACTOR_MILLI).contains(&factor_milli) {
            return Err(("factorMilli", format!("must be from 1 to {MAX_FACTOR_MILLI}, not {factor_milli}")));
        }
        let mut doc = self.doc.clone();
        for (member, least) in [("requests", 1), ("burst", 1), ("queue", 0)] {
            if let Some(number) = member_of(&mut doc, member) {
                let product = u128::from(*number) * u128::from(factor_milli) / MILLI;
                *number = u64::try_from(product).unwrap_or(u64::MAX).max(least);
            }
        }
        if let LimitDoc::LeakyBucket { queue: 0, max_delay_us, .. } = &mut doc {
            // Where nobody waits, nobody waits for long.
            *max_delay_us = 0;
        }
        Self::from_doc(&doc)
    }
}

/// The number that a member stands for, if the limit has it.
fn member_of<'d>(doc: &'d mut LimitDoc, member: &str) -> Option<&'d mut u64> {
    match (member, doc) {
        (
            "requests",
            LimitDoc::TokenBucket { requests, .. }
            | LimitDoc::LeakyBucket { requests, .. }
            | LimitDoc::FixedWindow { requests, .. }
            | LimitDoc::SlidingWindowCounter { requests, .. }
            | LimitDoc::SlidingWindowLog { requests, .. },
        ) => Some(requests),
        (
            "periodUs",
            LimitDoc::TokenBucket { period_us, .. }
            | LimitDoc::LeakyBucket { period_us, .. }
            | LimitDoc::FixedWindow { period_us: Some(period_us), .. }
            | LimitDoc::SlidingWindowCounter { period_us, .. }
            | LimitDoc::SlidingWindowLog { period_us, .. },
        ) => Some(period_us),
        ("burst", LimitDoc::TokenBucket { burst, .. }) => Some(burst),
        ("queue", LimitDoc::LeakyBucket { queue, .. }) => Some(queue),
        ("maxDelayUs", LimitDoc::LeakyBucket { max_delay_us, .. }) => Some(max_delay_us),
        _ => None,
    }
}

fn described(doc: &LimitDoc) -> String {
    let by_calendar = matches!(doc, LimitDoc::FixedWindow { calendar: Some(_), .. });
    format!("{}{}", doc.algorithm().as_str(), if by_calendar { " by the calendar" } else { "" })
}
