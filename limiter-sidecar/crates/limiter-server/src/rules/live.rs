// SPDX-License-Identifier: Apache-2.0
//! A ruleset in force, with what each of its rules has done. Immutable but for the counts.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use limiter_core::ruleset::{Document, RuleDoc};
use limiter_core::{BreakGlass, Caps, HashKey, Policy, Rule, Ruleset, RulesetError, Slot};

use super::book::Source;
use crate::evidence::RuleEvidence;

/// The rules in force.
pub(crate) struct Live {
    pub(crate) ruleset: Arc<Ruleset>,
    /// By the rules' ordinals in the ruleset.
    pub(crate) rules: Arc<[LiveRule]>,
    /// While the glass is broken for any of them.
    pub(crate) caps: Option<Caps>,
    pub(crate) source: Source,
    pub(crate) applied_at_ms: u64,
}

/// One rule in force: what `/status` says of it.
pub(crate) struct LiveRule {
    pub(crate) policy: String,
    pub(crate) name: String,
    pub(crate) slot: Option<Slot>,
    pub(crate) generation: u64,
    pub(crate) evidence: Arc<RuleEvidence>,
    /// What the evidence is about.
    about: About,
}

impl Live {
    /// Compiles a document. A rule of the same version as in `before` keeps its evidence.
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
            before.iter().flat_map(|live| &*live.rules).map(|rule| (rule.identity(), rule)).collect();
        let written: HashMap<_, _> = document
            .policies
            .iter()
            .flat_map(|policy| policy.rules.iter().map(|rule| ((&*policy.id, &*rule.name, rule.slot), rule)))
            .collect();
        let live = |(policy, rule): (&Policy, &Rule)| {
            let identity = (policy.id(), rule.name(), rule.slot());
            let about = written.get(&identity).map_or(About::Form(0), |doc| About::of(doc));
            let evidence = match before.get(&identity) {
                Some(old) if old.about == about => Arc::clone(&old.evidence),
                _ => Arc::new(RuleEvidence::new(now_ms, rule.plan_names())),
            };
            let (name, slot, generation) = (rule.name().to_owned(), rule.slot(), policy.generation());
            LiveRule { policy: policy.id().to_owned(), name, slot, generation, evidence, about }
        };
        let rules = ruleset.rules().map(live).collect();
        Ok(Self { ruleset: Arc::new(ruleset), rules, caps: None, source, applied_at_ms: now_ms })
    }

    /// The same rules while `glass` is broken.
    pub(super) fn under(&self, glass: &BreakGlass) -> Self {
        Self {
            ruleset: Arc::clone(&self.ruleset),
            rules: Arc::clone(&self.rules),
            caps: glass.caps(&self.ruleset),
            ..*self
        }
    }

    /// The rules that `other` does not have.
    pub(super) fn rules_not_in<'a>(&'a self, other: &Self) -> Vec<&'a LiveRule> {
        let present: HashSet<_> = other.rules.iter().map(LiveRule::identity).collect();
        self.rules.iter().filter(|rule| !present.contains(&rule.identity())).collect()
    }
}

impl LiveRule {
    pub(super) fn identity(&self) -> (&str, &str, Option<Slot>) {
        (&self.policy, &self.name, self.slot)
    }
}

/// What evidence is about: two rules with an equal one share their counts.
#[derive(Debug, PartialEq, Eq)]
enum About {
    /// A version, as the operator names it.
    Version(String),
    /// Everything that is written in a rule without a version.
    Form(u64),
}

impl About {
    fn of(rule: &RuleDoc) -> Self {
        rule.version.clone().map_or_else(|| Self::Form(fingerprint(rule)), Self::Version)
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
