// SPDX-License-Identifier: Apache-2.0
//! D70: what a request costs reaches the counter whatever else is in play.

use super::*;
use crate::samples::{Limiter, limit};

const HOUR_US: u64 = 3_600_000_000;
const COST: u64 = 3;

/// Limits of every algorithm that let 24 through at once, under an override of its own another number.
fn limits() -> [Value; 6] {
    [
        limit(24, HOUR_US, 24),
        json!({"algorithm": "LeakyBucket", "requests": 24, "periodUs": HOUR_US, "queue": 23, "maxDelayUs": 10 * HOUR_US}),
        json!({"algorithm": "FixedWindow", "requests": 24, "periodUs": HOUR_US}),
        json!({"algorithm": "FixedWindow", "requests": 24, "calendar": "Month", "timeZone": "Europe/Berlin"}),
        json!({"algorithm": "SlidingWindowCounter", "requests": 24, "periodUs": HOUR_US}),
        json!({"algorithm": "SlidingWindowLog", "requests": 24, "periodUs": HOUR_US}),
    ]
}

/// Members of an override, and what comes of 24.
fn overrides(algorithm: &Value) -> [(Option<Value>, u64); 3] {
    let number = match algorithm.as_str() {
        Some("TokenBucket") => json!({"burst": 30}),
        Some("LeakyBucket") => json!({"queue": 29}),
        _ => json!({"requests": 30}),
    };
    let multiplied = if algorithm == "LeakyBucket" { 47 } else { 48 };
    [
        (None, 24),
        (Some(json!({"action": "Set", "limit": number})), 30),
        (Some(json!({"action": "Multiply", "factorMilli": 2_000})), multiplied),
    ]
}

/// What is left for each rule after each of two requests.
fn left(limiter: &mut Limiter) -> [Vec<u64>; 2] {
    [1, 2].map(|_| {
        let headers = [("x-api-key", "k1"), ("x-plan", "listed")];
        let (verdict, _) = limiter.answer(Call { method: "POST", ..get("/exports", &headers) });
        verdict.checks.iter().map(|check| check.unwrap().remaining).collect()
    })
}

/// A policy of so many rules alike, its mode, scope and plan by the bits of `case`.
fn ruleset_of(limit: &Value, changes: Option<&Value>, case: u64, rules: usize) -> Ruleset {
    let [shadow, instance, by_plan] = [1, 2, 4].map(|bit| case & bit != 0);
    let others = if by_plan { with(limit.clone(), json!({"requests": 5})) } else { limit.clone() };
    let members = json!({
        "mode": if shadow { "Shadow" } else { "Enforce" },
        "scope": if instance { "Instance" } else { "Region" },
        "limit": others,
        "plans": {"from": {"header": "x-plan"}, "limits": {"listed": limit}},
        "cost": [{"match": {"path": "/exports", "methods": ["POST"]}, "cost": COST}],
    });
    let names = &["first", "second", "third"][..rules];
    let list: Vec<_> = names.iter().map(|name| rule(with(members.clone(), json!({"name": name})))).collect();
    let overriding =
        changes.map(|changes| with(entry("team/o", json!([[key("k1")]]), changes.clone()), json!({"rules": names})));
    ruleset(json!([policy("team/api", json!(list), json!({}))]), overriding.into_iter().collect())
}

#[test]
fn a_cost_is_charged_in_shadow_under_overrides_and_plans_and_beside_other_rules() {
    for limit in limits() {
        for (changes, quota) in overrides(&limit["algorithm"]) {
            for (case, rules) in (0..8).flat_map(|case| (1..=3).map(move |rules| (case, rules))) {
                let ruleset = ruleset_of(&limit, changes.as_ref(), case, rules);
                let expected = [quota - COST, quota - 2 * COST].map(|left| vec![left; rules]);
                assert_eq!(
                    expected,
                    left(&mut Limiter::new(ruleset)),
                    "{limit} {changes:?}, case {case}, {rules} rules"
                );
            }
        }
    }
}
