// SPDX-License-Identifier: Apache-2.0
//! Limits of the document: an algorithm and its numbers, and what an override replaces of them.
//!
//! Owns the shapes. Whether the numbers make sense is [`crate::limit`]'s matter.

use serde::{Deserialize, Serialize};

/// A limit, told apart by its algorithm.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(try_from = "Members", tag = "algorithm", rename_all_fields = "camelCase")]
pub enum LimitDoc {
    /// Rate and burst.
    TokenBucket {
        /// Tokens per period.
        requests: u64,
        /// In µs.
        period_us: u64,
        /// Tokens of a full bucket.
        burst: u64,
    },
    /// Evenly spaced requests, of which some may wait.
    LeakyBucket {
        /// Requests that leave per period.
        requests: u64,
        /// In µs.
        period_us: u64,
        /// How many requests may wait; 0 when none does.
        queue: u64,
        /// The longest wait in µs; 0 exactly when `queue` is.
        max_delay_us: u64,
    },
    /// A count that begins anew with each window: either a period or a calendar's.
    FixedWindow {
        /// Requests per window.
        requests: u64,
        /// In µs; windows are aligned to the epoch.
        #[serde(skip_serializing_if = "Option::is_none")]
        period_us: Option<u64>,
        /// What a window is instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        calendar: Option<CalendarUnit>,
        /// IANA name; goes with `calendar`.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_zone: Option<String>,
    },
    /// The present window's count and the share of the one before that is still inside.
    SlidingWindowCounter {
        /// Requests per period.
        requests: u64,
        /// In µs.
        period_us: u64,
    },
    /// The time of each request.
    SlidingWindowLog {
        /// Requests per period.
        requests: u64,
        /// In µs.
        period_us: u64,
    },
}

/// All members that a limit may have. Read one by one, so that a wrong one is refused with its own path.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Members {
    algorithm: Algorithm,
    requests: u64,
    period_us: Option<u64>,
    burst: Option<u64>,
    queue: Option<u64>,
    max_delay_us: Option<u64>,
    calendar: Option<CalendarUnit>,
    time_zone: Option<String>,
}

/// How a limit counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Rate and burst.
    TokenBucket,
    /// Even spacing.
    LeakyBucket,
    /// Windows of a period or a calendar.
    FixedWindow,
    /// Two counters.
    SlidingWindowCounter,
    /// All times.
    SlidingWindowLog,
}

/// A calendar's windows.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, Hash)]
pub enum CalendarUnit {
    /// From local midnight to local midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first to the first.
    Month,
}

/// The numbers that a `Set` override replaces; what is left out stays.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetLimitDoc {
    /// Requests or tokens per period.
    #[serde(default)]
    pub requests: Option<u64>,
    /// In µs.
    #[serde(default)]
    pub period_us: Option<u64>,
    /// Tokens of a full bucket.
    #[serde(default)]
    pub burst: Option<u64>,
    /// How many requests may wait.
    #[serde(default)]
    pub queue: Option<u64>,
    /// The longest wait in µs.
    #[serde(default)]
    pub max_delay_us: Option<u64>,
}

impl TryFrom<Members> for LimitDoc {
    type Error = String;

    fn try_from(mut members: Members) -> Result<Self, String> {
        let requests = members.requests;
        let doc = match members.algorithm {
            Algorithm::TokenBucket => Self::TokenBucket {
                requests,
                period_us: needed("periodUs", &mut members.period_us)?,
                burst: needed("burst", &mut members.burst)?,
            },
            Algorithm::LeakyBucket => Self::LeakyBucket {
                requests,
                period_us: needed("periodUs", &mut members.period_us)?,
                queue: needed("queue", &mut members.queue)?,
                max_delay_us: needed("maxDelayUs", &mut members.max_delay_us)?,
            },
            Algorithm::FixedWindow => Self::FixedWindow {
                requests,
                period_us: members.period_us.take(),
                calendar: members.calendar.take(),
                time_zone: members.time_zone.take(),
            },
            Algorithm::SlidingWindowCounter => {
                Self::SlidingWindowCounter { requests, period_us: needed("periodUs", &mut members.period_us)? }
            }
            Algorithm::SlidingWindowLog => {
                Self::SlidingWindowLog { requests, period_us: needed("periodUs", &mut members.period_us)? }
            }
        };
        members.left().map_or(Ok(doc), |member| {
            Err(format!("{member} does not go with algorithm {}", members.algorithm.as_str()))
        })
    }
}

impl Members {
    /// A member that was not taken.
    fn left(&self) -> Option<&'static str> {
        let members = [
            ("burst", self.burst.is_some()),
            ("queue", self.queue.is_some()),
            ("maxDelayUs", self.max_delay_us.is_some()),
            ("calendar", self.calendar.is_some()),
            ("timeZone", self.time_zone.is_some()),
        ];
        members.into_iter().find(|(_, left)| *left).map(|(name, _)| name)
    }
}

fn needed(name: &str, member: &mut Option<u64>) -> Result<u64, String> {
    member.take().ok_or_else(|| format!("missing field `{name}`"))
}

impl LimitDoc {
    /// How it counts.
    pub const fn algorithm(&self) -> Algorithm {
        match self {
            Self::TokenBucket { .. } => Algorithm::TokenBucket,
            Self::LeakyBucket { .. } => Algorithm::LeakyBucket,
            Self::FixedWindow { .. } => Algorithm::FixedWindow,
            Self::SlidingWindowCounter { .. } => Algorithm::SlidingWindowCounter,
            Self::SlidingWindowLog { .. } => Algorithm::SlidingWindowLog,
        }
    }

    /// Requests or tokens per period or window.
    pub const fn requests(&self) -> u64 {
        match self {
            Self::TokenBucket { requests, .. }
            | Self::LeakyBucket { requests, .. }
            | Self::FixedWindow { requests, .. }
            | Self::SlidingWindowCounter { requests, .. }
            | Self::SlidingWindowLog { requests, .. } => *requests,
        }
    }
}

impl Algorithm {
    /// As users write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenBucket => "TokenBucket",
            Self::LeakyBucket => "LeakyBucket",
            Self::FixedWindow => "FixedWindow",
            Self::SlidingWindowCounter => "SlidingWindowCounter",
            Self::SlidingWindowLog => "SlidingWindowLog",
        }
    }
}
