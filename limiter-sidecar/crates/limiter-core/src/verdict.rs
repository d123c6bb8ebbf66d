// SPDX-License-Identifier: Apache-2.0
//! From what was prepared and what the store answered to one verdict.
//!
//! Owns who refuses, which rule is named, and what is counted for each rule. Makes no header and no body.

use crate::prepare::{Prepared, RuleUse, Standing};
use crate::reply::{CheckReply, Reply, ReplyError, Wait};
use crate::ruleset::OnStoreFailure;

const US_PER_S: u64 = 1_000_000;

/// What a client is told to wait when a rule fails closed: stores mostly come back at once.
const CLOSED_RETRY_US: u64 = US_PER_S;

/// What happens to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Every enforcing rule let it pass.
    Allowed,
    /// At least one enforcing rule refused it.
    Refused,
    /// The store did not answer; every enforcing rule that needed it fails open.
    Open,
    /// The store did not answer; an enforcing rule fails closed.
    Closed,
    /// No policy matches: passed without a look at any rule.
    Unmatched,
    /// Policies match, but an exemption covers the request.
    Exempt,
}

/// What is counted for one rule on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The rule let the request pass.
    Allowed,
    /// The rule enforces and refused.
    Rejected,
    /// The rule is in shadow and would have refused.
    WouldReject,
    /// The request lacks the rule's key, and the rule skips such requests.
    SkippedMissingKey,
    /// An exemption or an `Exempt` override covers the request.
    Exempt,
    /// A `Block` override refused the subject (for a shadow rule: would have).
    Blocked,
    /// The store did not answer and the rule fails open (a shadow rule always does).
    StoreFailureOpen,
    /// The store did not answer and the rule fails closed.
    StoreFailureClosed,
    /// Not asked: another rule had already refused without the store.
    NotEvaluated,
}

/// The answer to one request. `outcomes`, and `checks` where the store was asked, run parallel to [`Prepared::rules`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What happens to the request.
    pub decision: Decision,
    /// What to count for each rule of [`Prepared::rules`], in its order.
    pub outcomes: Vec<Outcome>,
    /// What the store said for each rule of [`Prepared::rules`]; empty when it was not asked or did not answer.
    pub checks: Vec<Option<CheckReply>>,
    /// Index into [`Prepared::rules`] of the rule that the client is told about, when the request is not passed.
    pub named: Option<usize>,
    /// How long the client must wait, when it is refused.
    pub wait: Option<Wait>,
}

impl Prepared<'_> {
    /// The verdict that needs no store: nothing applies, or a rule refuses by itself.
    ///
    /// For the case that [`Prepared::needs_store`] says no; rules that would have been checked count as not evaluated.
    pub fn verdict_without_store(&self) -> Verdict {
        let waits: Vec<_> = self.rules().iter().map(|rule| local_wait(&rule.standing)).collect();
        let named = longest(self.rules(), &waits);
        let decision = if named.is_some() {
            Decision::Refused
        } else if !self.matched() {
            Decision::Unmatched
        } else if self.rules().iter().any(|rule| rule.standing == Standing::Exempt) {
            Decision::Exempt
        } else {
            Decision::Allowed
        };
        Verdict {
            decision,
            outcomes: self.rules().iter().map(|rule| local_outcome(rule).unwrap_or(Outcome::NotEvaluated)).collect(),
            checks: Vec::new(),
            named,
            wait: named.and_then(|place| waits.get(place).copied().flatten()),
        }
    }

    /// The verdict from the store's answer. An enforcing rule that refuses by itself still refuses.
    ///
    /// # Errors
    /// [`ReplyError`] when the reply has another number of checks than were sent, or contradicts itself.
    pub fn verdict(&self, reply: &Reply) -> Result<Verdict, ReplyError> {
        if reply.checks.len() != self.check_count() {
            return Err(ReplyError::Length { found: reply.checks.len(), expected: self.check_count() });
        }
        let mut replies = reply.checks.iter().copied();
        let checks: Vec<Option<CheckReply>> = self
            .rules()
            .iter()
            .map(|rule| if matches!(rule.standing, Standing::Check(_)) { replies.next() } else { None })
            .collect();
        let judged = self.rules().iter().zip(&checks);
        if reply.allowed
            == judged.clone().any(|(rule, check)| rule.rule.enforces() && check.is_some_and(|check| !check.ok))
        {
            return Err(ReplyError::Contradiction);
        }
        let waits: Vec<_> = judged
            .clone()
            .map(|(rule, check)| match check {
                Some(check) => (!check.ok).then_some(check.wait),
                None => local_wait(&rule.standing),
            })
            .collect();
        let named = longest(self.rules(), &waits);
        let outcomes = judged.map(|(rule, check)| match check {
            Some(check) if check.ok => Outcome::Allowed,
            Some(_) if rule.rule.enforces() => Outcome::Rejected,
            Some(_) => Outcome::WouldReject,
            None => local_outcome(rule).unwrap_or(Outcome::NotEvaluated),
        });
        Ok(Verdict {
            decision: if named.is_some() { Decision::Refused } else { Decision::Allowed },
            outcomes: outcomes.collect(),
            named,
            wait: named.and_then(|place| waits.get(place).copied().flatten()),
            checks,
        })
    }

    /// The verdict when the store did not answer in time, or not at all: every rule's own failure mode.
    ///
    /// A shadow rule neither closes nor opens anything. Of several closed rules a public one is named.
    pub fn verdict_on_store_failure(&self) -> Verdict {
        let checked = |rule: &RuleUse<'_>| matches!(rule.standing, Standing::Check(_));
        let closed = |rule: &RuleUse<'_>| {
            checked(rule) && rule.rule.enforces() && rule.rule.on_store_failure() == OnStoreFailure::Closed
        };
        let named = self
            .rules()
            .iter()
            .position(|rule| closed(rule) && rule.rule.is_public())
            .or_else(|| self.rules().iter().position(closed));
        let outcomes = self.rules().iter().map(|rule| {
            local_outcome(rule).unwrap_or(if closed(rule) {
                Outcome::StoreFailureClosed
            } else {
                Outcome::StoreFailureOpen
            })
        });
        let decision = if named.is_some() {
            Decision::Closed
        } else if self.rules().iter().any(|rule| checked(rule) && rule.rule.enforces()) {
            Decision::Open
        } else {
            Decision::Allowed
        };
        Verdict {
            decision,
            outcomes: outcomes.collect(),
            checks: Vec::new(),
            named,
            wait: named.map(|_| Wait::Us(CLOSED_RETRY_US)),
        }
    }
}

/// What is counted for a rule that the store is not asked about.
fn local_outcome(rule: &RuleUse<'_>) -> Option<Outcome> {
    match rule.standing {
        Standing::Check(_) => None,
        Standing::Exempt => Some(Outcome::Exempt),
        Standing::SkippedMissingKey => Some(Outcome::SkippedMissingKey),
        Standing::Blocked { .. } => Some(Outcome::Blocked),
        Standing::DeniedMissingKey(_) if rule.rule.enforces() => Some(Outcome::Rejected),
        Standing::DeniedMissingKey(_) => Some(Outcome::WouldReject),
    }
}

/// How long a rule that refuses by itself wants the client to wait.
fn local_wait(standing: &Standing<'_>) -> Option<Wait> {
    match standing {
        Standing::Blocked { wait_s } => Some(Wait::Us(wait_s.saturating_mul(US_PER_S))),
        Standing::DeniedMissingKey(_) => Some(Wait::Never),
        Standing::Check(_) | Standing::Exempt | Standing::SkippedMissingKey => None,
    }
}

/// The enforcing rule with the longest wait among those that refuse; the first of several equal ones.
fn longest(rules: &[RuleUse<'_>], waits: &[Option<Wait>]) -> Option<usize> {
    let mut named: Option<(usize, Wait)> = None;
    for (place, (rule, wait)) in rules.iter().zip(waits).enumerate() {
        if let Some(wait) = *wait
            && rule.rule.enforces()
            && named.is_none_or(|(_, longest)| wait > longest)
        {
            named = Some((place, wait));
        }
    }
    named.map(|(place, _)| place)
}

#[cfg(test)]
mod tests;
