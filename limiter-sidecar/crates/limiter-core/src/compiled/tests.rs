// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;
use crate::samples::{document, hash_key, limit, policy, rule, sha256, signed, with};

fn sample() -> Value {
    let plans = json!({"from": {"header": "x-plan"}, "limits": {"big": limit(10, 1_000_000, 20)}});
    let cost = json!([{"match": {"path": "/exports", "methods": ["POST"]}, "cost": 5}]);
    let rules = json!([rule(json!({"plans": plans, "cost": cost})), rule(json!({"name": "all", "key": []}))]);
    let entry = json!({
        "id": "team/set", "policy": "team/api", "rules": ["burst"], "action": "Set", "limit": {"burst": 10},
        "subjects": [[{"source": "header:x-api-key", "sha256": sha256("k1")}]]
    });
    json!({
        "format": 2, "gateway": "edge", "revision": 1, "overrides": [entry],
        "jwt": {"metadataNamespace": "jwt", "payloadKey": "payload"},
        "policies": [policy("team/api", rules, json!({"exempt": [{"clientIP": ["10.0.0.0/8"]}]})), policy("team/web", json!([]), json!({}))]
    })
}

fn stage(mode: &str, plans: &[&str], percent: u8) -> Value {
    json!({"mode": mode, "plans": plans, "percent": percent})
}

fn refused_path(place: &str, value: Value) -> String {
    let mut document = sample();
    let (parent, member) = place.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}")) {
        Value::Array(items) => items[member.parse::<usize>().unwrap()] = value,
        object => object[member] = value,
    }
    match Ruleset::parse(&signed(document), &hash_key()) {
        Err(RulesetError::Invalid { path, message }) => {
            assert!(!message.is_empty());
            path
        }
        other => panic!("{place} was not refused: {other:?}"),
    }
}

#[test]
fn a_ruleset_knows_what_it_was_made_of() {
    let ruleset = Ruleset::parse(&signed(sample()), &hash_key()).unwrap();
    assert_eq!(
        ("edge", 1, 2, 1),
        (ruleset.gateway(), ruleset.revision(), ruleset.rule_count(), ruleset.override_count())
    );
    assert!(ruleset.digest().starts_with("sha256:"));
    assert_eq!(Some(("jwt", "payload")), ruleset.payload_place().map(|place| (&*place.namespace, &*place.key)));
    let names: Vec<_> = ruleset.rules().map(|(policy, rule)| (policy.id(), rule.name(), rule.ordinal())).collect();
    assert_eq!(vec![("team/api", "burst", 0), ("team/api", "all", 1)], names);
}

#[test]
fn impossible_values_are_refused_with_their_path() {
    let cases = [
        ("/gateway", json!(""), "gateway"),
        ("/revision", json!(0), "revision"),
        ("/revision", json!(1_u64 << 52), "revision"),
        ("/policies/0/id", json!("api"), "policies[0].id"),
        ("/policies/0/id", json!("team/Api"), "policies[0].id"),
        ("/policies/1/id", json!("team/api"), "policies[1].id"),
        ("/policies/1/id", json!("a/a"), "policies[1].id"),
        ("/policies/0/match/hosts", json!(["ok.example.com", "*"]), "policies[0].match.hosts[1]"),
        ("/policies/0/match/routes", json!([{"path": "v1", "methods": []}]), "policies[0].match.routes[0].path"),
        (
            "/policies/0/match/routes",
            json!([{"path": "/v1", "methods": ["get"]}]),
            "policies[0].match.routes[0].methods",
        ),
        ("/policies/0/exempt/0/clientIP/0", json!("10.0.0.0/33"), "policies[0].exempt[0].clientIP[0]"),
        ("/policies/0/exempt/0", json!({"header": {"name": "X-Key", "in": []}}), "policies[0].exempt[0].header.name"),
        (
            "/policies/0/exempt/0",
            json!({"header": {"name": "x", "in": ["secret"]}}),
            "policies[0].exempt[0].header.in[0]",
        ),
        (
            "/policies/0/response",
            json!({"headers": "None", "documentation": "http://x"}),
            "policies[0].response.documentation",
        ),
        ("/policies/0/rules/0/name", json!("Burst"), "policies[0].rules[0].name"),
        ("/policies/0/rules/0/name", json!("a\"b"), "policies[0].rules[0].name"),
        ("/policies/0/rules/0/name", json!("burst-"), "policies[0].rules[0].name"),
        ("/policies/0/rules/1/name", json!("burst"), "policies[0].rules[1].name"),
        ("/policies/0/rules/0/version", json!("0123456789AB"), "policies[0].rules[0].version"),
        ("/policies/0/rules/0/version", json!("0123456789"), "policies[0].rules[0].version"),
        ("/policies/0/rules/0/stage", stage("Disabled", &[], 1), "policies[0].rules[0].stage.mode"),
        ("/policies/0/rules/0/stage", stage("Shadow", &["big", "small"], 1), "policies[0].rules[0].stage.plans[1]"),
        ("/policies/0/rules/1/stage", stage("Shadow", &["big"], 1), "policies[0].rules[1].stage.plans[0]"),
        ("/policies/0/rules/0/stage", stage("Shadow", &[], 101), "policies[0].rules[0].stage.percent"),
        (
            "/policies/0/rules/0/switches",
            json!([{"mode": "Shadow"}, {"mode": "Enforce"}]),
            "policies[0].rules[0].switches[1].mode",
        ),
        ("/policies/0/rules/0/code", json!("9x"), "policies[0].rules[0].code"),
        ("/policies/0/rules/0/key", json!([{"header": ""}]), "policies[0].rules[0].key[0].header"),
        ("/policies/0/rules/0/key", json!([{"header": "a"}, {"header": "a"}]), "policies[0].rules[0].key[1]"),
        (
            "/policies/0/rules/0/key",
            json!([{"clientIP": {"ipv4Prefix": 33, "ipv6Prefix": 0}}]),
            "policies[0].rules[0].key[0].clientIP.ipv4Prefix",
        ),
        (
            "/policies/0/rules/0/key",
            json!([{"clientIP": {"ipv4Prefix": 0, "ipv6Prefix": 129}}]),
            "policies[0].rules[0].key[0].clientIP.ipv6Prefix",
        ),
        ("/policies/0/rules/0/key", json!([{"cookie": "a b"}]), "policies[0].rules[0].key[0].cookie"),
        ("/policies/0/rules/0/key", json!([{"query": ""}]), "policies[0].rules[0].key[0].query"),
        ("/policies/0/rules/0/key", json!([{"claim": []}]), "policies[0].rules[0].key[0].claim"),
        ("/policies/0/rules/0/key", json!([{"claim": ["realm", ""]}]), "policies[0].rules[0].key[0].claim"),
        ("/policies/0/rules/0/key", json!([{"path": ""}]), "policies[0].rules[0].key[0].path"),
        ("/policies/0/rules/0/key", json!([{"host": {}}, {"method": {}}, {"host": {}}]), "policies[0].rules[0].key[2]"),
        ("/policies/0/rules/0/key", json!([{"principal": {"x": 1}}]), "policies[0].rules[0].key[0].principal.x"),
        ("/policies/0/rules/0/limit", limit(0, 1_000_000, 5), "policies[0].rules[0].limit.requests"),
        ("/policies/0/rules/0/limit", limit(5, 999, 5), "policies[0].rules[0].limit.periodUs"),
        ("/policies/0/rules/0/limit", limit(5, 1_000_000, 0), "policies[0].rules[0].limit.burst"),
        ("/policies/0/rules/0/limit", limit(5, 1_000_000, 4), "policies[0].rules[0].cost[0].cost"),
        ("/policies/0/rules/0/plans/limits/big", limit(5, 1_000_000, 4), "policies[0].rules[0].cost[0].cost"),
        ("/policies/0/rules/0/plans/limits/big", limit(5, 0, 9), "policies[0].rules[0].plans.limits.big.periodUs"),
        ("/policies/0/rules/0/plans/from/header", json!("X-Plan"), "policies[0].rules[0].plans.from.header"),
        ("/policies/0/rules/0/plans/from", json!({"claim": []}), "policies[0].rules[0].plans.from.claim"),
        ("/jwt", json!({"metadataNamespace": "", "payloadKey": "x"}), "jwt.metadataNamespace"),
        ("/jwt", json!({"metadataNamespace": "x", "payloadKey": ""}), "jwt.payloadKey"),
        ("/policies/0/rules/0/cost/0/match/path", json!("exports"), "policies[0].rules[0].cost[0].match.path"),
        ("/overrides/0/id", json!("set"), "overrides[0].id"),
        ("/overrides/0/policy", json!("team/none"), "overrides[0].policy"),
        ("/overrides/0/rules", json!([]), "overrides[0].rules"),
        ("/overrides/0/rules", json!(["all", "none"]), "overrides[0].rules[1]"),
        ("/overrides/0/rules", json!(["burst", "burst"]), "overrides[0].rules"),
        ("/overrides/0/subjects", json!([]), "overrides[0].subjects"),
        ("/overrides/0/subjects/0/0/sha256", json!("abc"), "overrides[0].subjects[0][0]"),
        ("/overrides/0/limit", json!({}), "overrides[0].limit"),
        ("/overrides/0/limit", json!({"burst": 0}), "overrides[0].limit.burst"),
        ("/overrides/0/limit", json!({"burst": 4}), "overrides[0].limit.burst"),
        ("/overrides/0/limit", json!({"periodUs": 5}), "overrides[0].limit.periodUs"),
        ("/overrides/0/action", json!("Exempt"), "overrides[0].limit"),
    ];
    for (place, value, path) in cases {
        assert_eq!(path, refused_path(place, value.clone()), "{place} = {value}");
    }
}

#[test]
fn the_highest_revision_is_one_below_two_to_the_fifty_second() {
    let parse = |revision: u64| Ruleset::parse(&signed(with(sample(), json!({"revision": revision}))), &hash_key());
    assert_eq!((1 << 52) - 1, parse((1 << 52) - 1).unwrap().revision());
    let error = parse(1 << 52).unwrap_err();
    assert_eq!("revision: must be below 2^52 = 4503599627370496", error.to_string());
}

#[test]
fn a_window_must_end_after_its_start() {
    let mut document = sample();
    document["overrides"][0] = with(document["overrides"][0].clone(), json!({"notBefore": 5, "notAfter": 5}));
    let error = Ruleset::parse(&signed(document), &hash_key()).unwrap_err();
    assert_eq!("overrides[0].notAfter: must be after notBefore", error.to_string());
}

#[test]
fn names_are_as_short_as_they_can_be_told_apart() {
    let names = |policy, rule| names::ItemNames::new(policy, rule).unwrap();
    let (burst, daily) = (names("team/api", "burst"), names("team/api", "daily"));
    let (same_rule, same_both) = (names("team/web", "burst"), names("other/api", "burst"));
    let text = |others: &[&names::ItemNames]| burst.among(others.iter().copied()).text.to_string();
    assert_eq!("burst", text(&[]));
    assert_eq!("burst", text(&[&daily]));
    assert_eq!("api.burst", text(&[&daily, &same_rule]));
    assert_eq!("team/api.burst", text(&[&same_rule, &same_both]));
}

#[test]
fn two_entries_of_one_name_need_slots_and_count_apart() {
    let entry = |changes: Value| rule(with(json!({"name": "burst"}), changes));
    let built =
        |rules: Value| Ruleset::parse(&document(json!([policy("team/api", rules, json!({}))]), json!([])), &hash_key());
    let ruleset = built(json!([entry(json!({})), entry(json!({"slot": "b"}))])).unwrap();
    let ids: Vec<_> = ruleset.rules().map(|(_, rule)| rule.id).collect();
    assert_ne!(ids[0], ids[1]);
    let thrice = json!([entry(json!({})), entry(json!({"slot": "b"})), entry(json!({"slot": "b"}))]);
    let message = built(thrice).unwrap_err().to_string();
    assert_eq!("policies[0].rules[2].name: \"burst\" is there twice; a second entry needs a slot of its own", message);
}

#[test]
fn the_older_of_two_entries_may_hold_a_stage_by_a_plan_that_only_the_newer_has() {
    let newer = json!({"from": {"header": "x-plan"}, "limits": {"internal": limit(9, 1_000_000, 9)}});
    let by_plan = |mode| json!({"stage": stage(mode, &["internal"], 0)});
    let rules = json!([
        rule(by_plan("Shadow")),
        rule(with(by_plan("Enforce"), json!({"slot": "b", "mode": "Shadow", "plans": newer})))
    ]);
    assert_eq!(2, crate::samples::one_policy(rules).rule_count());
}

#[test]
fn an_override_holds_in_the_entries_that_it_fits_and_must_fit_one() {
    let entry = json!({
        "id": "team/set", "policy": "team/api", "rules": ["burst"], "action": "Set", "limit": {"burst": 9},
        "subjects": [[{"source": "header:x-api-key", "sha256": sha256("k1")}]]
    });
    let window = json!({"algorithm": "FixedWindow", "requests": 5, "periodUs": 1_000_000});
    let built = |entries: [Value; 2]| {
        let rules = entries.map(rule);
        let policies = json!([policy("team/api", json!(rules), json!({}))]);
        Ruleset::parse(&document(policies, json!([entry.clone()])), &hash_key())
    };
    for entries in
        [[json!({"limit": window}), json!({"slot": "b"})], [json!({}), json!({"limit": window, "slot": "b"})]]
    {
        assert_eq!(1, built(entries).unwrap().override_count());
    }
    let nowhere = built([json!({"limit": window}), json!({"limit": window, "slot": "b"})]);
    assert!(nowhere.unwrap_err().to_string().starts_with("overrides[0].limit.burst: "));
}
