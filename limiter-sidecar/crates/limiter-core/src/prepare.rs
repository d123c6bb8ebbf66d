// SPDX-License-Identifier: Apache-2.0
//! From a request to the checks that must be made.
//!
//! Owns which rules apply, to which subject, with which numbers, and which refusals need no store at all.

mod calls;
mod split;

use crate::breakglass::Caps;
use crate::compiled::{Missing, Policy, Rule, Ruleset, Stage};
use crate::limit::Limit;
use crate::matching::{NormalHost, NormalPath};
use crate::overrides::{Effect, Override, ValueDigest, digest_of};
use crate::request::Request;
use crate::ruleset::{Mode, Scope};
use crate::subject::{BucketKey, Identity, MissingSource, Source, Subject};

pub use calls::{LocalCall, StoreCall};

/// The longest wait that a `Block` override tells, in seconds; also the wait of a permanent one.
pub const MAX_BLOCK_WAIT_S: u64 = 3_600;

const US_PER_S: u64 = 1_000_000;

/// What was found out about a request before the store is asked.
#[derive(Debug)]
pub struct Prepared<'r> {
    matched: bool,
    rules: Vec<RuleUse<'r>>,
    keys: Vec<BucketKey>,
    now_us: u64,
}

/// One rule that matches the request, with what it does about it. Disabled rules do not appear.
#[derive(Clone, Copy, Debug)]
pub struct RuleUse<'r> {
    /// The rule's policy.
    pub policy: &'r Policy,
    /// The rule.
    pub rule: &'r Rule,
    /// What holds for this request: never [`Mode::Disabled`].
    pub mode: Mode,
    /// What it does.
    pub standing: Standing<'r>,
    /// The request's plan: a place in [`Rule::plan_names`].
    pub plan: usize,
    /// The request names a plan that the rule does not list; it gets the rule's own limit.
    pub unknown_plan: bool,
    /// The request lacks the rule's key, whatever the rule does about that. Not looked at where an exemption or an
    /// override decides.
    pub missing_key: bool,
    /// The id of the override that counts for the subject.
    pub applied_override: Option<&'r str>,
}

/// What a rule does about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'r> {
    /// It must be counted: by the store, or in this limiter's memory.
    Check(Check<'r>),
    /// An exemption of the policy or an `Exempt` override covers the request.
    Exempt,
    /// The request lacks the key and the rule skips such requests.
    SkippedMissingKey,
    /// The request lacks this source of the key and the rule denies such requests.
    DeniedMissingKey(&'r Source),
    /// A `Block` override refuses the subject for so many seconds.
    Blocked {
        /// Seconds until the override ends, at most [`MAX_BLOCK_WAIT_S`].
        wait_s: u64,
    },
}

/// One check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check<'r> {
    /// Place in [`Prepared::keys`].
    pub key: usize,
    /// The numbers, after plan and override.
    pub limit: &'r Limit,
    /// What the request costs, in tokens.
    pub cost: u64,
}

impl Ruleset {
    /// Finds the rules that apply to a request and what must be counted. `now_us`: µs since the epoch by the store's clock as
    /// far as it is known, for overrides and calendars.
    pub fn prepare(&self, request: &Request<'_>, now_us: u64) -> Prepared<'_> {
        self.prepare_under(None, request, now_us)
    }

    /// The same while the glass is broken: no rule is stronger than its cap.
    pub fn prepare_under(&self, caps: Option<&Caps>, request: &Request<'_>, now_us: u64) -> Prepared<'_> {
        let path = NormalPath::new(request.path);
        let policies = self.index().matches(request.method, &NormalHost::new(request.host), &path);
        let mut prepared = Prepared { matched: !policies.is_empty(), rules: Vec::new(), keys: Vec::new(), now_us };
        if policies.is_empty() {
            return prepared;
        }
        let identity = Identity::of(*request);
        let mut preparation = Preparation {
            ruleset: self,
            request,
            path: &path,
            identity,
            now_s: now_us / US_PER_S,
            subjects: Vec::new(),
            digests: Vec::new(),
        };
        for policy in policies.into_iter().filter_map(|place| self.policies().get(place)) {
            preparation.enter(policy);
            let exempt = policy.exempts(&preparation.identity);
            for rule in policy.rules() {
                let mode = preparation.mode(policy, rule, caps);
                if mode == Mode::Disabled {
                    continue;
                }
                prepared.rules.push(if exempt {
                    RuleUse {
                        policy,
                        rule,
                        mode,
                        standing: Standing::Exempt,
                        plan: 0,
                        unknown_plan: false,
                        missing_key: false,
                        applied_override: None,
                    }
                } else {
                    preparation.rule(policy, (rule, mode), &mut prepared.keys)
                });
            }
        }
        prepared
    }
}

/// One request on its way through the rules.
struct Preparation<'r, 'q> {
    ruleset: &'r Ruleset,
    request: &'q Request<'q>,
    path: &'q NormalPath,
    identity: Identity<'q>,
    now_s: u64,
    /// The first rule of each [`Rule::key_group`]: the hash of a subject is made once for all rules with one key.
    subjects: Vec<(&'r Rule, Result<Subject, MissingSource>)>,
    /// What overrides are looked up by, made when the first override asks for it.
    digests: Vec<(&'r Source, Option<ValueDigest>)>,
}

impl<'r: 'q, 'q> Preparation<'r, 'q> {
    /// Turns to the next policy: what was taken from the path by the routes of the one before is forgotten.
    fn enter(&mut self, policy: &'r Policy) {
        let captures = policy.captures(self.request.method, self.path);
        self.identity = self.identity.with_captures(captures);
        self.subjects.retain(|(rule, _)| !rule.key.needs_captures());
        self.digests.retain(|(source, _)| !source.needs_captures());
    }

    /// What holds for this request and now.
    fn mode(&mut self, policy: &'r Policy, rule: &'r Rule, caps: Option<&Caps>) -> Mode {
        let cap = caps.map_or(Mode::Enforce, |caps| caps.of(rule));
        let Some(shift) = &rule.shift else { return rule.mode.min(cap) };
        let cap = cap.min(shift.cap_at(self.now_s));
        match &shift.stage {
            Some(stage) if cap != Mode::Disabled && self.is_staged(policy, rule, stage) => stage.mode.min(cap),
            _ => rule.mode.min(cap),
        }
    }

    /// Whether the request is one of the stage's. Where another entry of the rule's name judges for both, the request counts
    /// as what it is by that entry's plans and key.
    fn is_staged(&mut self, policy: &'r Policy, rule: &'r Rule, stage: &'r Stage) -> bool {
        let judge = stage.judge.and_then(|place| policy.rules().get(place)).unwrap_or(rule);
        let by_plan = !stage.plans.is_empty()
            && judge.plans.as_ref().is_some_and(|plans| {
                self.identity.value(&plans.from).is_some_and(|plan| stage.has_plan(plan.as_bytes()))
            });
        by_plan
            || stage.takes_all()
            || (stage.percent > 0 && self.subject_or_shared(judge).is_some_and(|subject| stage.takes(subject)))
    }

    /// Who the rule counts the request for, if anybody.
    fn subject_or_shared(&mut self, rule: &'r Rule) -> Option<Subject> {
        match (rule.everyone, rule.missing) {
            (Some(everyone), _) => Some(everyone.subject()),
            (None, Missing::Share(shared)) => Some(self.subject(rule).unwrap_or_else(|_| shared.subject())),
            (None, _) => self.subject(rule).ok(),
        }
    }

    fn rule(&mut self, policy: &'r Policy, (rule, mode): (&'r Rule, Mode), keys: &mut Vec<BucketKey>) -> RuleUse<'r> {
        let plan = rule.plan(&self.identity);
        let found = self.applied_override(rule);
        let standing = match found.map(|entry| &entry.effect) {
            Some(Effect::Exempt) => Standing::Exempt,
            Some(Effect::Block) => {
                let end = found.and_then(|entry| entry.not_after);
                let left = end.map_or(MAX_BLOCK_WAIT_S, |end| end.saturating_sub(self.now_s));
                Standing::Blocked { wait_s: left.clamp(1, MAX_BLOCK_WAIT_S) }
            }
            Some(Effect::Set(limits)) => self.check(policy, rule, limits, plan.limit, keys),
            None => self.check(policy, rule, &rule.limits, plan.limit, keys),
        };
        let missing_key = match standing {
            Standing::Check(_) => rule.everyone.is_none() && self.subject(rule).is_err(),
            Standing::SkippedMissingKey | Standing::DeniedMissingKey(_) => true,
            Standing::Exempt | Standing::Blocked { .. } => false,
        };
        let applied_override = found.map(|entry| &*entry.id);
        RuleUse {
            policy,
            rule,
            mode,
            standing,
            plan: plan.limit,
            unknown_plan: plan.unknown,
            missing_key,
            applied_override,
        }
    }

    /// `limits`: those of the subject; `plan`: which of them.
    fn check(
        &mut self,
        policy: &'r Policy,
        rule: &'r Rule,
        limits: &'r [Limit],
        plan: usize,
        keys: &mut Vec<BucketKey>,
    ) -> Standing<'r> {
        let (key, limits) = match rule.everyone {
            Some(everyone) => (everyone, limits),
            None => match (self.subject(rule), rule.missing) {
                (Ok(subject), _) => (BucketKey::new(subject, policy.tag()), limits),
                // An override of one subject must not change the counter that others share.
                (Err(_), Missing::Share(shared)) => (shared, &*rule.limits),
                (Err(_), Missing::Skip) => return Standing::SkippedMissingKey,
                (Err(MissingSource(place)), Missing::Deny) => {
                    return rule
                        .key
                        .sources()
                        .get(place)
                        .map_or(Standing::SkippedMissingKey, Standing::DeniedMissingKey);
                }
            },
        };
        // There is a limit for each plan, so the default is never taken.
        let Some(limit) = limits.get(plan) else { return Standing::SkippedMissingKey };
        let key = if limit.needs_own_key() { key.of_rule(rule.id) } else { key };
        let place = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        });
        Standing::Check(Check { key: place, limit, cost: rule.cost(self.request.method, self.path) })
    }

    fn subject(&mut self, rule: &'r Rule) -> Result<Subject, MissingSource> {
        if let Some((_, known)) = self.subjects.iter().find(|(first, _)| first.key_group == rule.key_group) {
            return *known;
        }
        let subject = self.ruleset.hash_key().subject(&rule.key, &self.identity);
        self.subjects.push((rule, subject));
        subject
    }

    fn applied_override(&mut self, rule: &'r Rule) -> Option<&'r Override> {
        let Self { identity, digests, .. } = self;
        rule.overrides.find(self.now_s, |place| {
            let source = rule.key.sources().get(place)?;
            if let Some((_, known)) = digests.iter().find(|(known, _)| *known == source) {
                return *known;
            }
            let digest = identity.value(source).map(|value| digest_of(&value));
            digests.push((source, digest));
            digest
        })
    }
}

impl<'r> Prepared<'r> {
    /// Whether any policy matches the request.
    pub fn matched(&self) -> bool {
        self.matched
    }

    /// Every rule that matches, in the order of policy id and of the user.
    pub fn rules(&self) -> &[RuleUse<'r>] {
        &self.rules
    }

    /// The keys that the checks use.
    pub fn keys(&self) -> &[BucketKey] {
        &self.keys
    }

    /// The checks of both scopes, in the order of the rules.
    pub fn checks(&self) -> impl Iterator<Item = (&RuleUse<'r>, Check<'r>)> {
        self.rules.iter().filter_map(|rule| match rule.standing {
            Standing::Check(check) => Some((rule, check)),
            _ => None,
        })
    }

    /// Whom a rule counts the request for, where it is counted.
    pub fn subject(&self, rule: &RuleUse<'_>) -> Option<Subject> {
        match rule.standing {
            Standing::Check(check) => self.keys.get(check.key).map(BucketKey::subject),
            _ => None,
        }
    }

    /// How many checks there are.
    pub fn check_count(&self) -> usize {
        self.checks().count()
    }

    /// Whether the store must be asked: it has something to check, and no enforcing rule has refused already.
    pub fn needs_store(&self) -> bool {
        self.needs(Scope::Region)
    }

    /// Whether this limiter's own memory must be asked.
    pub fn needs_memory(&self) -> bool {
        self.needs(Scope::Instance)
    }

    /// The time that calendars and overrides were looked up for, in µs since the epoch.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Turns the calendars to another time, when the store's clock shows another window than was thought.
    pub fn set_clock(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    fn needs(&self, scope: Scope) -> bool {
        self.checks().any(|(rule, _)| rule.rule.scope() == scope) && !self.rules.iter().any(RuleUse::refuses_alone)
    }
}

impl RuleUse<'_> {
    /// Whether the rule can refuse this request.
    pub fn enforces(&self) -> bool {
        self.mode == Mode::Enforce
    }

    /// Whether this rule refuses the request whatever the store says.
    pub fn refuses_alone(&self) -> bool {
        self.enforces() && matches!(self.standing, Standing::Blocked { .. } | Standing::DeniedMissingKey(_))
    }
}

#[cfg(test)]
mod tests;
