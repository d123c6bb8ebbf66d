// SPDX-License-Identifier: Apache-2.0
//! Which numbers each algorithm takes, and what they become in the script's plan.
//!
//! A bucket's debt is counted in 1/L µs: with g = gcd(period, requests) a token weighs p = period/g units and the bucket
//! drains L = requests/g units per µs, so that every rate is exact.

use super::{Kind, Wrong};
use crate::calendar::Calendar;
use crate::ruleset::{CalendarUnit, LimitDoc};

/// The largest integer up to which doubles hold every integer.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// The largest `requests` and `burst`; fits the integers of RFC 9651 with room.
pub const MAX_TOKENS: u64 = 1_000_000_000_000;

/// The longest queue, and the highest cost that a leaky bucket takes.
pub const MAX_QUEUE: u64 = 1_000_000;

/// The most requests whose times are all kept: 80 kB for each subject.
pub const MAX_LOG: u64 = 10_000;

const MIN_PERIOD_US: u64 = 1_000;

/// What the checked numbers come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) kind: Kind,
    /// The plan's numbers, with a for a cost of 1.
    pub(super) numbers: [u64; 4],
    pub(super) quota: u64,
    pub(super) largest_cost: u64,
    /// How long the whole quota takes to come back; nothing when it depends on the calendar.
    pub(super) window_us: Option<u64>,
}

/// Checks a document's numbers.
pub(super) fn terms(doc: &LimitDoc) -> Result<(Terms, Option<Calendar>), Wrong> {
    let without_calendar = |terms: Terms| (terms, None);
    in_range("requests", doc.requests(), 1, MAX_TOKENS)?;
    match doc {
        LimitDoc::TokenBucket { requests, period_us, burst } => {
            token_bucket(*requests, *period_us, *burst).map(without_calendar)
        }
        LimitDoc::LeakyBucket { requests, period_us, queue, max_delay_us } => {
            leaky_bucket(*requests, *period_us, *queue, *max_delay_us).map(without_calendar)
        }
        LimitDoc::FixedWindow { requests, period_us: Some(period_us), calendar: None, time_zone: None } => {
            window(Kind::FixedWindow, *requests, *period_us).map(without_calendar)
        }
        LimitDoc::FixedWindow { requests, period_us: None, calendar: Some(unit), time_zone } => {
            calendar_window(*requests, *unit, time_zone.as_deref())
        }
        LimitDoc::FixedWindow { time_zone: Some(_), calendar: None, .. } => {
            Err(("timeZone", "goes with calendar only".to_owned()))
        }
        LimitDoc::FixedWindow { .. } => {
            Err(("periodUs", "exactly one of periodUs and calendar must be there".to_owned()))
        }
        LimitDoc::SlidingWindowCounter { requests, period_us } => {
            sliding_counter(*requests, *period_us).map(without_calendar)
        }
        LimitDoc::SlidingWindowLog { requests, period_us } => {
            in_range("requests", *requests, 1, MAX_LOG)?;
            window(Kind::SlidingWindowLog, *requests, *period_us).map(without_calendar)
        }
    }
}

fn token_bucket(requests: u64, period_us: u64, burst: u64) -> Result<Terms, Wrong> {
    in_range("burst", burst, 1, MAX_TOKENS)?;
    let (weight, drain_per_us) = rate(requests, period_us)?;
    let capacity = exact_product(burst, weight).ok_or_else(|| {
        let most = MAX_EXACT / weight;
        ("burst", format!("must be at most {most} with {requests} requests per {period_us} µs, not {burst}"))
    })?;
    Ok(Terms {
        kind: Kind::TokenBucket,
        numbers: [weight, capacity, weight, drain_per_us],
        quota: burst,
        largest_cost: burst,
        window_us: Some(capacity.div_ceil(drain_per_us)),
    })
}

fn leaky_bucket(requests: u64, period_us: u64, queue: u64, max_delay_us: u64) -> Result<Terms, Wrong> {
    in_range("queue", queue, 0, MAX_QUEUE)?;
    if (queue > 0) != (max_delay_us > 0) {
        return Err(("maxDelayUs", "must be above 0 exactly when queue is".to_owned()));
    }
    let (weight, drain_per_us) = rate(requests, period_us)?;
    exact_product(queue + 1, weight).ok_or_else(|| {
        let most = (MAX_EXACT / weight).saturating_sub(1);
        ("queue", format!("must be at most {most} with {requests} requests per {period_us} µs, not {queue}"))
    })?;
    // A product that no u64 holds is above every queue.
    let tolerance = (queue * weight).min(max_delay_us.saturating_mul(drain_per_us));
    // Where the longest delay is shorter than the queue, fewer may come at once.
    let quota = tolerance / weight + 1;
    Ok(Terms {
        kind: Kind::LeakyBucket,
        numbers: [weight, tolerance + weight, weight, drain_per_us],
        quota,
        // What passes is charged on top of the tolerance, and the sum must be exact.
        largest_cost: ((MAX_EXACT - tolerance) / weight).min(MAX_QUEUE),
        window_us: Some((quota * weight).div_ceil(drain_per_us)),
    })
}

fn sliding_counter(requests: u64, period_us: u64) -> Result<Terms, Wrong> {
    let terms = window(Kind::SlidingWindowCounter, requests, period_us)?;
    // The share of the window before is requests × µs over µs.
    exact_product(requests, period_us).map(|_| terms).ok_or_else(|| {
        let most = MAX_EXACT / period_us;
        ("requests", format!("must be at most {most} with a period of {period_us} µs, not {requests}"))
    })
}

fn window(kind: Kind, requests: u64, period_us: u64) -> Result<Terms, Wrong> {
    in_range("periodUs", period_us, MIN_PERIOD_US, MAX_EXACT)?;
    Ok(Terms {
        kind,
        numbers: [1, requests, period_us, 0],
        quota: requests,
        largest_cost: requests,
        window_us: Some(period_us),
    })
}

fn calendar_window(requests: u64, unit: CalendarUnit, zone: Option<&str>) -> Result<(Terms, Option<Calendar>), Wrong> {
    let zone = zone.ok_or_else(|| ("timeZone", "must be there with calendar".to_owned()))?;
    let calendar = Calendar::new(unit, zone).map_err(|message| ("timeZone", message))?;
    let terms = Terms {
        kind: Kind::CalendarWindow,
        numbers: [1, requests, 0, 0],
        quota: requests,
        largest_cost: requests,
        window_us: None,
    };
    Ok((terms, Some(calendar)))
}

/// p and L.
fn rate(requests: u64, period_us: u64) -> Result<(u64, u64), Wrong> {
    in_range("periodUs", period_us, MIN_PERIOD_US, u64::MAX)?;
    let divisor = gcd(period_us, requests);
    Ok((period_us / divisor, requests / divisor))
}

fn in_range(member: &'static str, value: u64, least: u64, most: u64) -> Result<(), Wrong> {
    match value {
        value if value < least && member == "periodUs" => {
            Err((member, format!("must be at least {least} µs, not {value}")))
        }
        value if (least..=most).contains(&value) => Ok(()),
        value => Err((member, format!("must be from {least} to {most}, not {value}"))),
    }
}

/// A product that a double holds exactly.
fn exact_product(a: u64, b: u64) -> Option<u64> {
    a.checked_mul(b).filter(|product| *product <= MAX_EXACT)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
