// SPDX-License-Identifier: Apache-2.0
//! The labels of the metrics and their closed sets of values.

use std::fmt::Write as _;

use limiter_core::{Decision, Outcome, Slot};
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, EncodeLabelValue, LabelSetEncoder, LabelValueEncoder};

use crate::store::StoreFailure;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DecisionLabels {
    pub(super) decision: DecisionLabel,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RuleLabels {
    pub(super) policy: String,
    pub(super) rule: String,
    #[prometheus(flatten)]
    pub(super) slot: SlotLabel,
    pub(super) outcome: OutcomeLabel,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct FailureLabels {
    pub(super) reason: StoreFailure,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RuleFailureLabels {
    pub(super) policy: String,
    pub(super) rule: String,
    #[prometheus(flatten)]
    pub(super) slot: SlotLabel,
    pub(super) reason: StoreFailure,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RefundLabels {
    pub(super) reason: RefundReason,
    pub(super) outcome: RefundOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PreflightLabels {
    pub(super) check: &'static str,
}

/// Which rule a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RuleSeries<'a> {
    pub(crate) policy: &'a str,
    pub(crate) rule: &'a str,
    pub(crate) slot: Option<Slot>,
}

/// The second entry of a rule's name has a label that the first has not, so that the series of a rule which never had two
/// stay what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SlotLabel(pub(super) Option<Slot>);

impl EncodeLabelSet for SlotLabel {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> Result<(), std::fmt::Error> {
        match self.0 {
            Some(slot) => EncodeLabel::encode(&("slot", slot.as_str()), encoder.encode_label()),
            None => Ok(()),
        }
    }
}

/// Why a charge was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RefundReason {
    /// The client went away before its request could leave: while it was held, or while the store was asked.
    ClientGone,
    /// The request had to be held, and as many are held as may.
    HeldFull,
    /// The limiter ends before the held request could leave.
    Draining,
    /// The request had to be held for longer than Envoy waits.
    Impatient,
    /// Other rules of the request, in another slot of the cluster, refused it or failed closed.
    Partial,
}

/// How giving a charge back ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RefundOutcome {
    /// The store took it back.
    Done,
    /// The store did not say so; the charge may stay.
    Failed,
    /// Too many were due; the charge stays.
    Dropped,
}

impl EncodeLabelValue for RefundOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> Result<(), std::fmt::Error> {
        encoder.write_str(match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        })
    }
}

impl EncodeLabelValue for RefundReason {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> Result<(), std::fmt::Error> {
        encoder.write_str(match self {
            Self::ClientGone => "client_gone",
            Self::HeldFull => "held_full",
            Self::Draining => "draining",
            Self::Impatient => "impatient",
            Self::Partial => "partial",
        })
    }
}

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum DecisionLabel {
    Allowed,
    Refused,
    Open,
    Local,
    Closed,
    Unmatched,
    Exempt,
}

impl DecisionLabel {
    /// Every value, in the order of their discriminants.
    pub(super) const ALL: [Self; 7] =
        [Self::Allowed, Self::Refused, Self::Open, Self::Local, Self::Closed, Self::Unmatched, Self::Exempt];

    pub(super) fn of(decision: Decision) -> Self {
        match decision {
            Decision::Allowed => Self::Allowed,
            Decision::Refused => Self::Refused,
            Decision::Open => Self::Open,
            Decision::Local => Self::Local,
            Decision::Closed => Self::Closed,
            Decision::Unmatched => Self::Unmatched,
            Decision::Exempt => Self::Exempt,
        }
    }
}

impl EncodeLabelValue for DecisionLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> Result<(), std::fmt::Error> {
        encoder.write_str(match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Open => "open",
            Self::Local => "local",
            Self::Closed => "closed",
            Self::Unmatched => "unmatched",
            Self::Exempt => "exempt",
        })
    }
}

/// What was counted for a rule on a request. `UnknownPlan`, `Held` and `WouldHold` come beside the request's own outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OutcomeLabel {
    Allowed,
    Rejected,
    WouldReject,
    SkippedMissingKey,
    UnknownPlan,
    StoreFailureOpen,
    StoreFailureClosed,
    LocalAllowed,
    LocalRejected,
    LocalWouldReject,
    Exempt,
    Blocked,
    Held,
    WouldHold,
}

impl OutcomeLabel {
    /// Every value, in the order of their discriminants.
    pub(crate) const ALL: [Self; 14] = [
        Self::Allowed,
        Self::Rejected,
        Self::WouldReject,
        Self::SkippedMissingKey,
        Self::UnknownPlan,
        Self::StoreFailureOpen,
        Self::StoreFailureClosed,
        Self::LocalAllowed,
        Self::LocalRejected,
        Self::LocalWouldReject,
        Self::Exempt,
        Self::Blocked,
        Self::Held,
        Self::WouldHold,
    ];

    /// The label for a rule's outcome; none for a rule that was not asked.
    pub(crate) fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Allowed => Some(Self::Allowed),
            Outcome::Rejected => Some(Self::Rejected),
            Outcome::WouldReject => Some(Self::WouldReject),
            Outcome::SkippedMissingKey => Some(Self::SkippedMissingKey),
            Outcome::Exempt => Some(Self::Exempt),
            Outcome::Blocked => Some(Self::Blocked),
            Outcome::StoreFailureOpen => Some(Self::StoreFailureOpen),
            Outcome::StoreFailureClosed => Some(Self::StoreFailureClosed),
            Outcome::LocalAllowed => Some(Self::LocalAllowed),
            Outcome::LocalRejected => Some(Self::LocalRejected),
            Outcome::LocalWouldReject => Some(Self::LocalWouldReject),
            Outcome::NotEvaluated => None,
        }
    }
}

impl EncodeLabelValue for OutcomeLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> Result<(), std::fmt::Error> {
        encoder.write_str(match self {
            Self::Allowed => "allowed",
            Self::Rejected => "rejected",
            Self::WouldReject => "would_reject",
            Self::SkippedMissingKey => "skipped_missing_key",
            Self::UnknownPlan => "unknown_plan",
            Self::StoreFailureOpen => "store_failure_open",
            Self::StoreFailureClosed => "store_failure_closed",
            Self::LocalAllowed => "local_allowed",
            Self::LocalRejected => "local_rejected",
            Self::LocalWouldReject => "local_would_reject",
            Self::Exempt => "exempt",
            Self::Blocked => "blocked",
            Self::Held => "held",
            Self::WouldHold => "would_hold",
        })
    }
}
