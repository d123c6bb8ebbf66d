// SPDX-License-Identifier: Apache-2.0
//! Other numbers for single subjects, and overrides that cannot be.

use super::*;
use crate::ruleset::RulesetError;
use crate::samples::{document, hash_key, limit};

#[test]
fn set_replaces_the_named_numbers_of_the_limit_that_the_plan_gives() {
    let plans = json!({"from": {"header": "x-plan"}, "limits": {"enterprise": limit(50, 1_000_000, 60)}});
    let rules = json!([rule(json!({"plans": plans}))]);
    let set = entry("team/set", json!([[key("k1")]]), json!({"action": "Set", "limit": {"requests": 20}}));
    let ruleset = ruleset(json!([policy("team/api", rules, json!({}))]), json!([set]));
    for (plan, requests, burst) in [("none", 20, 5), ("enterprise", 20, 60)] {
        let headers = [("x-api-key", "k1"), ("x-plan", plan)];
        let prepared = get("/", &headers).prepare(&ruleset);
        let (_, check) = prepared.checks().next().unwrap();
        assert_eq!((requests, burst), (check.limit.doc().requests(), check.limit.quota()));
    }
}

#[test]
fn multiply_multiplies_the_limit_that_the_plan_gives_rounded_down_but_never_to_nothing() {
    let plans = json!({"from": {"header": "x-plan"}, "limits": {"enterprise": limit(50, 1_000_000, 61)}});
    let rules = json!([rule(json!({"plans": plans}))]);
    for (factor, requests, of_plan) in [(2_500, (12, 12), (125, 152)), (100, (1, 1), (5, 6)), (1_000, (5, 5), (50, 61))]
    {
        let multiply = entry("team/x", json!([[key("k1")]]), json!({"action": "Multiply", "factorMilli": factor}));
        let ruleset = ruleset(json!([policy("team/api", rules.clone(), json!({}))]), json!([multiply]));
        for (plan, expected) in [("none", requests), ("enterprise", of_plan)] {
            let prepared = get("/", &[("x-api-key", "k1"), ("x-plan", plan)]).prepare(&ruleset);
            let (_, check) = prepared.checks().next().unwrap();
            assert_eq!(expected, (check.limit.doc().requests(), check.limit.quota()), "{factor} of {plan}");
        }
    }
}

#[test]
fn an_override_that_contradicts_itself_or_its_rule_is_refused() {
    let cost = json!([{"match": {"path": "/exports", "methods": []}, "cost": 5}]);
    let rules = json!([rule(json!({"cost": cost}))]);
    let cases = [
        (json!({"action": "Multiply"}), "factorMilli"),
        (json!({"action": "Multiply", "factorMilli": 0}), "factorMilli"),
        (json!({"action": "Multiply", "factorMilli": 1_000_001}), "factorMilli"),
        (json!({"action": "Multiply", "factorMilli": 999}), "factorMilli"),
        (json!({"action": "Multiply", "factorMilli": 2_000, "limit": {"burst": 9}}), "limit"),
        (json!({"action": "Set", "factorMilli": 2_000, "limit": {"burst": 9}}), "factorMilli"),
        (json!({"action": "Exempt", "factorMilli": 2_000}), "factorMilli"),
        (json!({"action": "Set", "limit": {"burst": 4}}), "limit.burst"),
        (json!({"action": "Set", "limit": {"queue": 4}}), "limit.queue"),
    ];
    for (changes, member) in cases {
        let overrides = json!([entry("team/x", json!([[key("k1")]]), changes.clone())]);
        let document = document(json!([policy("team/api", rules.clone(), json!({}))]), overrides);
        let Err(RulesetError::Invalid { path, message }) = Ruleset::parse(&document, &hash_key()) else {
            panic!("{changes} was accepted")
        };
        assert_eq!(format!("overrides[0].{member}"), path, "{changes}: {message}");
    }
}
