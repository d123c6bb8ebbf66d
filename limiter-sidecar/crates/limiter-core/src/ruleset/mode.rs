// SPDX-License-Identifier: Apache-2.0
//! Modes of the document, and how they differ by request and by time: slots, stages and switches.

use serde::Deserialize;

/// Whether a rule acts. The weakest comes first: where several hold, it is the least of them.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Costs nothing and does nothing.
    Disabled,
    /// Counts what it would refuse.
    Shadow,
    /// Refuses.
    Enforce,
}

impl Mode {
    /// As users write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Shadow => "Shadow",
            Self::Disabled => "Disabled",
        }
    }
}

/// The second entry of a rule's name. The first has no slot.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Slot {
    /// The only one.
    B,
}

impl Slot {
    /// As documents write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::B => "b",
        }
    }
}

/// Requests that get another mode than the rest: those of some plans, and a share of the subjects.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StageDoc {
    /// `Enforce` or `Shadow`.
    pub mode: Mode,
    /// Plans of the rule.
    pub plans: Vec<String>,
    /// 0 to 100.
    pub percent: u8,
}

/// What weakens a rule until its time is over.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SwitchDoc {
    /// `Shadow` or `Disabled`.
    pub mode: Mode,
    /// Epoch seconds, exclusive.
    #[serde(default)]
    pub not_after: Option<u64>,
}
