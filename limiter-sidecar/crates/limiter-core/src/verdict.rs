// SPDX-License-Identifier: Apache-2.0
//! From what was prepared and what the counters answered to one verdict.
//!
//! Owns who refuses, which rule is named, and what is counted for each rule. Makes no header and no body.

use crate::prepare::{Prepared, RuleUse, Standing};
use crate::reply::{CheckReply, Reply, ReplyError, Wait};

const US_PER_S: u64 = 1_000_000;

/// What happens to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Every enforcing rule let it pass.
    Allowed,
    /// At least one enforcing rule refused it.
    Refused,
    /// The store did not answer; an enforcing rule that needed it fails open, and none refused.
    Open,
    /// The store did not answer; the limiter's own shares of the enforcing rules that needed it let the request pass.
    Local,
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
    /// The store did not answer and the limiter's own share of the rule let the request pass.
    LocalAllowed,
    /// The store did not answer and the limiter's own share of the rule, which enforces, refused.
    LocalRejected,
    /// The same for a rule in shadow, which would have refused.
    LocalWouldReject,
    /// Not asked: another rule had already refused.
    NotEvaluated,
}

impl Outcome {
    /// Whether this limiter's own share of the rule decided.
    pub fn is_local(self) -> bool {
        matches!(self, Self::LocalAllowed | Self::LocalRejected | Self::LocalWouldReject)
    }
}

/// What was said about some of the checks, by the store or by this limiter's own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which checks they are: places in [`Prepared::checks`].
    pub checks: Vec<usize>,
    /// One entry for each of them.
    pub reply: Reply,
}

/// The answer to one request. `outcomes`, and `checks` where anything was counted, run parallel to [`Prepared::rules`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What happens to the request.
    pub decision: Decision,
    /// What to count for each rule of [`Prepared::rules`], in its order.
    pub outcomes: Vec<Outcome>,
    /// What was said of each rule of [`Prepared::rules`]; empty when nothing was counted.
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

    /// The verdict from what was counted. A check in no part was not asked. An enforcing rule that refuses by itself still
    /// refuses.
    ///
    /// # Errors
    /// [`ReplyError`] when a part has another number of replies than checks, or contradicts itself.
    pub fn verdict(&self, parts: &[Part]) -> Result<Verdict, ReplyError> {
        let checks = self.joined(parts)?;
        let judged = self.rules().iter().zip(&checks);
        let waits: Vec<_> = judged
            .clone()
            .map(|(rule, check)| match check {
                Some(check) => (!check.ok).then_some(check.wait),
                None => local_wait(&rule.standing),
            })
            .collect();
        let named = longest(self.rules(), &waits);
        let outcomes = judged.map(|(rule, check)| counted_outcome(rule, *check).unwrap_or(Outcome::NotEvaluated));
        Ok(Verdict {
            decision: if named.is_some() { Decision::Refused } else { Decision::Allowed },
            outcomes: outcomes.collect(),
            named,
            wait: named.and_then(|place| waits.get(place).copied().flatten()),
            checks,
        })
    }

    /// The verdict from what this limiter's own memory said; what the store would be asked about was not evaluated.
    pub fn verdict_in_memory(&self, own: &Part) -> Verdict {
        self.verdict(std::slice::from_ref(own)).unwrap_or_else(|_| self.verdict_without_store())
    }

    /// What was said of each rule.
    pub(crate) fn joined(&self, parts: &[Part]) -> Result<Vec<Option<CheckReply>>, ReplyError> {
        let places = self.places();
        let mut joined = vec![None; self.rules().len()];
        for Part { checks, reply } in parts {
            if reply.checks.len() != checks.len() {
                return Err(ReplyError::Checks { found: reply.checks.len(), expected: checks.len() });
            }
            let mut refused = false;
            for (check, answer) in checks.iter().zip(&reply.checks) {
                let Some(place) = places.get(*check).copied() else { continue };
                refused |= !answer.ok && self.rules()[place].enforces();
                joined[place] = Some(*answer);
            }
            if reply.allowed == refused {
                return Err(ReplyError::Contradiction);
            }
        }
        Ok(joined)
    }

    /// The place in [`Prepared::rules`] of each check.
    pub(crate) fn places(&self) -> Vec<usize> {
        let is_check = |place: &usize| matches!(self.rules()[*place].standing, Standing::Check(_));
        (0..self.rules().len()).filter(is_check).collect()
    }
}

/// What is counted for a rule that somebody was asked about, or that needs nobody.
pub(crate) fn counted_outcome(rule: &RuleUse<'_>, check: Option<CheckReply>) -> Option<Outcome> {
    match check {
        Some(check) if check.ok => Some(Outcome::Allowed),
        Some(_) if rule.enforces() => Some(Outcome::Rejected),
        Some(_) => Some(Outcome::WouldReject),
        None => local_outcome(rule),
    }
}

/// What is counted for a rule that nobody is asked about.
fn local_outcome(rule: &RuleUse<'_>) -> Option<Outcome> {
    match rule.standing {
        Standing::Check(_) => None,
        Standing::Exempt => Some(Outcome::Exempt),
        Standing::SkippedMissingKey => Some(Outcome::SkippedMissingKey),
        Standing::Blocked { .. } => Some(Outcome::Blocked),
        Standing::DeniedMissingKey(_) if rule.enforces() => Some(Outcome::Rejected),
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
pub(crate) fn longest(rules: &[RuleUse<'_>], waits: &[Option<Wait>]) -> Option<usize> {
    let mut named: Option<(usize, Wait)> = None;
    for (place, (rule, wait)) in rules.iter().zip(waits).enumerate() {
        if let Some(wait) = *wait
            && rule.enforces()
            && named.is_none_or(|(_, longest)| wait > longest)
        {
            named = Some((place, wait));
        }
    }
    named.map(|(place, _)| place)
}

#[cfg(test)]
mod tests;
