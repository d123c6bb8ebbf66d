// SPDX-License-Identifier: Apache-2.0
//! Checks what the rules of the document say of modes: versions, stages, switches.

use super::{Rule, Stage};
use crate::ruleset::{Mode, PolicyDoc, RuleDoc, RulesetError, StageDoc, SwitchDoc};

const VERSION_DIGITS: usize = 12;

/// Checks one rule of the policy.
pub(super) fn check(doc: &RuleDoc, policy: &PolicyDoc, path: &str) -> Result<(), RulesetError> {
    if doc.version.as_deref().is_some_and(|version| !is_version(version)) {
        let message = format!("must be {VERSION_DIGITS} lower-case hex digits");
        return Err(RulesetError::invalid(format!("{path}.version"), message));
    }
    if let Some(stage) = &doc.stage {
        check_stage(stage, &|plan| is_plan(policy, &doc.name, plan), &format!("{path}.stage"))?;
    }
    doc.switches.iter().enumerate().try_for_each(|(place, switch)| check_switch(*switch, path, place))
}

/// Notes for the entry of before in each pair which entry says who is in the stage: the one that enforces there.
pub(super) fn note_judges(rules: &mut [Rule]) {
    let enforcing = |rule: &Rule| stage_of(rule).is_some_and(|stage| stage.mode == Mode::Enforce);
    let judges: Vec<Option<usize>> = rules
        .iter()
        .map(|rule| match stage_of(rule) {
            Some(stage) if stage.mode != Mode::Enforce => {
                rules.iter().position(|other| other.name == rule.name && enforcing(other))
            }
            _ => None,
        })
        .collect();
    for (rule, judge) in rules.iter_mut().zip(judges) {
        if let Some(stage) = rule.shift.as_mut().and_then(|shift| shift.stage.as_mut()) {
            stage.judge = judge;
        }
    }
}

fn stage_of(rule: &Rule) -> Option<&Stage> {
    rule.shift.as_ref().and_then(|shift| shift.stage.as_ref())
}

fn check_stage(stage: &StageDoc, is_plan: &dyn Fn(&str) -> bool, path: &str) -> Result<(), RulesetError> {
    if stage.mode == Mode::Disabled {
        return Err(RulesetError::invalid(format!("{path}.mode"), "must be Enforce or Shadow"));
    }
    if stage.percent > 100 {
        return Err(RulesetError::invalid(format!("{path}.percent"), format!("{} is above 100", stage.percent)));
    }
    for (place, plan) in stage.plans.iter().enumerate() {
        if !is_plan(plan) {
            let message = format!("{plan:?} is no plan of the rule");
            return Err(RulesetError::invalid(format!("{path}.plans[{place}]"), message));
        }
    }
    Ok(())
}

/// Whether the rule has such a plan, in either of its entries: both hold the same stage, and an edit may have added the plan.
fn is_plan(policy: &PolicyDoc, rule: &str, plan: &str) -> bool {
    let entries = policy.rules.iter().filter(|entry| entry.name == rule);
    entries.filter_map(|entry| entry.plans.as_ref()).any(|plans| plans.limits.contains_key(plan))
}

fn check_switch(switch: SwitchDoc, path: &str, place: usize) -> Result<(), RulesetError> {
    if switch.mode == Mode::Enforce {
        let path = format!("{path}.switches[{place}].mode");
        return Err(RulesetError::invalid(path, "must be Shadow or Disabled: a switch only weakens"));
    }
    Ok(())
}

fn is_version(version: &str) -> bool {
    version.len() == VERSION_DIGITS && version.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
