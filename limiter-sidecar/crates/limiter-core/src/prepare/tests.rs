// SPDX-License-Identifier: Apache-2.0
mod calls;
mod keys;
mod modes;

use serde_json::{Value, json};

use super::*;
use crate::samples::{Call, get, limit, one_policy, policy, rule, ruleset, sha256};

const CLIENT: (&str, &str) = ("x-weir-client-ip", "192.0.2.1");

fn by_client() -> Value {
    json!([{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}])
}

fn standings<'r>(prepared: &Prepared<'r>) -> Vec<Standing<'r>> {
    prepared.rules().iter().map(|rule| rule.standing).collect()
}

#[test]
fn a_request_that_no_policy_matches_asks_for_nothing() {
    let ruleset = ruleset(
        json!([policy(
            "team/api",
            json!([rule(json!({}))]),
            json!({"match": {"hosts": ["other.example.com"], "routes": []}})
        )]),
        json!([]),
    );
    let prepared = get("/", &[("x-api-key", "k1")]).prepare(&ruleset);
    assert!(!prepared.matched() && !prepared.needs_store() && prepared.rules().is_empty());
}

#[test]
fn rules_of_one_policy_with_one_key_share_a_string_and_policies_share_a_slot() {
    let rules = json!([rule(json!({})), rule(json!({"name": "daily"}))]);
    let ruleset =
        ruleset(json!([policy("team/api", rules.clone(), json!({})), policy("team/web", rules, json!({}))]), json!([]));
    let prepared = get("/", &[("x-api-key", "k1")]).prepare(&ruleset);
    assert_eq!(vec![0, 0, 1, 1], prepared.checks().map(|(_, check)| check.key).collect::<Vec<_>>());
    let slot = |key: &BucketKey| key.as_bytes()[7..31].to_vec();
    assert_eq!(slot(&prepared.keys()[0]), slot(&prepared.keys()[1]));
    assert_ne!(prepared.keys()[0], prepared.keys()[1]);
}

#[test]
fn rules_without_a_key_have_one_bucket_for_everybody_in_each_policy() {
    let rules = json!([rule(json!({"key": []}))]);
    let ruleset =
        ruleset(json!([policy("team/api", rules.clone(), json!({})), policy("team/web", rules, json!({}))]), json!([]));
    let (first, second) = (get("/", &[("x-api-key", "k1")]).prepare(&ruleset), get("/", &[]).prepare(&ruleset));
    assert_eq!(first.keys(), second.keys());
    assert_ne!(first.keys()[0].as_bytes()[7..31], first.keys()[1].as_bytes()[7..31]);
}

/// D28, D29.
#[test]
fn a_missing_key_touches_its_own_rule_only() {
    let ruleset = one_policy(json!([rule(json!({})), rule(json!({"name": "by-client", "key": by_client()}))]));
    for headers in [&[CLIENT][..], &[CLIENT, ("x-api-key", "")]] {
        let prepared = get("/", headers).prepare(&ruleset);
        assert_eq!(Standing::SkippedMissingKey, prepared.rules()[0].standing);
        assert_eq!(1, prepared.check_count());
        assert!(prepared.needs_store());
    }
}

/// D28.
#[test]
fn those_who_lack_the_key_share_a_counter_of_their_own() {
    let ruleset = one_policy(json!([rule(json!({"onMissingKey": "Share"}))]));
    let keys = |headers: &[(&str, &str)]| get("/", headers).prepare(&ruleset).keys().to_vec();
    assert_eq!(keys(&[]), keys(&[("x-api-key", ""), CLIENT]));
    assert_ne!(keys(&[]), keys(&[("x-api-key", "k1")]));
}

/// D28.
#[test]
fn a_missing_key_is_told_whatever_the_rule_does_about_it() {
    for reaction in ["Skip", "Share", "Deny"] {
        let ruleset =
            one_policy(json!([rule(json!({"onMissingKey": reaction})), rule(json!({"name": "all", "key": []}))]));
        let missing = |headers: &[(&str, &str)]| -> Vec<bool> {
            get("/", headers).prepare(&ruleset).rules().iter().map(|rule| rule.missing_key).collect()
        };
        assert_eq!(vec![true, false], missing(&[]), "{reaction}");
        assert_eq!(vec![false, false], missing(&[("x-api-key", "k1")]), "{reaction}");
    }
}

#[test]
fn a_rule_that_denies_without_its_key_needs_no_store() {
    let ruleset = one_policy(json!([rule(json!({"onMissingKey": "Deny"})), rule(json!({"name": "all", "key": []}))]));
    let prepared = get("/", &[]).prepare(&ruleset);
    assert!(
        matches!(prepared.rules()[0].standing, Standing::DeniedMissingKey(Source::Header(name)) if **name == *"x-api-key")
    );
    assert!(!prepared.needs_store());
}

#[test]
fn a_shadow_rule_that_would_deny_leaves_the_store_to_the_others() {
    let deny = rule(json!({"onMissingKey": "Deny", "mode": "Shadow"}));
    let ruleset = one_policy(json!([deny, rule(json!({"name": "all", "key": []}))]));
    assert!(get("/", &[]).prepare(&ruleset).needs_store());
}

#[test]
fn disabled_rules_do_not_appear() {
    let disabled = rule(json!({"name": "off", "mode": "Disabled"}));
    let ruleset = one_policy(json!([disabled.clone(), rule(json!({}))]));
    let prepared = get("/", &[("x-api-key", "k1")]).prepare(&ruleset);
    assert_eq!(vec!["burst"], prepared.rules().iter().map(|rule| rule.rule.name()).collect::<Vec<_>>());
    assert!(!get("/", &[("x-api-key", "k1")]).prepare(&one_policy(json!([disabled]))).matched());
}

#[test]
fn the_plan_of_a_request_chooses_its_limit() {
    let plans = json!({"from": {"header": "x-plan"}, "limits": {"enterprise": limit(1000, 1_000_000, 2000)}});
    let ruleset = one_policy(json!([rule(json!({"plans": plans}))]));
    for (plan, burst, unknown) in
        [("enterprise", 2000, false), ("", 5, false), ("gold", 5, true), ("Enterprise", 5, true)]
    {
        let prepared = get("/", &[("x-api-key", "k1"), ("x-plan", plan)]).prepare(&ruleset);
        let (rule, check) = prepared.checks().next().unwrap();
        assert_eq!((burst, unknown), (check.limit.quota(), rule.unknown_plan), "{plan:?}");
    }
}

#[test]
fn the_first_cost_that_covers_a_request_counts() {
    let cost = json!([
        {"match": {"path": "/v1/exports", "methods": ["POST"]}, "cost": 5},
        {"match": {"path": "/v1/*", "methods": []}, "cost": 2},
        {"match": {"path": "/health", "methods": []}, "cost": 0}
    ]);
    let ruleset = one_policy(json!([rule(json!({"cost": cost}))]));
    for (method, path, expected) in [
        ("POST", "/v1/exports", 5),
        ("GET", "/v1/exports", 2),
        ("POST", "//V1/x/../exports/", 5),
        ("GET", "/health", 0),
        ("GET", "/", 1),
        ("POST", "/v1/exports;a=b", 5),
        ("GET", "/v1/..;/search", 2),
        ("GET", "/health;a=b", 1),
        ("POST", "/health/..;/v1/exports", 5),
    ] {
        let call = Call { method, path, ..get("/", &[("x-api-key", "k1")]) };
        assert_eq!(expected, call.prepare(&ruleset).checks().next().unwrap().1.cost, "{method} {path}");
    }
}

/// D28.
#[test]
fn exempt_requests_are_exempt_from_every_rule_of_their_policy_alone() {
    let exempt = json!([
        {"clientIP": ["10.0.0.0/8", "2001:db8::/32"]},
        {"header": {"name": "x-api-key", "in": [format!("sha256:{}", sha256("probe"))]}}
    ]);
    let rules = json!([rule(json!({"key": []})), rule(json!({"name": "other"}))]);
    let ruleset = ruleset(
        json!([policy("team/api", rules.clone(), json!({"exempt": exempt})), policy("team/web", rules, json!({}))]),
        json!([]),
    );
    let cases: [(&[(&str, &str)], bool); 6] = [
        (&[("x-weir-client-ip", "10.1.2.3"), ("x-api-key", "k1")], true),
        (&[("x-weir-client-ip", "::ffff:10.1.2.3"), ("x-api-key", "k1")], true),
        (&[("x-weir-client-ip", "2001:db8::7"), ("x-api-key", "k1")], true),
        (&[("x-api-key", "probe")], true),
        (&[("x-weir-client-ip", "11.1.2.3"), ("x-api-key", "k1")], false),
        (&[("x-weir-client-ip", "unknown"), ("x-api-key", "k1")], false),
    ];
    for (headers, expected) in cases {
        let prepared = get("/", headers).prepare(&ruleset);
        assert_eq!(expected, standings(&prepared)[..2] == [Standing::Exempt; 2], "{headers:?}");
        assert_eq!(if expected { 2 } else { 4 }, prepared.check_count());
    }
}
