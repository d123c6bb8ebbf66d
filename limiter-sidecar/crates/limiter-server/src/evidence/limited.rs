// SPDX-License-Identifier: Apache-2.0
//! Whom a rule refuses, or would: how many there are, and who most of all. In bounded memory, and only touched by refusals.
//!
//! How many: `HyperLogLog` with 1,024 registers, standard error 3.3 %, nearly exact up to some hundred. Who: the space-saving
//! algorithm with [`KEPT`] places; whoever makes up more than one in [`KEPT`] of the refusals is among them, and a count is
//! too high by that share at most.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

const INDEX_BITS: u32 = 10;
const REGISTERS: usize = 1 << INDEX_BITS;

/// Subjects that are kept by name.
const KEPT: usize = 32;

/// Subjects that are shown.
const SHOWN: usize = 10;

/// One rule's limited subjects.
pub(super) struct Limited {
    registers: Box<[AtomicU8]>,
    top: Mutex<Vec<Entry>>,
}

struct Entry {
    id: u64,
    count: u64,
    label: String,
}

/// One of the most limited subjects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TopSubject {
    pub(crate) subject: String,
    pub(crate) count: u64,
}

impl Limited {
    pub(super) fn new() -> Self {
        Self { registers: (0..REGISTERS).map(|_| AtomicU8::new(0)).collect(), top: Mutex::default() }
    }

    /// Notes that the subject `id` was or would have been refused. `label` is asked for when it was not known.
    pub(super) fn note(&self, id: u64, label: impl FnOnce() -> String) {
        let hash = spread(id);
        let place = usize::try_from(hash >> (u64::BITS - INDEX_BITS)).unwrap_or_default();
        // The index is shifted out; the bit behind it ends the count of zeros.
        let rank = ((hash << INDEX_BITS) | (1 << (INDEX_BITS - 1))).leading_zeros() + 1;
        if let Some(register) = self.registers.get(place) {
            register.fetch_max(u8::try_from(rank).unwrap_or(u8::MAX), Ordering::Relaxed);
        }
        let mut top = self.lock();
        if let Some(entry) = top.iter_mut().find(|entry| entry.id == id) {
            entry.count += 1;
        } else if top.len() < KEPT {
            top.push(Entry { id, count: 1, label: label() });
        } else if let Some(least) = top.iter_mut().min_by_key(|entry| entry.count) {
            *least = Entry { id, count: least.count + 1, label: label() };
        }
    }

    /// About how many different subjects were noted.
    pub(super) fn distinct(&self) -> u64 {
        let ranks: Vec<u8> = self.registers.iter().map(|register| register.load(Ordering::Relaxed)).collect();
        estimate(&ranks)
    }

    /// Those that were noted most, the first of them first.
    pub(super) fn top(&self) -> Vec<TopSubject> {
        let mut top: Vec<_> =
            self.lock().iter().map(|entry| TopSubject { subject: entry.label.clone(), count: entry.count }).collect();
        top.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| one.subject.cmp(&two.subject)));
        top.truncate(SHOWN);
        top
    }

    /// The entries are whole whatever happened to a holder of the lock: nothing panics with it held.
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Flajolet's estimate, with linear counting where most registers are still empty.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of at most 2^64, and not negative"
)]
fn estimate(ranks: &[u8]) -> u64 {
    let registers = f64::from(1_u32 << INDEX_BITS);
    let empty: u32 = ranks.iter().map(|rank| u32::from(*rank == 0)).sum();
    let sum: f64 = ranks.iter().map(|rank| f64::from(-i32::from(*rank)).exp2()).sum();
    let raw = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
    let estimate =
        if raw <= 2.5 * registers && empty > 0 { registers * (registers / f64::from(empty)).ln() } else { raw };
    estimate.round() as u64
}

/// A subject's number is of base64 text; this makes all of its bits even. (The finalizer of `MurmurHash3`.)
fn spread(mut number: u64) -> u64 {
    number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(ids: impl Iterator<Item = u64>) -> Limited {
        let limited = Limited::new();
        ids.for_each(|id| limited.note(id, || id.to_string()));
        limited
    }

    #[test]
    fn distinct_subjects_are_estimated() {
        for many in [0, 1, 10, 100, 1_000, 10_000, 200_000] {
            let found = noted((0..many).flat_map(|id| [id, id])).distinct();
            // Three standard errors.
            assert!(found.abs_diff(many) <= many / 10, "{found} instead of {many}");
        }
    }

    #[test]
    fn the_most_limited_come_first_also_among_many() {
        let noise = (1_000..21_000).flat_map(|id| [7, id, 7, 8]);
        let top = noted(noise).top();
        assert_eq!(SHOWN, top.len());
        assert_eq!(["7", "8"], [&*top[0].subject, &*top[1].subject]);
        assert!((40_000..=42_500).contains(&top[0].count), "{}", top[0].count);
    }

    #[test]
    fn a_label_is_made_once() {
        let limited = Limited::new();
        limited.note(1, || "one".to_owned());
        limited.note(1, || unreachable!());
        assert_eq!(vec![TopSubject { subject: "one".to_owned(), count: 2 }], limited.top());
    }
}
