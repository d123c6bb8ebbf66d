// SPDX-License-Identifier: Apache-2.0
//! Days, weeks and months of a time zone, as instants.
//!
//! Owns the time zone library and where a local day begins: at midnight, or at its first instant where that midnight is
//! skipped. Weeks begin on Monday. Takes its zones from the database that is compiled in, so that all limiters of one
//! version agree, whatever their machines hold.

use std::sync::{Mutex, PoisonError};

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp};

use crate::ruleset::CalendarUnit;

/// The edges of three windows that follow each other, in µs since the epoch: \[e0, e1), \[e1, e2), \[e2, e3).
pub type Edges = [u64; 4];

/// The last time that edges are made for: 2200-01-01, far inside what the library and a double can hold.
const END_US: u64 = 7_258_118_400_000_000;

/// A calendar in a time zone. Keeps the edges around the time that was last asked for, which are found without the
/// library until that time leaves the middle window.
#[derive(Debug)]
pub struct Calendar {
    unit: CalendarUnit,
    zone: TimeZone,
    name: Box<str>,
    latest: Mutex<Edges>,
}

impl Calendar {
    /// The calendar of a zone by its IANA name.
    ///
    /// # Errors
    /// A message when there is no such zone.
    pub fn new(unit: CalendarUnit, zone: &str) -> Result<Self, String> {
        let known = TimeZoneDatabase::bundled().get(zone);
        let found = known.map_err(|_| format!("{zone:?} is no time zone of the IANA database"))?;
        Ok(Self { unit, zone: found, name: zone.into(), latest: Mutex::new([0; 4]) })
    }

    /// What a window is.
    pub fn unit(&self) -> CalendarUnit {
        self.unit
    }

    /// The zone's name.
    pub fn zone(&self) -> &str {
        &self.name
    }

    /// The windows around `now_us` (µs since the epoch): that time lies in the middle one.
    pub fn edges(&self, now_us: u64) -> Edges {
        let now_us = now_us.min(END_US);
        // Nothing panics with the lock held; the edges in it are whole whatever happened.
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if !(latest[1]..latest[2]).contains(&now_us) {
            *latest = self.around(now_us);
        }
        *latest
    }

    /// A clock that was set back across midnight repeats the end of a day after the next one has begun, so the window by
    /// the calendar need not be the one that holds the time: it is looked for from there.
    fn around(&self, now_us: u64) -> Edges {
        let now = timestamp(now_us);
        let mut day = self.first_day(self.zone.to_datetime(now).date());
        while self.start(day) > now {
            day = self.step(day, -1);
        }
        let (mut before, mut start, mut end) = (self.previous(day), self.start(day), self.next(&mut day));
        while end <= now {
            (before, start, end) = (start, end, self.next(&mut day));
        }
        [before, start, end, self.next(&mut day)].map(micros)
    }

    /// The start of the window before the one that begins with `day`. Days that a zone has skipped are no windows.
    fn previous(&self, mut day: Date) -> Timestamp {
        let start = self.start(day);
        loop {
            day = self.step(day, -1);
            let previous = self.start(day);
            if previous < start {
                return previous;
            }
        }
    }

    /// Moves `day` to the next window and says where that begins.
    fn next(&self, day: &mut Date) -> Timestamp {
        let start = self.start(*day);
        loop {
            *day = self.step(*day, 1);
            let next = self.start(*day);
            if next > start {
                return next;
            }
        }
    }

    /// The first day of the window that a day belongs to.
    fn first_day(&self, day: Date) -> Date {
        match self.unit {
            CalendarUnit::Day => day,
            CalendarUnit::Week => day.saturating_sub(Span::new().days(day.weekday().to_monday_zero_offset())),
            CalendarUnit::Month => day.first_of_month(),
        }
    }

    fn step(&self, day: Date, windows: i64) -> Date {
        day.saturating_add(match self.unit {
            CalendarUnit::Day => Span::new().days(windows),
            CalendarUnit::Week => Span::new().weeks(windows),
            CalendarUnit::Month => Span::new().months(windows),
        })
    }

    /// The first instant of a local day.
    fn start(&self, day: Date) -> Timestamp {
        let midnight = day.to_datetime(Time::midnight());
        let start = match self.zone.to_ambiguous_timestamp(midnight).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(midnight),
            // Of two midnights the first.
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(midnight),
            AmbiguousOffset::Gap { after, .. } => Ok(self.end_of_gap(midnight, after)),
        };
        // Days are near the epoch's first centuries, where every offset gives an instant.
        start.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// When the clock jumped over `midnight`. Read with the offset after the jump, that midnight lies before it.
    fn end_of_gap(&self, midnight: DateTime, after: Offset) -> Timestamp {
        let before_jump = after.to_timestamp(midnight).unwrap_or(Timestamp::UNIX_EPOCH);
        self.zone.following(before_jump).next().map_or(before_jump, |jump| jump.timestamp())
    }
}

/// Keeps the edges that the original has found.
impl Clone for Calendar {
    fn clone(&self) -> Self {
        let latest = *self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        Self { unit: self.unit, zone: self.zone.clone(), name: self.name.clone(), latest: Mutex::new(latest) }
    }
}

/// Equal calendars have the same windows, whatever was asked of them.
impl PartialEq for Calendar {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit && self.name == other.name
    }
}

impl Eq for Calendar {}

/// Times are cut to [`END_US`] before.
fn timestamp(us: u64) -> Timestamp {
    i64::try_from(us).ok().and_then(|us| Timestamp::from_microsecond(us).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Windows that began before the epoch begin with it.
fn micros(time: Timestamp) -> u64 {
    u64::try_from(time.as_microsecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
