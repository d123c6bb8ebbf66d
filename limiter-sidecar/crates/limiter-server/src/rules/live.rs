// SPDX-License-Identifier: Apache-2.0
//! A ruleset in force, with what each of its rules has done. Immutable but for the counts.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use limiter_core::ruleset::{Document, Mode};
use limiter_core::{HashKey, Policy, Rule, Ruleset, RulesetError};

use super::book::Source;
use crate::evidence::RuleEvidence;

/// The rules in force.
pub(crate) struct Live {
    pub(crate) ruleset: Ruleset,
    /// By the rules' ordinals in the ruleset.
    pub(crate) rules: Vec<LiveRule>,
    pub(crate) source: Source,
    pub(crate) applied_at_ms: u64,
}

/// One rule in force: what `/status` says of it.
pub(crate) struct LiveRule {
    pub(crate) policy: String,
    pub(crate) name: String,
    pub(crate) generation: u64,
    pub(crate) mode: Mode,
    pub(crate) evidence: Arc<RuleEvidence>,
    /// Changes with every member of the rule.
    fingerprint: u64,
}

impl Live {
    /// Compiles a document. A rule that is written as in `before` keeps its evidence.
    ///
    /// # Errors
    /// [`RulesetError`] with the path of what is wrong.
    pub(super) fn compile(
        document: &Document,
        hash_key: &HashKey,
        before: Option<&Self>,
        (source, now_ms): (Source, u64),
    ) -> Result<Self, RulesetError> {
        let ruleset = Ruleset::compile(document, hash_key)?;
        let before: HashMap<_, _> =
            before.iter().flat_map(|live| &live.rules).map(|rule| (rule.identity(), rule)).collect();
        let written: HashMap<_, _> = document
            .policies
            .iter()
            .flat_map(|policy| policy.rules.iter().map(|rule| ((policy.id.as_str(), rule.name.as_str()), rule)))
            .collect();
        let live = |(policy, rule): (&Policy, &Rule)| {
            let identity = (policy.id(), rule.name());
            let fingerprint = written.get(&identity).map_or(0, fingerprint);
            let evidence = match before.get(&identity) {
                Some(old) if old.fingerprint == fingerprint => Arc::clone(&old.evidence),
                _ => Arc::new(RuleEvidence::new(now_ms)),
            };
            let (name, generation, mode) = (rule.name().to_owned(), policy.generation(), rule.mode());
            LiveRule { policy: policy.id().to_owned(), name, generation, mode, evidence, fingerprint }
        };
        let rules = ruleset.rules().map(live).collect();
        Ok(Self { ruleset, rules, source, applied_at_ms: now_ms })
    }

    /// The rules that `other` does not have.
    pub(super) fn rules_not_in<'a>(&'a self, other: &Self) -> Vec<&'a LiveRule> {
        let present: HashSet<_> = other.rules.iter().map(LiveRule::identity).collect();
        self.rules.iter().filter(|rule| !present.contains(&rule.identity())).collect()
    }
}

impl LiveRule {
    fn identity(&self) -> (&str, &str) {
        (&self.policy, &self.name)
    }
}

/// A hash over everything that is written in a rule.
fn fingerprint(rule: &impl fmt::Debug) -> u64 {
    struct Sink(DefaultHasher);
    impl fmt::Write for Sink {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut sink = Sink(DefaultHasher::new());
    // The sink never fails.
    let _written = write!(sink, "{rule:?}");
    sink.0.finish()
}
