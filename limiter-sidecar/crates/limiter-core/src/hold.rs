// SPDX-License-Identifier: Apache-2.0
//! Leaky buckets let requests leave evenly: how long one that passes must be held, what it is told when it leaves, and
//! the refusal of one that cannot be held.
//!
//! Owns which rules hold. Who waits, and where, is the server's matter.

use crate::prepare::{Prepared, RuleUse};
use crate::reply::{CheckReply, Wait};
use crate::ruleset::Scope;
use crate::verdict::{Decision, Outcome, Verdict};

impl Verdict {
    /// How long the request that passes must be held, in µs: until the last of its enforcing rules lets it leave.
    pub fn hold_us(&self, prepared: &Prepared<'_>) -> u64 {
        self.longest_hold(prepared).map_or(0, |(_, hold_us)| hold_us)
    }

    /// The same of the rules of one scope alone.
    pub fn hold_in_us(&self, prepared: &Prepared<'_>, scope: Scope) -> u64 {
        let ours = prepared.rules().iter().zip(self.holds_us());
        let ours = ours.filter(|(rule, _)| self.named.is_none() && rule.enforces() && rule.rule.scope() == scope);
        ours.map(|(_, hold_us)| hold_us).max().unwrap_or_default()
    }

    /// What each rule of [`Prepared::rules`] wants the request to be held for, in µs, in shadow or not.
    pub fn holds_us(&self) -> impl Iterator<Item = u64> {
        self.checks.iter().map(|check| check.map_or(0, hold_of))
    }

    /// The verdict as it is when the request leaves, `hold_us` after it was made.
    #[must_use]
    pub fn after_hold(mut self, hold_us: u64) -> Self {
        for check in self.checks.iter_mut().flatten() {
            check.reset_us = check.reset_us.saturating_sub(hold_us);
        }
        self
    }

    /// The refusal of a request that must be held and cannot be: by the rule that holds it longest.
    ///
    /// By the end of that time the rule lets a request leave at once, so the client is not told to come back in vain.
    #[must_use]
    pub fn without_hold(mut self, prepared: &Prepared<'_>) -> Self {
        let Some((place, hold_us)) = self.longest_hold(prepared) else { return self };
        let wait = Wait::Us(hold_us);
        if let Some(Some(check)) = self.checks.get_mut(place) {
            *check = CheckReply { ok: false, remaining: 0, wait, ..*check };
        }
        if let Some(outcome) = self.outcomes.get_mut(place) {
            *outcome = if outcome.is_local() { Outcome::LocalRejected } else { Outcome::Rejected };
        }
        Self { decision: Decision::Refused, named: Some(place), wait: Some(wait), ..self }
    }

    /// The place and the wait of the enforcing rule that holds longest; the first of equal ones.
    fn longest_hold(&self, prepared: &Prepared<'_>) -> Option<(usize, u64)> {
        if self.named.is_some() {
            return None;
        }
        let enforces = |rule: &RuleUse<'_>| rule.enforces();
        let holds = prepared.rules().iter().zip(self.holds_us()).enumerate();
        let holding = holds.filter(|(_, (rule, hold_us))| enforces(rule) && *hold_us > 0);
        holding.map(|(place, (_, hold_us))| (place, hold_us)).reduce(
            |longest, next| {
                if next.1 > longest.1 { next } else { longest }
            },
        )
    }
}

fn hold_of(check: CheckReply) -> u64 {
    match check.wait {
        Wait::Us(us) if check.ok => us,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Ruleset;
    use crate::samples::{get, one_policy, rule};

    const KEY: &[(&str, &str)] = &[("x-api-key", "k1")];

    fn rules() -> Ruleset {
        one_policy(json!([
            rule(json!({})),
            rule(json!({"name": "slow"})),
            rule(json!({"name": "dry", "mode": "Shadow"})),
        ]))
    }

    /// A verdict that passes, with these waits of its rules.
    fn passing(waits: [u64; 3]) -> Verdict {
        let check = |us| Some(CheckReply { ok: true, remaining: 4, wait: Wait::Us(us), reset_us: 1_000 });
        Verdict {
            decision: Decision::Allowed,
            outcomes: vec![Outcome::Allowed; 3],
            checks: waits.into_iter().map(check).collect(),
            named: None,
            wait: None,
        }
    }

    #[test]
    fn the_longest_wait_of_the_enforcing_rules_holds() {
        let ruleset = rules();
        let prepared = get("/", KEY).prepare(&ruleset);
        assert_eq!(300, passing([200, 300, 9_000]).hold_us(&prepared));
        assert_eq!(0, passing([0, 0, 9_000]).hold_us(&prepared));
        assert_eq!(vec![200, 300, 9_000], passing([200, 300, 9_000]).holds_us().collect::<Vec<_>>());
    }

    #[test]
    fn the_rules_of_each_scope_hold_by_themselves_and_those_in_shadow_not_at_all() {
        let ruleset = one_policy(json!([
            rule(json!({})),
            rule(json!({"name": "own", "scope": "Instance"})),
            rule(json!({"name": "dry", "scope": "Instance", "mode": "Shadow"})),
        ]));
        let prepared = get("/", KEY).prepare(&ruleset);
        let verdict = passing([300, 200, 9_000]);
        let holds = [Scope::Region, Scope::Instance].map(|scope| verdict.hold_in_us(&prepared, scope));
        assert_eq!([300, 200], holds);
        let refused = Verdict { named: Some(0), ..verdict };
        assert_eq!(0, refused.hold_in_us(&prepared, Scope::Instance));
    }

    #[test]
    fn a_wait_of_who_is_refused_is_no_hold() {
        let ruleset = rules();
        let prepared = get("/", KEY).prepare(&ruleset);
        let mut refused = passing([0, 300, 0]);
        refused.checks[0] = Some(CheckReply { ok: false, remaining: 0, wait: Wait::Us(700), reset_us: 0 });
        assert_eq!(0, refused.holds_us().next().unwrap());
        refused.named = Some(0);
        assert_eq!(0, refused.hold_us(&prepared));
    }

    #[test]
    fn whoever_leaves_later_is_told_the_reset_from_then_on() {
        let left = passing([200, 0, 0]).after_hold(200);
        assert!(left.checks.iter().flatten().all(|check| check.reset_us == 800));
        assert!(passing([0; 3]).after_hold(5_000).checks.iter().flatten().all(|check| check.reset_us == 0));
    }

    #[test]
    fn whoever_cannot_be_held_is_refused_by_the_rule_that_holds_longest() {
        let ruleset = rules();
        let prepared = get("/", KEY).prepare(&ruleset);
        let refused = passing([300, 300, 9_000]).without_hold(&prepared);
        assert_eq!((Decision::Refused, Some(0), Some(Wait::Us(300))), (refused.decision, refused.named, refused.wait));
        assert_eq!(vec![Outcome::Rejected, Outcome::Allowed, Outcome::Allowed], refused.outcomes);
        let told = refused.checks[0].unwrap();
        assert_eq!((false, 0, Wait::Us(300)), (told.ok, told.remaining, told.wait));
    }

    #[test]
    fn nobody_is_refused_who_need_not_wait() {
        let ruleset = rules();
        let prepared = get("/", KEY).prepare(&ruleset);
        assert_eq!(passing([0, 0, 9_000]), passing([0, 0, 9_000]).without_hold(&prepared));
    }
}
