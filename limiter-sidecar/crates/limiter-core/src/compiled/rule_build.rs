// SPDX-License-Identifier: Apache-2.0
//! From a rule of the document to a rule that decides.

use super::build::{Builder, route};
use super::{Lasting, Missing, Plans, Rule, Shift, key_build, names::ItemNames};
use crate::limit::{Limit, MAX_SHARE_MILLI, Share};
use crate::overrides::Overrides;
use crate::ruleset::{LimitDoc, OnMissingKey, OnStoreFailure, PlansDoc, RuleDoc, RulesetError};
use crate::subject::{BucketKey, PolicyTag, rule_id};

const MAX_NAME: usize = 63;
const MAX_CODE: usize = 64;

/// Checks and compiles one rule of the policy with this id.
pub(super) fn rule(builder: &mut Builder<'_>, policy: &str, doc: &RuleDoc, path: &str) -> Result<Rule, RulesetError> {
    let key = key_build::key(&doc.key, &format!("{path}.key"))?;
    let share = share(builder.limiters, doc, path)?;
    let (limits, plans) = limits(doc, share, path)?;
    let tag = PolicyTag::of(policy);
    let groups = builder.key_groups.len();
    let key_group = *builder.key_groups.entry(key.clone()).or_insert(groups);
    let everyone = key.sources().is_empty().then(|| BucketKey::new(builder.hash_key.everyone(policy), tag));
    let ordinal = builder.next_ordinal;
    builder.next_ordinal += 1;
    if !is_code(&doc.code) {
        return Err(RulesetError::invalid(
            format!("{path}.code"),
            format!("must match ^[a-z][a-z0-9_]*$ and have at most {MAX_CODE} characters"),
        ));
    }
    Ok(Rule {
        name: doc.name.as_str().into(),
        ordinal,
        mode: doc.mode,
        shift: Shift::of(policy, &doc.name, doc.stage.as_ref(), &doc.switches),
        slot: doc.slot,
        version: doc.version.as_deref().map(Into::into),
        id: rule_id(policy, (&doc.name, doc.slot), doc.limit.algorithm(), &key),
        key_group,
        everyone,
        missing: match doc.on_missing_key {
            OnMissingKey::Skip => Missing::Skip,
            OnMissingKey::Share => Missing::Share(BucketKey::new(builder.hash_key.shared(policy, &key), tag)),
            OnMissingKey::Deny => Missing::Deny,
        },
        key,
        costs: costs(doc, &limits, path)?,
        limits: limits.into(),
        plans,
        overrides: Overrides::default(),
        scope: doc.scope,
        on_store_failure: doc.on_store_failure,
        share,
        visibility: doc.visibility,
        code: doc.code.as_str().into(),
        items: item_names(policy, &doc.name, path)?,
        // Noted when all policies are known.
        lasting: Lasting::No,
    })
}

fn item_names(policy: &str, rule: &str, path: &str) -> Result<ItemNames, RulesetError> {
    let wrong = || {
        RulesetError::invalid(
            format!("{path}.name"),
            format!("must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ and have at most {MAX_NAME} characters"),
        )
    };
    let is_name = rule.len() <= MAX_NAME
        && rule.starts_with(|first: char| first.is_ascii_lowercase())
        && !rule.ends_with('-')
        && rule.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if !is_name {
        return Err(wrong());
    }
    ItemNames::new(policy, rule).ok_or_else(wrong)
}

fn is_code(code: &str) -> bool {
    code.len() <= MAX_CODE
        && code.starts_with(|first: char| first.is_ascii_lowercase())
        && code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// What each limiter grants by itself while the store is away.
fn share(limiters: Option<u64>, doc: &RuleDoc, path: &str) -> Result<Option<Share>, RulesetError> {
    match (doc.on_store_failure, doc.local_factor_milli) {
        (OnStoreFailure::Open | OnStoreFailure::Closed, None) => Ok(None),
        (OnStoreFailure::Local, None) => limiters.and_then(Share::split).map(Some).ok_or_else(|| {
            RulesetError::invalid("limiters", format!("must be there, because {path} splits its limit between them"))
        }),
        (OnStoreFailure::Local, Some(milli)) => Share::of_milli(milli).map(Some).ok_or_else(|| {
            let message = format!("must be from 1 to {MAX_SHARE_MILLI}, not {milli}");
            RulesetError::invalid(format!("{path}.localFactorMilli"), message)
        }),
        (OnStoreFailure::Open | OnStoreFailure::Closed, Some(_)) => {
            Err(RulesetError::invalid(format!("{path}.localFactorMilli"), "goes with onStoreFailure Local only"))
        }
    }
}

fn limits(doc: &RuleDoc, share: Option<Share>, path: &str) -> Result<(Vec<Limit>, Option<Plans>), RulesetError> {
    let dearest = doc.cost.iter().map(|entry| entry.cost).max().unwrap_or(1);
    let mut limits = vec![limit(&doc.limit, &format!("{path}.limit"))?.with_share(share, dearest)];
    let Some(PlansDoc { from, limits: by_plan }) = &doc.plans else {
        return Ok((limits, None));
    };
    let from = key_build::plan_source(from, &format!("{path}.plans.from"))?;
    let mut places = std::collections::HashMap::with_capacity(by_plan.len());
    for (plan, by_plan) in by_plan {
        if plan.is_empty() {
            return Err(RulesetError::invalid(format!("{path}.plans.limits"), "a plan's name must not be empty"));
        }
        let path = format!("{path}.plans.limits.{plan}");
        if by_plan.algorithm() != doc.limit.algorithm() {
            let algorithm = doc.limit.algorithm().as_str();
            let message =
                format!("must be {algorithm}, as the rule's own limit: a subject has one counter in all plans");
            return Err(RulesetError::invalid(format!("{path}.algorithm"), message));
        }
        places.insert(plan.as_bytes().into(), limits.len());
        limits.push(limit(by_plan, &path)?.with_share(share, dearest));
    }
    Ok((limits, Some(Plans { from, limits: places })))
}

fn limit(doc: &LimitDoc, path: &str) -> Result<Limit, RulesetError> {
    Limit::from_doc(doc).map_err(|(member, message)| RulesetError::invalid(format!("{path}.{member}"), message))
}

fn costs(doc: &RuleDoc, limits: &[Limit], path: &str) -> Result<Box<[(crate::matching::Route, u64)]>, RulesetError> {
    let strictest = limits.iter().min_by_key(|limit| limit.largest_cost());
    let parse = |(place, entry): (usize, &crate::ruleset::CostDoc)| {
        let path = format!("{path}.cost[{place}]");
        if let Some(limit) = strictest.filter(|limit| entry.cost > limit.largest_cost()) {
            let most = limit.describe_largest_cost();
            let message = format!("{} is more than {most}: such a request could never pass", entry.cost);
            return Err(RulesetError::invalid(format!("{path}.cost"), message));
        }
        Ok((route(&entry.matches, &format!("{path}.match"))?, entry.cost))
    };
    doc.cost.iter().enumerate().map(parse).collect()
}
