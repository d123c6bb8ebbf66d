// SPDX-License-Identifier: Apache-2.0
//! How a rule's mode differs by request and by time: its stage and its switches, in the form that decides.
//!
//! Owns which side of a stage a subject is on. That side depends on the policy's id, the rule's name and the subject alone,
//! so that no edit and no further stage moves a subject back.

use sha2::{Digest, Sha256};

use crate::ruleset::{Mode, StageDoc, SwitchDoc};
use crate::subject::Subject;

/// What a rule's mode is shifted by. A rule has one only if there is something in it.
#[derive(Debug)]
pub(crate) struct Shift {
    pub(crate) stage: Option<Stage>,
    pub(crate) switches: Box<[Switch]>,
}

/// Requests with another mode.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) mode: Mode,
    pub(crate) plans: Box<[Box<[u8]>]>,
    pub(crate) percent: u8,
    /// Makes the sides of two rules independent of each other.
    salt: u64,
    /// The entry of the same name that says which requests are in the stage, if that is another one: its place in the policy.
    pub(crate) judge: Option<usize>,
}

/// A cap until its time is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    mode: Mode,
    /// Epoch seconds, exclusive.
    not_after: u64,
}

impl Shift {
    /// What the document says of the rule, if anything.
    pub(super) fn of(policy: &str, rule: &str, stage: Option<&StageDoc>, switches: &[SwitchDoc]) -> Option<Box<Self>> {
        let stage = stage.map(|doc| Stage {
            mode: doc.mode,
            plans: doc.plans.iter().map(|plan| plan.as_bytes().into()).collect(),
            percent: doc.percent,
            salt: salt(policy, rule),
            judge: None,
        });
        let switches: Box<[Switch]> = switches
            .iter()
            .map(|doc| Switch { mode: doc.mode, not_after: doc.not_after.unwrap_or(u64::MAX) })
            .collect();
        (stage.is_some() || !switches.is_empty()).then(|| Box::new(Self { stage, switches }))
    }

    /// The weakest of the switches that are live at `now_s`.
    pub(crate) fn cap_at(&self, now_s: u64) -> Mode {
        let live = self.switches.iter().filter(|switch| now_s < switch.not_after);
        live.map(|switch| switch.mode).min().unwrap_or(Mode::Enforce)
    }
}

impl Stage {
    pub(crate) fn has_plan(&self, plan: &[u8]) -> bool {
        self.plans.iter().any(|known| **known == *plan)
    }

    /// Whether every request is in it, whatever its subject, and also if it has none.
    pub(crate) fn takes_all(&self) -> bool {
        self.percent >= 100
    }

    /// Whether the subject is below the stage's percentage.
    pub(crate) fn takes(&self, subject: Subject) -> bool {
        let lot = u128::from(mixed(self.salt ^ subject.digits()));
        (lot * 100) >> 64 < u128::from(self.percent)
    }
}

fn salt(policy: &str, rule: &str) -> u64 {
    let mut hash = Sha256::new();
    for part in ["weir:stage:1", policy, rule] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let hash: [u8; 32] = hash.finalize().into();
    hash.as_chunks().0.first().map_or(0, |first| u64::from_be_bytes(*first))
}

/// The finalizer of `SplitMix64`: each bit of the number decides about each bit of the outcome. The subject is a keyed hash, so
/// no client can choose a side.
fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
