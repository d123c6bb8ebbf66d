// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use crate::prepare::MAX_BLOCK_WAIT_S;
use crate::samples::{START_US, get, limit, policy, rule, ruleset, sha256, with};
use crate::{Prepared, Ruleset, Standing};

const NOW_S: u64 = START_US / 1_000_000;

#[expect(clippy::needless_pass_by_value, reason = "json!(…) arguments read best by value")]
fn entry(id: &str, subjects: Value, changes: Value) -> Value {
    let entry = json!({"id": id, "policy": "team/api", "rules": ["burst"], "subjects": subjects, "action": "Exempt"});
    with(entry, changes)
}

fn key(value: &str) -> Value {
    json!({"source": "header:x-api-key", "sha256": sha256(value)})
}

fn client(network: &str) -> Value {
    json!({"source": "clientIP", "sha256": sha256(network)})
}

fn two_sources(overrides: Value) -> Ruleset {
    let key = json!([{"header": "x-api-key"}, {"clientIP": {"ipv4Prefix": 24, "ipv6Prefix": 64}}]);
    ruleset(json!([policy("team/api", json!([rule(json!({"key": key}))]), json!({}))]), overrides)
}

/// What the first rule does with a request of this key and address.
fn prepared<'r>(ruleset: &'r Ruleset, key: &str, client: &str, now_s: u64) -> Prepared<'r> {
    let headers = [("x-api-key", key), ("x-weir-client-ip", client)];
    get("/", &headers).request(|request| ruleset.prepare(request, now_s))
}

fn applied<'r>(ruleset: &'r Ruleset, key: &str, client: &str) -> Option<&'r str> {
    prepared(ruleset, key, client, NOW_S).rules()[0].applied_override
}

fn burst(prepared: &Prepared<'_>) -> u64 {
    prepared.checks().next().unwrap().1.limit.burst()
}

#[test]
fn a_subject_is_found_by_all_of_its_values() {
    let ruleset = two_sources(json!([entry("team/both", json!([[key("k1"), client("192.0.2.0/24")]]), json!({}))]));
    assert_eq!(Some("team/both"), applied(&ruleset, "k1", "192.0.2.77"));
    assert_eq!(None, applied(&ruleset, "k1", "192.0.3.77"));
    assert_eq!(None, applied(&ruleset, "k2", "192.0.2.77"));
}

#[test]
fn a_source_that_is_not_named_may_have_any_value() {
    let ruleset = two_sources(json!([entry("team/key", json!([[key("k1")]]), json!({}))]));
    assert_eq!(Some("team/key"), applied(&ruleset, "k1", "192.0.2.77"));
    assert_eq!(Some("team/key"), applied(&ruleset, "k1", "unknown"));
    assert_eq!(None, applied(&ruleset, "k2", "192.0.2.77"));
}

#[test]
fn any_subject_of_the_list_fits() {
    let subjects = json!([[key("k1")], [key("k2")], [client("192.0.2.0/24")]]);
    let ruleset = two_sources(json!([entry("team/any", subjects, json!({}))]));
    for (key, client) in [("k1", "198.51.100.1"), ("k2", "198.51.100.1"), ("k3", "192.0.2.1")] {
        assert_eq!(Some("team/any"), applied(&ruleset, key, client));
    }
}

#[test]
fn a_source_outside_the_key_matches_nothing() {
    let foreign = json!([[key("k1"), {"source": "header:x-org", "sha256": sha256("acme")}]]);
    assert_eq!(None, applied(&two_sources(json!([entry("team/foreign", foreign, json!({}))])), "k1", "192.0.2.1"));
}

#[test]
fn the_first_of_the_list_wins_whatever_sources_it_names() {
    let (first, second) = (
        entry("team/1", json!([[key("k1")]]), json!({})),
        entry("team/2", json!([[client("192.0.2.0/24")]]), json!({})),
    );
    let ruleset = two_sources(json!([first, second]));
    assert_eq!(Some("team/1"), applied(&ruleset, "k1", "192.0.2.1"));
    let ruleset = two_sources(json!([second, first]));
    assert_eq!(Some("team/2"), applied(&ruleset, "k1", "192.0.2.1"));
}

#[test]
fn an_override_holds_from_its_start_to_the_second_before_its_end() {
    let window = json!({"notBefore": NOW_S, "notAfter": NOW_S + 10});
    let ruleset = two_sources(json!([entry("team/window", json!([[key("k1")]]), window)]));
    for (now_s, expected) in [(NOW_S - 1, false), (NOW_S, true), (NOW_S + 9, true), (NOW_S + 10, false)] {
        let prepared = prepared(&ruleset, "k1", "192.0.2.1", now_s);
        assert_eq!(expected, prepared.rules()[0].applied_override.is_some(), "at {now_s}");
    }
}

#[test]
fn an_expired_override_gives_way_to_the_next() {
    let subjects = json!([[key("k1")]]);
    let ruleset = two_sources(json!([
        entry("team/expired", subjects.clone(), json!({"notAfter": NOW_S})),
        entry("team/next", subjects, json!({})),
    ]));
    assert_eq!(Some("team/next"), applied(&ruleset, "k1", "192.0.2.1"));
}

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
        assert_eq!((requests, burst), (check.limit.requests(), check.limit.burst()));
    }
}

#[test]
fn exempt_takes_the_subject_out_of_the_rule() {
    let ruleset = two_sources(json!([entry("team/exempt", json!([[key("k1")]]), json!({}))]));
    let prepared = prepared(&ruleset, "k1", "192.0.2.1", NOW_S);
    assert_eq!(Standing::Exempt, prepared.rules()[0].standing);
    assert!(!prepared.needs_store());
}

#[test]
fn block_tells_the_time_that_is_left_but_an_hour_at_most() {
    for (end, expected) in [
        (json!({"notAfter": NOW_S + 90}), 90),
        (json!({"notAfter": NOW_S + 90_000}), MAX_BLOCK_WAIT_S),
        (json!({}), MAX_BLOCK_WAIT_S),
    ] {
        let block = entry("team/block", json!([[key("k1")]]), with(json!({"action": "Block"}), end));
        let ruleset = two_sources(json!([block]));
        let prepared = prepared(&ruleset, "k1", "192.0.2.1", NOW_S);
        assert_eq!(Standing::Blocked { wait_s: expected }, prepared.rules()[0].standing);
    }
}

#[test]
fn an_empty_subject_stands_for_everybody() {
    let rules = json!([rule(json!({"key": []}))]);
    let set = entry("team/all", json!([[]]), json!({"action": "Set", "limit": {"burst": 9}}));
    let ruleset = ruleset(json!([policy("team/api", rules, json!({}))]), json!([set]));
    assert_eq!(9, burst(&get("/", &[]).prepare(&ruleset)));
}

#[test]
fn a_shared_counter_keeps_its_limit_whatever_is_set_for_one_subject() {
    let key_spec = json!([{"header": "x-api-key"}, {"header": "x-org"}]);
    let rules = json!([rule(json!({"key": key_spec, "onMissingKey": "Share"}))]);
    let set = entry("team/set", json!([[key("k1")]]), json!({"action": "Set", "limit": {"burst": 9}}));
    let ruleset = ruleset(json!([policy("team/api", rules, json!({}))]), json!([set]));
    assert_eq!(5, burst(&get("/", &[("x-api-key", "k1")]).prepare(&ruleset)));
    assert_eq!(9, burst(&get("/", &[("x-api-key", "k1"), ("x-org", "acme")]).prepare(&ruleset)));
}

#[test]
fn ten_thousand_overrides_do_not_hide_the_one_that_fits() {
    let list: Vec<Value> =
        (0..10_000).map(|n| entry(&format!("team/o{n}"), json!([[key(&format!("k{n}"))]]), json!({}))).collect();
    let ruleset = two_sources(Value::Array(list));
    assert_eq!(Some("team/o7777"), applied(&ruleset, "k7777", "192.0.2.1"));
    assert_eq!(None, applied(&ruleset, "k10000", "192.0.2.1"));
}
