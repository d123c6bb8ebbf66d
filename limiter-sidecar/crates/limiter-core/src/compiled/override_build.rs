// SPDX-License-Identifier: Apache-2.0
//! From an override of the document to entries of the rules that it names.

use super::build::is_object_id;
use super::{Policy, Rule};
use crate::limit::{Limit, Wrong};
use crate::overrides::{Effect, Override};
use crate::ruleset::{Action, OverrideDoc, RulesetError, SetLimitDoc};

/// Checks an override and adds it to its rules. Called in the document's order, which is that of precedence.
pub(super) fn apply(doc: &OverrideDoc, path: &str, policies: &mut [Policy]) -> Result<(), RulesetError> {
    let invalid = |member: &str, message: String| RulesetError::invalid(format!("{path}.{member}"), message);
    check_shape(doc, path)?;
    let place = policies
        .binary_search_by(|policy| (*policy.id).cmp(doc.policy.as_str()))
        .map_err(|_| invalid("policy", format!("there is no policy {:?}", doc.policy)))?;
    let rules = policies.get_mut(place).map(|policy| &mut policy.rules[..]).unwrap_or_default();
    for (index, name) in doc.rules.iter().enumerate() {
        // A name may have two entries, of which an override was made for one and may not fit the other: it holds where
        // it fits, and must fit somewhere.
        let named = rules.iter_mut().filter(|rule| *rule.name == **name);
        let nowhere = (format!("rules[{index}]"), format!("policy {:?} has no rule {name:?}", doc.policy));
        named
            .map(|rule| push(doc, rule))
            .reduce(|before, outcome| if before.is_ok() { before } else { outcome.or(before) })
            .unwrap_or(Err(nowhere))
            .map_err(|(member, message)| invalid(&member, message))?;
    }
    Ok(())
}

/// Adds an override to one of its rules.
///
/// # Errors
/// The member of the override that does not go with this rule, and why.
fn push(doc: &OverrideDoc, rule: &mut Rule) -> Result<(), (String, String)> {
    let entry = Override {
        id: doc.id.as_str().into(),
        effect: effect(doc, rule).map_err(|(member, message)| (member.to_owned(), message))?,
        not_before: doc.not_before.unwrap_or(0),
        not_after: doc.not_after,
    };
    rule.overrides
        .push(entry, &rule.key, &doc.subjects)
        .map_err(|(subject, part, message)| (format!("subjects[{subject}][{part}]"), message))
}

fn check_shape(doc: &OverrideDoc, path: &str) -> Result<(), RulesetError> {
    let wrong = if !is_object_id(&doc.id) {
        ("id", "must be \"namespace/name\"")
    } else if doc.rules.is_empty() {
        ("rules", "must name at least one rule")
    } else if doc
        .rules
        .iter()
        .enumerate()
        .any(|(index, name)| doc.rules.iter().take(index).any(|before| before == name))
    {
        ("rules", "must name a rule once only")
    } else if doc.subjects.is_empty() {
        ("subjects", "must hold at least one subject")
    } else if doc.limit.is_some() && doc.action != Action::Set {
        ("limit", "goes with action Set only")
    } else if doc.factor_milli.is_some() != (doc.action == Action::Multiply) {
        ("factorMilli", "goes with action Multiply, and with no other")
    } else if doc.not_after.is_some_and(|end| end <= doc.not_before.unwrap_or(0)) {
        ("notAfter", "must be after notBefore")
    } else {
        return Ok(());
    };
    let (member, message) = wrong;
    Err(RulesetError::invalid(format!("{path}.{member}"), message))
}

fn effect(doc: &OverrideDoc, rule: &Rule) -> Result<Effect, Wrong> {
    match (doc.action, doc.limit, doc.factor_milli) {
        (Action::Exempt, ..) => Ok(Effect::Exempt),
        (Action::Block, ..) => Ok(Effect::Block),
        (Action::Set, Some(by), _) if by != SetLimitDoc::default() => {
            changed(rule, path_of, |limit| limit.replaced(by))
        }
        (Action::Set, ..) => Err(("limit", "action Set needs at least one number".to_owned())),
        (Action::Multiply, _, factor) => {
            changed(rule, |_| "factorMilli", |limit| limit.multiplied(factor.unwrap_or_default()))
        }
    }
}

/// Other numbers for each limit of the rule. `path_of` says which member of the override is to blame for one of a limit's.
fn changed(
    rule: &Rule,
    path_of: fn(&str) -> &'static str,
    change: impl Fn(&Limit) -> Result<Limit, Wrong>,
) -> Result<Effect, Wrong> {
    let dearest = rule.costs.iter().map(|(_, cost)| *cost).max();
    let change = |limit: &Limit| {
        let limit = change(limit).map_err(|(member, message)| (path_of(member), message))?;
        match dearest {
            Some(cost) if cost > limit.largest_cost() => Err((
                path_of(limit.cost_member()),
                format!(
                    "a cost of rule {:?}, {cost}, is more than {}: such a request could never pass",
                    rule.name,
                    limit.describe_largest_cost()
                ),
            )),
            _ => Ok(limit.with_share(rule.share, dearest.unwrap_or(1))),
        }
    };
    rule.limits.iter().map(change).collect::<Result<_, _>>().map(Effect::Set)
}

/// Where a limit's member stands in the override.
fn path_of(member: &str) -> &'static str {
    match member {
        "requests" => "limit.requests",
        "periodUs" => "limit.periodUs",
        "burst" => "limit.burst",
        "queue" => "limit.queue",
        "maxDelayUs" => "limit.maxDelayUs",
        _ => "limit",
    }
}
