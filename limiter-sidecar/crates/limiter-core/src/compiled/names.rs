// SPDX-License-Identifier: Apache-2.0
//! What a rule is called in the header fields: its own name, with more of the policy where that is ambiguous.

use crate::headers::sf_string;

/// A name as text, and serialised as an RFC 9651 String.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemName {
    pub(crate) text: Box<str>,
    pub(crate) serialised: Box<str>,
}

/// A rule's names, from the short one to one that no other rule has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemNames([ItemName; 3]);

impl ItemNames {
    /// The names of `rule` in the policy `namespace/name`, or nothing when one cannot be an RFC 9651 String.
    pub(super) fn new(policy: &str, rule: &str) -> Option<Self> {
        let short_policy = policy.split_once('/').map_or(policy, |(_namespace, name)| name);
        let item = |text: String| Some(ItemName { serialised: sf_string(&text)?.into(), text: text.into() });
        Some(Self([item(rule.to_owned())?, item(format!("{short_policy}.{rule}"))?, item(format!("{policy}.{rule}"))?]))
    }

    /// The shortest of this rule's names that none of `others` has too.
    pub(crate) fn among<'a>(&self, others: impl Iterator<Item = &'a Self>) -> &ItemName {
        let [short, longer, full] = &self.0;
        let (mut same_short, mut same_longer) = (false, false);
        for Self([other_short, other_longer, _]) in others {
            same_short |= other_short == short;
            same_longer |= other_longer == longer;
        }
        match (same_short, same_longer) {
            (false, _) => short,
            (true, false) => longer,
            (true, true) => full,
        }
    }
}
