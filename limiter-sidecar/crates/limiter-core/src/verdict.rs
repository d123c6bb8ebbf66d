// SPDX-License-Identifier: Apache-2.0
//! From what was prepared and what the store answered to one verdict.
//!
//! Owns who refuses, which rule is named, and what is counted for each rule. Makes no header and no body.

use crate::prepare::Prepared;
use crate::reply::{CheckReply, Reply, Wait};

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
    /// To be used when [`Prepared::needs_store`] says no.
    pub fn verdict_without_store(&self) -> Verdict {
        todo!()
    }

    /// The verdict from the store's answer.
    ///
    /// # Errors
    /// When the reply has another number of checks than were sent.
    pub fn verdict(&self, reply: &Reply) -> Result<Verdict, crate::reply::ReplyError> {
        let _ = reply;
        todo!()
    }

    /// The verdict when the store did not answer in time, or not at all: every rule's own failure mode.
    pub fn verdict_on_store_failure(&self) -> Verdict {
        todo!()
    }
}
