// SPDX-License-Identifier: Apache-2.0
//! The break-glass map: what people switch off without the operator.
//!
//! Owns its words and whom they name. Where it is read from is the server's matter.

use std::collections::BTreeMap;

use crate::compiled::{Rule, Ruleset};
use crate::ruleset::Mode;

/// Who is capped at what: `*`, `namespace/policy` or `namespace/policy/rule`, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakGlass(BTreeMap<String, Mode>);

/// The cap of each rule of one ruleset.
#[derive(Debug)]
pub struct Caps(Box<[Mode]>);

impl BreakGlass {
    /// Checks a map. All of it is refused when a part is wrong: half of what somebody meant in an emergency is worse than a
    /// word about it.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn new<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut modes = BTreeMap::new();
        for (name, word) in entries {
            if !is_name(name) {
                return Err(format!("{name:?} must be \"*\", \"namespace/policy\" or \"namespace/policy/rule\""));
            }
            let mode = match word {
                "Shadow" => Mode::Shadow,
                "Disabled" => Mode::Disabled,
                _ => return Err(format!("{name:?}: {word:?} must be Shadow or Disabled")),
            };
            if modes.insert(name.to_owned(), mode).is_some() {
                return Err(format!("{name:?} is there twice"));
            }
        }
        Ok(Self(modes))
    }

    /// Whether it caps nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its entries, by name.
    pub fn modes(&self) -> impl Iterator<Item = (&str, Mode)> {
        self.0.iter().map(|(name, mode)| (name.as_str(), *mode))
    }

    /// What it means for a ruleset; nothing when no rule is capped.
    pub fn caps(&self, ruleset: &Ruleset) -> Option<Caps> {
        if self.0.is_empty() {
            return None;
        }
        let all = self.cap("*");
        let caps: Box<[Mode]> = ruleset
            .policies()
            .iter()
            .flat_map(|policy| {
                let whole = self.cap(policy.id()).min(all);
                let cap = move |rule: &Rule| self.cap(&format!("{}/{}", policy.id(), rule.name())).min(whole);
                policy.rules().iter().map(cap)
            })
            .collect();
        caps.iter().any(|cap| *cap != Mode::Enforce).then_some(Caps(caps))
    }

    fn cap(&self, name: &str) -> Mode {
        self.0.get(name).copied().unwrap_or(Mode::Enforce)
    }
}

impl Caps {
    /// The most that holds for a rule of the ruleset that they were made for.
    pub fn of(&self, rule: &Rule) -> Mode {
        self.0.get(rule.ordinal()).copied().unwrap_or(Mode::Enforce)
    }
}

fn is_name(name: &str) -> bool {
    name == "*" || {
        let parts: Vec<&str> = name.split('/').collect();
        matches!(parts.len(), 2 | 3) && parts.iter().all(|part| is_part(part))
    }
}

/// A name as Kubernetes has it.
fn is_part(part: &str) -> bool {
    let is_end = |end: Option<u8>| end.is_some_and(|end| end.is_ascii_lowercase() || end.is_ascii_digit());
    part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
        && is_end(part.bytes().next())
        && is_end(part.bytes().last())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use Mode::{Disabled, Enforce, Shadow};

    use super::*;
    use crate::samples::{policy, rule, ruleset};

    #[test]
    fn a_rule_is_capped_by_the_weakest_that_names_it() {
        let two = json!([rule(json!({})), rule(json!({"name": "daily"}))]);
        let ruleset =
            ruleset(json!([policy("team/api", two.clone(), json!({})), policy("team/web", two, json!({}))]), json!([]));
        let capped = |entries: &[(&str, &str)]| -> Vec<Mode> {
            let glass = BreakGlass::new(entries.iter().copied()).unwrap();
            let caps = glass.caps(&ruleset);
            ruleset.rules().map(|(_, rule)| caps.as_ref().map_or(Enforce, |caps| caps.of(rule))).collect()
        };
        assert_eq!(vec![Disabled; 4], capped(&[("*", "Disabled"), ("team/api", "Shadow")]));
        assert_eq!(vec![Shadow, Shadow, Enforce, Enforce], capped(&[("team/api", "Shadow")]));
        let both = [("*", "Shadow"), ("team/web/daily", "Disabled")];
        assert_eq!(vec![Shadow, Shadow, Shadow, Disabled], capped(&both));
    }

    #[test]
    fn what_caps_no_rule_costs_nothing() {
        let ruleset = ruleset(json!([policy("team/api", json!([rule(json!({}))]), json!({}))]), json!([]));
        for entries in [&[][..], &[("team/other", "Disabled")], &[("team/api/other", "Shadow")]] {
            assert!(BreakGlass::new(entries.iter().copied()).unwrap().caps(&ruleset).is_none());
        }
    }

    #[test]
    fn a_map_with_a_wrong_word_is_refused_as_a_whole() {
        let cases = [
            ("team", "Shadow"),
            ("team/api/burst/x", "Shadow"),
            ("team/*", "Shadow"),
            ("team/", "Shadow"),
            ("Team/api", "Shadow"),
            ("", "Shadow"),
            ("*", "Enforce"),
            ("*", "disabled"),
            ("*", "Off"),
        ];
        for (name, word) in cases {
            let message = BreakGlass::new([("team/api", "Shadow"), (name, word)]).unwrap_err();
            assert!(message.contains("must be"), "{message}");
        }
        assert!(BreakGlass::new([("*", "Shadow"), ("*", "Disabled")]).unwrap_err().contains("twice"));
    }
}
