// SPDX-License-Identifier: Apache-2.0
//! The overrides of one rule, found by subject.
//!
//! Owns windows and precedence. A lookup hashes the request's own values and looks them up once for each set of named
//! sources, so it costs the same with one override and with ten thousand.

mod timeline;

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest, Sha256};

use self::timeline::Timeline;
use crate::limit::Limit;
use crate::ruleset::SubjectDoc;
use crate::subject::{KeySpec, Source, Value};

/// SHA-256 over one source's value.
pub type ValueDigest = [u8; 32];

/// What an override names instead of this value.
pub fn digest_of(value: &Value<'_>) -> ValueDigest {
    Sha256::digest(value.as_bytes()).into()
}

/// One override, as far as one rule is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// `namespace/name` of the user's object.
    pub id: Box<str>,
    /// What it does.
    pub effect: Effect,
    /// Epoch seconds, inclusive; 0 when it has no start.
    pub not_before: u64,
    /// Epoch seconds, exclusive.
    pub not_after: Option<u64>,
}

/// What an override does to a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Other numbers, replaced or multiplied: one limit for each limit of the rule, in the same order.
    Set(Box<[Limit]>),
    /// The rule does not apply.
    Exempt,
    /// Refused.
    Block,
}

/// All overrides of one rule.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// In order of precedence.
    list: Vec<Override>,
    /// By the positions of the sources that a subject names.
    by_named: BTreeMap<Box<[usize]>, BySubject>,
}

/// The values' digests in the order of the positions → which of the list when.
type BySubject = HashMap<Box<[ValueDigest]>, Timeline>;

impl Overrides {
    /// Appends an override, of lower precedence than all before, for those of `subjects` that `spec` can match.
    ///
    /// A subject that names a source outside the key matches no request of this rule and is left out.
    ///
    /// # Errors
    /// (index of subject and entry, message) when a hash is no hash, or a source is named twice.
    pub fn push(
        &mut self,
        entry: Override,
        spec: &KeySpec,
        subjects: &[Vec<SubjectDoc>],
    ) -> Result<(), (usize, usize, String)> {
        let place = self.list.len();
        let until = entry.not_after.unwrap_or(u64::MAX);
        let sources: Vec<String> = spec.sources().iter().map(Source::name).collect();
        for (index, subject) in subjects.iter().enumerate() {
            let mut by_source = BTreeMap::new();
            let mut matchable = true;
            for (position, part) in subject.iter().enumerate() {
                let digest = crate::hex::decode_sha256(&part.sha256)
                    .ok_or_else(|| (index, position, "sha256 must be 64 lower-case hex digits".to_owned()))?;
                match sources.iter().position(|name| *name == part.source) {
                    Some(source) if by_source.insert(source, digest).is_some() => {
                        return Err((index, position, format!("source {} is named twice", part.source)));
                    }
                    Some(_) => {}
                    None => matchable = false,
                }
            }
            if matchable {
                let named = by_source.keys().copied().collect();
                let digests = by_source.into_values().collect();
                let timeline = self.by_named.entry(named).or_default().entry(digests).or_default();
                timeline.fill(entry.not_before, until, place);
            }
        }
        self.list.push(entry);
        Ok(())
    }

    /// The override that counts for a request at `now_s`: the first in force with a subject that fits. A source of the key
    /// that a subject does not name may have any value or none.
    ///
    /// `digest` gives the request's value for a source of the key, by its position; it is asked only for sources that
    /// some override names. One look-up for each set of sources that are named together, and a binary search in the
    /// windows of the one subject that was found.
    pub fn find(&self, now_s: u64, mut digest: impl FnMut(usize) -> Option<ValueDigest>) -> Option<&Override> {
        let first = self.by_named.iter().filter_map(|(named, by_digests)| {
            let wanted: Vec<ValueDigest> = named.iter().map(|source| digest(*source)).collect::<Option<_>>()?;
            by_digests.get(&*wanted)?.at(now_s)
        });
        self.list.get(first.min()?)
    }
}

#[cfg(test)]
mod tests;
