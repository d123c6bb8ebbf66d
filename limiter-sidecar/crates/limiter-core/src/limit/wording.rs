// SPDX-License-Identifier: Apache-2.0
//! Limits in words, for people.

use std::fmt;

use super::{Limit, US_PER_S};
use crate::ruleset::{CalendarUnit, LimitDoc};

/// `100 requests per 1 s with a burst of 200`, `1 request per 250 ms, evenly spaced`, `5 requests per day in UTC`, …
impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.doc.requests() == 1 { "request" } else { "requests" };
        write!(out, "{} {noun} per ", self.doc.requests())?;
        match &self.doc {
            LimitDoc::TokenBucket { requests, period_us, burst } => {
                write_time(*period_us, out)?;
                if burst == requests { Ok(()) } else { write!(out, " with a burst of {burst}") }
            }
            LimitDoc::LeakyBucket { period_us, .. } => {
                write_time(*period_us, out)?;
                out.write_str(", evenly spaced")
            }
            LimitDoc::FixedWindow { calendar: Some(unit), time_zone, .. } => {
                let zone = time_zone.as_deref().unwrap_or_default();
                write!(out, "{} in {zone}", noun_of(*unit))
            }
            LimitDoc::FixedWindow { period_us, .. } => write_time(period_us.unwrap_or_default(), out),
            LimitDoc::SlidingWindowCounter { period_us, .. } | LimitDoc::SlidingWindowLog { period_us, .. } => {
                write_time(*period_us, out)
            }
        }
    }
}

impl Limit {
    /// The most that a request may cost, for people: `the burst of 5`.
    pub(crate) fn describe_largest_cost(&self) -> String {
        match &self.doc {
            LimitDoc::TokenBucket { burst, .. } => format!("the burst of {burst}"),
            LimitDoc::LeakyBucket { .. } => format!("the {} that may come at once", self.largest_cost()),
            LimitDoc::FixedWindow { requests, .. }
            | LimitDoc::SlidingWindowCounter { requests, .. }
            | LimitDoc::SlidingWindowLog { requests, .. } => format!("the {requests} of a whole window"),
        }
    }
}

/// In the largest whole unit.
fn write_time(us: u64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match us {
        us if us % US_PER_S == 0 => write!(out, "{} s", us / US_PER_S),
        us if us % 1_000 == 0 => write!(out, "{} ms", us / 1_000),
        us => write!(out, "{us} µs"),
    }
}

fn noun_of(unit: CalendarUnit) -> &'static str {
    match unit {
        CalendarUnit::Day => "day",
        CalendarUnit::Week => "week",
        CalendarUnit::Month => "month",
    }
}
