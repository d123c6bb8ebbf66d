// SPDX-License-Identifier: Apache-2.0
//! The verdict when the store did not answer in time, or not at all: every rule's own failure mode.
//!
//! Owns the order of the modes: closed rules refuse first and nothing is counted for that; then the limiter's own shares
//! decide, all of them or none; what fails open passes. A shadow rule neither closes nor opens anything.

use crate::prepare::{Prepared, RuleUse, Standing};
use crate::reply::{CheckReply, Wait};
use crate::ruleset::OnStoreFailure;
use crate::verdict::{Decision, Outcome, Part, Verdict, counted_outcome, longest};

/// What a client is told to wait where a rule fails closed: stores mostly come back at once.
const RETRY_US: u64 = 1_000_000;

/// One rule, what was said of it, and whether that was the limiter's own share.
#[derive(Clone, Copy)]
struct Judged<'p, 'r> {
    rule: &'p RuleUse<'r>,
    check: Option<CheckReply>,
    local: bool,
}

impl Judged<'_, '_> {
    /// Nobody has decided it.
    fn failed(&self) -> bool {
        matches!(self.rule.standing, Standing::Check(_)) && self.check.is_none()
    }

    fn closes(&self) -> bool {
        self.failed() && self.rule.enforces() && self.rule.rule.on_store_failure() == OnStoreFailure::Closed
    }

    /// How long the limiter's own share makes the client wait, if it refuses.
    fn wait(&self) -> Option<Wait> {
        self.check.filter(|check| self.local && !check.ok).map(|check| check.wait)
    }

    fn outcome(&self) -> Outcome {
        let outcome = counted_outcome(self.rule, self.check);
        match outcome {
            Some(Outcome::Allowed) if self.local => Outcome::LocalAllowed,
            Some(Outcome::Rejected) if self.local => Outcome::LocalRejected,
            Some(Outcome::WouldReject) if self.local => Outcome::LocalWouldReject,
            Some(outcome) => outcome,
            None if self.closes() => Outcome::StoreFailureClosed,
            None => Outcome::StoreFailureOpen,
        }
    }
}

impl<'r> Prepared<'r> {
    /// Whether an enforcing rule that no part answers fails closed: then nothing need be counted.
    pub fn fails_closed(&self, parts: &[Part]) -> bool {
        self.judged(parts, None).iter().any(Judged::closes)
    }

    /// The verdict when the store failed. `parts`: what was let pass beside it; `fallback`: what the limiter's own shares said
    /// to [`Prepared::fallback_call`]. A check in none of them has failed. Of several closed rules a public one is named.
    pub fn verdict_on_store_failure(&self, parts: &[Part], fallback: Option<&Part>) -> Verdict {
        let judged = self.judged(parts, fallback);
        let closing =
            |public: bool| judged.iter().position(|judged| judged.closes() && judged.rule.rule.is_public() >= public);
        let closed = closing(true).or_else(|| closing(false));
        let waits: Vec<_> = judged.iter().map(Judged::wait).collect();
        let refusing = longest(self.rules(), &waits);
        let enforcing = || judged.iter().filter(|judged| judged.rule.enforces());
        let decision = if closed.is_some() {
            Decision::Closed
        } else if refusing.is_some() {
            Decision::Refused
        } else if enforcing().any(Judged::failed) {
            Decision::Open
        } else if enforcing().any(|judged| judged.local) {
            Decision::Local
        } else {
            Decision::Allowed
        };
        let wait = match (closed, refusing) {
            (Some(_), _) => Some(Wait::Us(RETRY_US)),
            (None, refusing) => refusing.and_then(|place| waits.get(place).copied().flatten()),
        };
        let counted = judged.iter().any(|judged| judged.check.is_some());
        Verdict {
            decision,
            outcomes: judged.iter().map(Judged::outcome).collect(),
            checks: if counted { judged.iter().map(|judged| judged.check).collect() } else { Vec::new() },
            named: closed.or(refusing),
            wait,
        }
    }

    fn judged<'p>(&'p self, parts: &[Part], fallback: Option<&Part>) -> Vec<Judged<'p, 'r>> {
        let all: Vec<Part> = parts.iter().chain(fallback).cloned().collect();
        let checks = self.joined(&all).unwrap_or_else(|_| vec![None; self.rules().len()]);
        let places = self.places();
        let ours = fallback.iter().flat_map(|part| &part.checks).filter_map(|check| places.get(*check));
        let ours: Vec<usize> = ours.copied().collect();
        let judged = self.rules().iter().zip(checks).enumerate();
        judged.map(|(place, (rule, check))| Judged { rule, check, local: ours.contains(&place) }).collect()
    }
}

#[cfg(test)]
mod tests;
