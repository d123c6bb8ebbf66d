// SPDX-License-Identifier: Apache-2.0
//! Which refusals last as long as they say, whatever other requests do.
//!
//! Others can only take from a counter, so whoever is refused stays refused until the wait is over. But for these:
//!
//! * What was charged may be given back: when a held request does not leave, in every rule that it met, and when a request
//!   that counts for several subjects is charged in one slot of a cluster and refused in another.
//! * A rule with plans may count one subject by several limits in turn, and the faster one ends a wait earlier.
//!
//! Whether two policies meet in one request is judged by their hosts alone, and in doubt they do.

use std::collections::{HashMap, HashSet};

use super::{Policy, Rule};
use crate::matching::HostPattern;
use crate::ruleset::{Algorithm, Scope};

/// How far a rule's refusals can be relied on until their wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lasting {
    /// They may end earlier.
    No,
    /// They last where all subjects are counted by one server.
    OnOneServer,
    /// They last.
    Yes,
}

/// Which policies may meet in a request.
#[derive(Default)]
struct Meetings<'h> {
    /// How many policies name a host.
    by_host: HashMap<&'h str, usize>,
    /// Policies for more than the hosts that they name.
    wide: usize,
    policies: usize,
}

/// Notes for each rule of each policy whether its refusals last. `hosts`: those of each policy.
pub(super) fn note(policies: &mut [Policy], hosts: &[Vec<HostPattern>]) {
    let acting = |policy: &Policy| policy.rules.iter().any(Rule::may_act);
    let holding = |policy: &Policy| policy.rules.iter().any(holds);
    let all = Meetings::of(policies, hosts, acting);
    let holders = Meetings::of(policies, hosts, holding);
    for (policy, hosts) in policies.iter_mut().zip(hosts) {
        let given_back = holders.may_meet(hosts);
        let split = all.may_meet_others(hosts) || counts_for_several(policy);
        for rule in &mut policy.rules {
            rule.lasting = match (given_back || rule.plans.is_some(), split) {
                (true, _) => Lasting::No,
                (false, true) => Lasting::OnOneServer,
                (false, false) => Lasting::Yes,
            };
        }
    }
}

/// Whether requests wait for it.
fn holds(rule: &Rule) -> bool {
    let leaks = rule.limits.first().is_some_and(|limit| limit.algorithm() == Algorithm::LeakyBucket);
    rule.may_enforce() && leaks
}

/// Whether a request may count for two subjects of one policy.
fn counts_for_several(policy: &Policy) -> bool {
    let counted = policy.rules.iter().filter(|rule| rule.may_act() && rule.scope == Scope::Region);
    counted.map(|rule| rule.key_group).collect::<HashSet<_>>().len() > 1
}

impl<'h> Meetings<'h> {
    fn of(policies: &[Policy], hosts: &'h [Vec<HostPattern>], counts: impl Fn(&Policy) -> bool) -> Self {
        let mut meetings = Self::default();
        for (_, hosts) in policies.iter().zip(hosts).filter(|(policy, _)| counts(policy)) {
            meetings.policies += 1;
            match exact(hosts) {
                Some(names) => names.for_each(|name| *meetings.by_host.entry(name).or_default() += 1),
                None => meetings.wide += 1,
            }
        }
        meetings
    }

    /// Whether a request for `hosts` may meet any of them.
    fn may_meet(&self, hosts: &[HostPattern]) -> bool {
        match exact(hosts) {
            Some(mut names) => self.wide > 0 || names.any(|name| self.by_host.contains_key(name)),
            None => self.policies > 0,
        }
    }

    /// The same for one of them, which meets itself.
    fn may_meet_others(&self, hosts: &[HostPattern]) -> bool {
        match exact(hosts) {
            Some(mut names) => self.wide > 0 || names.any(|name| self.by_host.get(name).is_some_and(|many| *many > 1)),
            None => self.policies > 1,
        }
    }
}

/// The hosts by name; nothing for a policy that names none, or names some by a pattern.
fn exact(hosts: &[HostPattern]) -> Option<impl Iterator<Item = &str>> {
    let is_exact = |host: &HostPattern| matches!(host, HostPattern::Exact(_));
    (!hosts.is_empty() && hosts.iter().all(is_exact)).then(|| {
        hosts.iter().map(|host| match host {
            HostPattern::Exact(name) | HostPattern::Wildcard(name) => &**name,
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::samples::{limit, policy, rule, ruleset};

    fn matching(hosts: &[&str]) -> Value {
        json!({"match": {"hosts": hosts, "routes": []}})
    }

    fn leaky() -> Value {
        rule(json!({
            "name": "even",
            "limit": {"algorithm": "LeakyBucket", "requests": 5, "periodUs": 1_000_000, "queue": 3, "maxDelayUs": 600_000}
        }))
    }

    /// The first rule of each policy.
    fn lasting(policies: &[(&str, Value, Value)]) -> Vec<Lasting> {
        let policies: Vec<_> =
            policies.iter().map(|(id, rules, more)| policy(id, rules.clone(), more.clone())).collect();
        let ruleset = ruleset(json!(policies), json!([]));
        ruleset.policies().iter().map(|policy| policy.rules()[0].lasting()).collect()
    }

    #[test]
    fn refusals_of_a_policy_alone_last() {
        let rules = json!([rule(json!({})), rule(json!({"name": "daily"}))]);
        let found = lasting(&[("team/a", rules.clone(), matching(&["a"])), ("team/b", rules, matching(&["b"]))]);
        assert_eq!(vec![Lasting::Yes, Lasting::Yes], found);
    }

    #[test]
    fn on_a_cluster_a_request_with_two_subjects_may_get_back_what_one_was_charged() {
        let two = json!([rule(json!({})), rule(json!({"name": "all", "key": []}))]);
        let one = json!([rule(json!({}))]);
        assert_eq!(vec![Lasting::OnOneServer], lasting(&[("team/a", two, json!({}))]));
        for hosts in [&["a", "b"][..], &["*.a"], &[]] {
            let found = lasting(&[("team/a", one.clone(), matching(&["a"])), ("team/b", one.clone(), matching(hosts))]);
            assert_eq!(vec![Lasting::OnOneServer; 2], found, "{hosts:?}");
        }
    }

    #[test]
    fn whatever_may_meet_a_rule_that_holds_may_be_given_back() {
        let one = json!([rule(json!({}))]);
        let policies = |holding: &[&str]| {
            lasting(&[
                ("team/a", one.clone(), matching(&["a"])),
                ("team/b", json!([leaky()]), matching(holding)),
                ("team/c", one.clone(), matching(&["c"])),
            ])
        };
        assert_eq!(vec![Lasting::No, Lasting::No, Lasting::Yes], policies(&["a", "b"]));
        assert_eq!(vec![Lasting::No; 3], policies(&["*.z"]));
    }

    #[test]
    fn plans_may_end_a_wait_earlier() {
        let plans = json!({"from": {"header": "x-plan"}, "limits": {"gold": limit(1000, 1_000_000, 2000)}});
        assert_eq!(vec![Lasting::No], lasting(&[("team/a", json!([rule(json!({"plans": plans}))]), json!({}))]));
    }
}
