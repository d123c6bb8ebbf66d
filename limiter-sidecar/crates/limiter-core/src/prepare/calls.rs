// SPDX-License-Identifier: Apache-2.0
//! What the store is asked to decide: the script's KEYS and its plan as bytes that the server only ships. And the same for
//! the rules that are counted in memory.

use std::ops::Range;

use super::{Check, Prepared, RuleUse};
use crate::counters::refund::owed_before;
use crate::counters::{Charge, whole};
use crate::limit::{Demand, Kind};
use crate::reply::Reply;
use crate::ruleset::Scope;
use crate::subject::{BucketKey, RuleId};
use crate::verdict::Part;

/// Bytes of one rule in the plan: kind, key, flags, id and four doubles.
const RULE: usize = 43;

/// A calendar's edges follow: four doubles more.
const EDGES: usize = 32;

/// Where a rule's second number is, which is another one in a refund.
const SECOND: Range<usize> = 19..27;

/// The plan counts its keys in one byte.
const MAX_KEYS: usize = 255;

/// Flag of a rule that can refuse.
const ENFORCING: u8 = 1;

/// One call of the decision script. Owns its bytes, because giving a charge back may outlive the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreCall {
    /// The script's KEYS.
    pub keys: Vec<BucketKey>,
    /// The script's ARGV: one entry for each check.
    pub plan: Vec<u8>,
    /// Which checks they are: places in [`Prepared::checks`].
    pub checks: Vec<usize>,
}

/// The checks that are counted in this limiter's own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalCall {
    /// What [`crate::local::LocalCounters`] takes.
    pub charges: Vec<Charge<BucketKey>>,
    /// Which checks they are: places in [`Prepared::checks`].
    pub checks: Vec<usize>,
}

impl Prepared<'_> {
    /// The calls that the store must answer, with calendar edges around [`Prepared::now_us`]: one, or with `slot_of` one for
    /// each slot, in the order in which the slots appear. Only a request that meets more than 255 keys needs more.
    pub fn store_calls(&self, slot_of: Option<&dyn Fn(&BucketKey) -> u16>) -> Vec<StoreCall> {
        let mut calls: Vec<(u16, StoreCall)> = Vec::with_capacity(1);
        for (place, (rule, check)) in self.checks().enumerate() {
            let Some(key) = self.keys.get(check.key).filter(|_| rule.rule.scope() == Scope::Region) else { continue };
            let slot = slot_of.map_or(0, |slot_of| slot_of(key));
            let fits =
                |(of, call): &(u16, StoreCall)| *of == slot && (call.keys.len() < MAX_KEYS || call.keys.contains(key));
            let known = calls.iter().position(fits).unwrap_or_else(|| {
                calls.push((slot, StoreCall::empty()));
                calls.len() - 1
            });
            if let Some((_, call)) = calls.get_mut(known) {
                let demand = check.limit.demand(check.cost, self.now_us);
                call.push(place, *key, rule.rule.id, rule.enforces(), &demand);
            }
        }
        calls.into_iter().map(|(_, call)| call).collect()
    }

    /// The checks for this limiter's own memory.
    pub fn local_call(&self) -> LocalCall {
        let local = self.checks().zip(self.charges()).enumerate();
        let local = local.filter(|(_, ((rule, _), _))| rule.rule.scope() == Scope::Instance);
        let (checks, charges) = local.map(|(place, (_, charge))| (place, charge)).unzip();
        LocalCall { charges, checks }
    }

    /// The checks that this limiter decides by itself because the store did not: those without an answer in `parts` of rules
    /// with a local share.
    pub fn fallback_call(&self, parts: &[Part]) -> LocalCall {
        let is_answered = |place: usize| parts.iter().any(|part| part.checks.contains(&place));
        let charge = |(place, (rule, check)): (usize, (&RuleUse<'_>, Check<'_>))| {
            let share = check.limit.local().filter(|_| rule.rule.scope() == Scope::Region && !is_answered(place))?;
            let demand = share.demand(check.cost, self.now_us);
            let key = *self.keys.get(check.key)?;
            Some((place, Charge { key, id: rule.rule.id, enforcing: rule.enforces(), demand }))
        };
        let (checks, charges) = self.checks().enumerate().filter_map(charge).unzip();
        LocalCall { charges, checks }
    }

    /// All checks of both scopes, as charges.
    pub(crate) fn charges(&self) -> Vec<Charge<BucketKey>> {
        let charge = |(rule, check): (&RuleUse<'_>, Check<'_>)| {
            let demand = check.limit.demand(check.cost, self.now_us);
            Some(Charge { key: *self.keys.get(check.key)?, id: rule.rule.id, enforcing: rule.enforces(), demand })
        };
        self.checks().filter_map(charge).collect()
    }
}

impl StoreCall {
    fn empty() -> Self {
        Self { keys: Vec::with_capacity(2), plan: Vec::with_capacity(4 * RULE), checks: Vec::with_capacity(4) }
    }

    fn push(&mut self, place: usize, key: BucketKey, id: RuleId, enforcing: bool, demand: &Demand) {
        let position = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        });
        // There are never more.
        let number = u8::try_from(position + 1).unwrap_or(u8::MAX);
        self.plan.extend_from_slice(&[demand.kind as u8, number, if enforcing { ENFORCING } else { 0 }]);
        self.plan.extend_from_slice(&id);
        let edges = if demand.kind == Kind::CalendarWindow { demand.edges.as_slice() } else { &[] };
        for number in demand.numbers.iter().chain(edges) {
            self.plan.extend_from_slice(&double(*number));
        }
        self.checks.push(place);
    }

    /// The call that gives back what this one has charged: the script `refund`, with the reply's time, and with what each
    /// bucket owed before. Nothing when nothing was charged.
    pub fn charged(&self, reply: &Reply) -> Option<Self> {
        let mut charged =
            Self { keys: self.keys.clone(), plan: Vec::with_capacity(self.plan.len()), checks: Vec::new() };
        for ((place, rule), check) in self.rules().zip(&reply.checks) {
            if reply.allowed && check.ok && takes(rule) {
                charged.plan.extend(rule);
                charged.set_owed_before(check.reset_us, rule.len());
                charged.checks.push(place);
            }
        }
        (!charged.checks.is_empty()).then_some(charged)
    }

    /// Which check each rule of the plan is, and its bytes.
    pub(super) fn rules(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut rest = self.plan.as_slice();
        self.checks.iter().map_while(move |place| {
            let length = if rest.first() == Some(&(Kind::CalendarWindow as u8)) { RULE + EDGES } else { RULE };
            let (rule, following) = rest.split_at_checked(length)?;
            rest = following;
            Some((*place, rule))
        })
    }

    /// Makes the plan's last rule, of that length, one of a refund.
    fn set_owed_before(&mut self, reset_us: u64, length: usize) {
        let from = self.plan.len().saturating_sub(length);
        let Some(rule) = self.plan.get_mut(from..) else { return };
        if let Some([taken, _, _, drain_per_us]) = bucket(rule)
            && let Some(second) = rule.get_mut(SECOND)
        {
            second.copy_from_slice(&double(owed_before(taken, drain_per_us, reset_us)));
        }
    }

    /// The call with what the store said to it.
    pub fn answered(&self, reply: &Reply) -> Part {
        Part { checks: self.checks.clone(), reply: reply.clone() }
    }
}

impl LocalCall {
    /// The charges that this call has made, for giving them back.
    pub fn charged(&self, reply: &Reply) -> Vec<Charge<BucketKey>> {
        let judged = self.charges.iter().zip(&reply.checks);
        let charged = judged.filter(|(_, check)| reply.allowed && check.ok);
        charged.map(|(charge, check)| Charge { demand: charge.demand.given_back(check), ..*charge }).collect()
    }

    /// The call with what memory said to it.
    pub fn answered(&self, reply: &Reply) -> Part {
        Part { checks: self.checks.clone(), reply: reply.clone() }
    }
}

/// Whether a rule of the plan has a cost: its first number, after kind, key, flags and id.
fn takes(rule: &[u8]) -> bool {
    rule.get(11..19).is_some_and(|cost| cost.iter().any(|byte| *byte != 0))
}

/// The numbers of a rule of the plan that is a bucket.
fn bucket(rule: &[u8]) -> Option<[u64; 4]> {
    let kind = *rule.first()?;
    if kind != Kind::TokenBucket as u8 && kind != Kind::LeakyBucket as u8 {
        return None;
    }
    let (numbers, []) = rule.get(11..RULE)?.as_chunks::<8>() else { return None };
    let numbers: [[u8; 8]; 4] = numbers.try_into().ok()?;
    Some(numbers.map(|number| whole(f64::from_be_bytes(number))))
}

/// Integers of a plan are below 2^53; what saturates above is above every limit.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53, see above")]
fn double(number: u64) -> [u8; 8] {
    (number as f64).to_be_bytes()
}
