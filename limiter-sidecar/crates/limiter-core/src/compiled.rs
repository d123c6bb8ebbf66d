// SPDX-License-Identifier: Apache-2.0
//! The ruleset in the form that decides: immutable, checked, indexed. Made once per document, shared by all requests.
//!
//! Owns what a policy and a rule are at run time. How they are made from the document is `compiled::build`'s matter.

mod build;
mod key_build;
mod lasting;
mod mode_build;
mod names;
mod override_build;
mod rule_build;
mod shift;

use std::collections::HashMap;

use ipnet::IpNet;
use sha2::{Digest, Sha256};

use crate::claims::PayloadPlace;
use crate::limit::{Limit, Share};
use crate::matching::{Captures, Index, NormalPath, Route};
use crate::overrides::{Overrides, ValueDigest};
use crate::ruleset::{Dialect, Document, Mode, OnStoreFailure, RulesetError, Scope, Slot, Visibility};
use crate::subject::{BucketKey, HashKey, Identity, KeySpec, PolicyTag, RuleId, Source};

pub use lasting::Lasting;
pub(crate) use names::ItemName;
pub(crate) use shift::{Shift, Stage};

/// A whole ruleset. Put it behind an `Arc`; nothing in it changes.
#[derive(Debug)]
pub struct Ruleset {
    gateway: Box<str>,
    revision: u64,
    digest: Box<str>,
    payload_place: Option<PayloadPlace>,
    overrides: usize,
    rules: usize,
    policies: Vec<Policy>,
    index: Index,
    hash_key: HashKey,
}

/// One policy.
#[derive(Debug)]
pub struct Policy {
    id: Box<str>,
    generation: u64,
    tag: PolicyTag,
    exemptions: Box<[Exemption]>,
    /// Where a key takes segments of the path, else empty: the policy's routes in the user's order.
    captures: Box<[Route]>,
    rules: Box<[Rule]>,
    dialect: Dialect,
    documentation: Option<Box<str>>,
}

/// Requests that none of a policy's rules counts.
#[derive(Debug)]
pub(crate) enum Exemption {
    Networks(Box<[IpNet]>),
    Header { name: Box<str>, digests: Box<[ValueDigest]> },
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    pub(crate) name: Box<str>,
    pub(crate) ordinal: usize,
    pub(crate) mode: Mode,
    /// How that differs by request and by time; most rules have nothing of it.
    pub(crate) shift: Option<Box<Shift>>,
    pub(crate) slot: Option<Slot>,
    pub(crate) version: Option<Box<str>>,
    pub(crate) id: RuleId,
    pub(crate) key: KeySpec,
    /// Equal for rules with equal keys, so that a request's subject is hashed once for all of them.
    pub(crate) key_group: usize,
    /// The one bucket of a rule without a key.
    pub(crate) everyone: Option<BucketKey>,
    pub(crate) missing: Missing,
    /// The limit of requests without a listed plan, then one for each plan. Never empty.
    pub(crate) limits: Box<[Limit]>,
    pub(crate) plans: Option<Plans>,
    pub(crate) costs: Box<[(Route, u64)]>,
    pub(crate) overrides: Overrides,
    pub(crate) scope: Scope,
    pub(crate) on_store_failure: OnStoreFailure,
    /// What each limiter grants of every limit by itself while the store is away; there with `Local`.
    pub(crate) share: Option<Share>,
    pub(crate) visibility: Visibility,
    pub(crate) code: Box<str>,
    pub(crate) items: names::ItemNames,
    pub(crate) lasting: Lasting,
}

/// What a rule does with a request that lacks its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Missing {
    Skip,
    Share(BucketKey),
    Deny,
}

/// Where a plan is read from, and which of the rule's limits it means.
#[derive(Debug)]
pub(crate) struct Plans {
    pub(crate) from: Source,
    pub(crate) limits: HashMap<Box<[u8]>, usize>,
}

/// The limit that a request's plan gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlanChoice {
    /// Place in [`Rule::limits`].
    pub(crate) limit: usize,
    /// The request names a plan that the rule does not list.
    pub(crate) unknown: bool,
}

impl Ruleset {
    /// Reads, checks and compiles a document.
    ///
    /// # Errors
    /// [`RulesetError`] with the path of what is wrong; the caller keeps the ruleset that it has.
    pub fn parse(json: &[u8], hash_key: &HashKey) -> Result<Self, RulesetError> {
        Self::compile(&Document::parse(json)?, hash_key)
    }

    /// Checks and compiles a document that was read already.
    ///
    /// # Errors
    /// As [`Ruleset::parse`].
    pub fn compile(document: &Document, hash_key: &HashKey) -> Result<Self, RulesetError> {
        build::ruleset(document, hash_key)
    }

    /// The gateway it was written for.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// Rises with every write; a limiter never replaces a higher one by a lower one.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// `sha256:` and hex, over everything but the revision.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Where its claims are read from, if it says so.
    pub fn payload_place(&self) -> Option<&PayloadPlace> {
        self.payload_place.as_ref()
    }

    /// How many overrides the document holds.
    pub fn override_count(&self) -> usize {
        self.overrides
    }

    /// How many rules there are, disabled ones included; ordinals run below it.
    pub fn rule_count(&self) -> usize {
        self.rules
    }

    /// All policies, sorted by id.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// All rules with their policies, in the order of their ordinals.
    pub fn rules(&self) -> impl Iterator<Item = (&Policy, &Rule)> {
        self.policies.iter().flat_map(|policy| policy.rules.iter().map(move |rule| (policy, rule)))
    }

    pub(crate) fn hash_key(&self) -> &HashKey {
        &self.hash_key
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }
}

impl Policy {
    /// `namespace/name`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The generation of the user's object.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// In the user's order, disabled ones included.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The header fields that clients get.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Where clients read more.
    pub fn documentation(&self) -> Option<&str> {
        self.documentation.as_deref()
    }

    pub(crate) fn tag(&self) -> PolicyTag {
        self.tag
    }

    /// What the policy's rules may take from a path: by the first of its routes, in the user's order, that covers the
    /// request.
    pub(crate) fn captures<'a>(&'a self, method: &str, path: &'a NormalPath) -> Captures<'a> {
        self.captures.iter().find_map(|route| route.captures(method, path)).unwrap_or(Captures::NONE)
    }

    pub(crate) fn exempts(&self, identity: &Identity<'_>) -> bool {
        self.exemptions.iter().any(|exemption| exemption.covers(identity))
    }
}

impl Exemption {
    fn covers(&self, identity: &Identity<'_>) -> bool {
        match self {
            Self::Networks(networks) => {
                identity.client().is_some_and(|client| networks.iter().any(|network| network.contains(&client)))
            }
            Self::Header { name, digests } => identity.header(name).is_some_and(|value| {
                let digest: ValueDigest = Sha256::digest(value).into();
                digests.contains(&digest)
            }),
        }
    }
}

impl Rule {
    /// Its identity inside the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which of two entries of its name it is.
    pub fn slot(&self) -> Option<Slot> {
        self.slot
    }

    /// What its evidence is about; documents of the first format have none.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Its place among all rules of the ruleset, from 0: an index for counters.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// What holds for requests outside its stage, before switches.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What holds for requests outside its stage at `now_s`, after switches.
    pub fn mode_at(&self, now_s: u64) -> Mode {
        self.shift.as_ref().map_or(self.mode, |shift| self.mode.min(shift.cap_at(now_s)))
    }

    /// What tells its subjects apart.
    pub fn key(&self) -> &KeySpec {
        &self.key
    }

    /// Whether it holds anything for some request at some time that is not [`Mode::Disabled`].
    pub(crate) fn may_act(&self) -> bool {
        self.strongest() != Mode::Disabled
    }

    /// Whether it can refuse some request at some time.
    pub(crate) fn may_enforce(&self) -> bool {
        self.strongest() == Mode::Enforce
    }

    fn strongest(&self) -> Mode {
        let staged = self.shift.as_ref().and_then(|shift| shift.stage.as_ref()).map(|stage| stage.mode);
        staged.map_or(self.mode, |staged| staged.max(self.mode))
    }

    /// Where it is counted.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// What it does while the store does not answer.
    pub fn on_store_failure(&self) -> OnStoreFailure {
        self.on_store_failure
    }

    /// How far its refusals can be relied on until their wait is over.
    pub fn lasting(&self) -> Lasting {
        self.lasting
    }

    /// Whether clients are told about it.
    pub fn is_public(&self) -> bool {
        self.visibility == Visibility::Public
    }

    /// The `code` of its refusals.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The rule's plans, in the order of its limits; the first is that of requests without a listed plan and has no name.
    pub fn plan_names(&self) -> Vec<String> {
        let Some(plans) = &self.plans else { return vec![String::new()] };
        let mut names = vec![String::new(); self.limits.len()];
        for (name, limit) in &plans.limits {
            if let Some(place) = names.get_mut(*limit) {
                *place = String::from_utf8_lossy(name).into_owned();
            }
        }
        names
    }

    /// What a request costs: the first entry of the cost table that covers it, else 1. Of several readings of its path
    /// the dearest counts.
    pub fn cost(&self, method: &str, path: &NormalPath) -> u64 {
        let cost_of =
            |reading| self.costs.iter().find(|(route, _)| route.covers(method, reading)).map_or(1, |(_, cost)| *cost);
        path.readings().map(cost_of).max().unwrap_or(1)
    }

    pub(crate) fn plan(&self, identity: &Identity<'_>) -> PlanChoice {
        let named = self.plans.as_ref().and_then(|plans| Some((plans, identity.value(&plans.from)?)));
        match named {
            None => PlanChoice { limit: 0, unknown: false },
            Some((plans, name)) => match plans.limits.get(name.as_bytes()) {
                Some(limit) => PlanChoice { limit: *limit, unknown: false },
                None => PlanChoice { limit: 0, unknown: true },
            },
        }
    }
}

#[cfg(test)]
mod tests;
