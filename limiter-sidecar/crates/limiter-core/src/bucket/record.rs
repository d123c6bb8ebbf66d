// SPDX-License-Identifier: Apache-2.0
//! The bytes of a bucket string: 41 per rule, as the script's `struct.pack('>c8Bdddd', …)` writes them.

use super::debt::Rate;
use super::{Stored, whole};
use crate::subject::RuleId;

const BYTES: usize = 41;
const TOKEN_BUCKET: u8 = 1;
const US_PER_MS: f64 = 1_000.0;

/// One rule's state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) id: RuleId,
    /// µs since the epoch of the last charge.
    pub(super) at: f64,
    /// Debt at that time, in 1/L µs.
    pub(super) debt: f64,
    /// The rate it was charged under, whose units the debt is in.
    pub(super) rate: Rate,
}

/// All records of one bucket string, in the order that they were found in.
#[derive(Debug, Default)]
pub(super) struct Records {
    list: Vec<Record>,
    changed: bool,
}

impl Record {
    fn unpack(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let (_kind, rest) = rest.split_first()?;
        let mut numbers = rest.chunks_exact(8).map(|bytes| bytes.try_into().map(f64::from_be_bytes));
        let mut next = || numbers.next()?.ok();
        let (at, debt) = (next()?, next()?);
        Some(Self { id: *id, at, debt, rate: Rate { weight: next()?, drain_per_us: next()? } })
    }

    fn pack(&self, out: &mut Vec<u8>) {
        out.extend(self.id);
        out.push(TOKEN_BUCKET);
        for number in [self.at, self.debt, self.rate.weight, self.rate.drain_per_us] {
            out.extend(number.to_be_bytes());
        }
    }
}

impl Records {
    /// Reads a string; none is an empty one.
    pub(super) fn unpack(stored: Option<&Stored>) -> Self {
        let value = stored.map(|stored| stored.value.as_slice()).unwrap_or_default();
        Self { list: value.chunks_exact(BYTES).filter_map(Record::unpack).collect(), changed: false }
    }

    pub(super) fn find(&self, id: RuleId) -> Option<&Record> {
        self.list.iter().find(|record| record.id == id)
    }

    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// Replaces the record of the same rule or appends this one. Its time never moves back.
    pub(super) fn put(&mut self, mut record: Record) {
        self.changed = true;
        match self.list.iter_mut().find(|known| known.id == record.id) {
            Some(known) => {
                record.at = record.at.max(known.at);
                *known = record;
            }
            None => self.list.push(record),
        }
    }

    /// The string to write at `now`: what still owes something. It lives until the last of it is drained and 1 ms longer.
    pub(super) fn pack(self, now: f64) -> Stored {
        let mut value = Vec::with_capacity(self.list.len() * BYTES);
        let mut longest_us = 0.0_f64;
        for record in &self.list {
            // A record from a later clock lives longer by the difference.
            let owed = record.debt - (now - record.at) * record.rate.drain_per_us;
            if owed > 0.0 {
                record.pack(&mut value);
                longest_us = longest_us.max((owed / record.rate.drain_per_us).ceil());
            }
        }
        Stored { value, ttl_ms: whole((longest_us / US_PER_MS).ceil()) + 1 }
    }
}
