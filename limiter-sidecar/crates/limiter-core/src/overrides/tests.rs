// SPDX-License-Identifier: Apache-2.0
mod changes;
mod costs;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::prepare::MAX_BLOCK_WAIT_S;
use crate::samples::{Call, START_US, get, policy, rule, ruleset, sha256, with};
use crate::{Headers, NoClaims, Prepared, Request, Ruleset, Standing};

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
    get("/", &headers).request(|request| ruleset.prepare(request, now_s * 1_000_000))
}

fn applied<'r>(ruleset: &'r Ruleset, key: &str, client: &str) -> Option<&'r str> {
    prepared(ruleset, key, client, NOW_S).rules()[0].applied_override
}

fn burst(prepared: &Prepared<'_>) -> u64 {
    prepared.checks().next().unwrap().1.limit.quota()
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
fn every_source_can_be_named_by_its_value() {
    let cases = [
        (json!({"cookie": "sid"}), "cookie:sid", "s1"),
        (json!({"query": "key"}), "query:key", "a b"),
        (json!({"claim": ["realm", "sub"]}), "claim:realm.sub", "u1"),
        (json!({"claim": ["https://a.b/id"]}), r"claim:https://a\.b/id", "42"),
        (json!({"claim": ["roles"]}), "claim:roles", "[\"x\",true]"),
        (json!({"principal": {}}), "principal", "spiffe://example.com/orders"),
        (json!({"path": "org"}), "path:org", "acme"),
        (json!({"host": {}}), "host", "api.example.com"),
        (json!({"method": {}}), "method", "GET"),
    ];
    let claims = json!({"realm": {"sub": "u1"}, "https://a.b/id": 42, "roles": ["x", true]});
    for (source, name, value) in cases {
        let subjects = |value| json!([[{"source": name, "sha256": sha256(value)}]]);
        let list =
            json!([entry("team/no", subjects("other"), json!({})), entry("team/yes", subjects(value), json!({}))]);
        let routes = json!({"match": {"hosts": [], "routes": [{"path": "/orgs/{org}", "methods": []}]}});
        let ruleset = ruleset(json!([policy("team/api", json!([rule(json!({"key": [source]}))]), routes)]), list);
        let headers = [("cookie", "sid=s1")];
        let call = Call {
            principal: "spiffe://example.com/orders",
            claims: Some(&claims),
            ..get("/orgs/ACME?key=a%20b", &headers)
        };
        assert_eq!(Some("team/yes"), call.prepare(&ruleset).rules()[0].applied_override, "{source}");
    }
}

/// The work of a lookup depends on which sources are named together, not on how many overrides there are.
#[test]
fn twelve_thousand_overrides_cost_a_lookup_no_more_than_two() {
    let list = |many: usize| -> Vec<Value> {
        let named = |n| {
            let mut subject = vec![key(&format!("k{n}"))];
            subject.extend((n % 2 == 1).then(|| client("192.0.2.0/24")));
            entry(&format!("team/o{n}"), json!([subject]), json!({}))
        };
        (0..many).map(named).collect()
    };
    for many in [2, 12_000] {
        let ruleset = two_sources(Value::Array(list(many)));
        let overrides = &ruleset.policies()[0].rules()[0].overrides;
        assert_eq!(2, overrides.by_named.len(), "one look-up for each set of named sources");
        let mut asked = Vec::new();
        let found = overrides.find(NOW_S, |source| {
            asked.push(source);
            Some([0; 32])
        });
        assert_eq!((None, vec![0, 0, 1]), (found, asked));
        let id = format!("team/o{}", many - 1);
        assert_eq!(Some(&*id), applied(&ruleset, &format!("k{}", many - 1), "192.0.2.1"));
        assert_eq!(None, applied(&ruleset, &format!("k{many}"), "192.0.2.1"));
    }
}

/// Counts how often a value is read, which is done to hash it.
struct Counted(AtomicUsize);

impl Headers for Counted {
    fn value(&self, name: &str) -> Option<&[u8]> {
        (name == "x-api-key").then(|| {
            self.0.fetch_add(1, Ordering::Relaxed);
            &b"k1"[..]
        })
    }
}

#[test]
fn a_value_is_hashed_once_for_the_subject_and_once_for_all_overrides() {
    let rules = ["burst", "daily", "hourly"].map(|name| rule(json!({"name": name})));
    let list = ["burst", "daily", "hourly"].map(|name| {
        entry("team/o", json!([[key("k1")]]), json!({"rules": [name], "action": "Set", "limit": {"burst": 9}}))
    });
    let ruleset = ruleset(json!([policy("team/api", json!(rules), json!({}))]), json!(list));
    let headers = Counted(AtomicUsize::new(0));
    let request = Request { method: "GET", host: "", path: b"/", headers: &headers, principal: b"", claims: &NoClaims };
    let prepared = ruleset.prepare(&request, NOW_S);
    assert_eq!(vec![Some("team/o"); 3], prepared.rules().iter().map(|rule| rule.applied_override).collect::<Vec<_>>());
    assert_eq!(2, headers.0.load(Ordering::Relaxed));
}

#[test]
fn a_request_without_a_value_is_not_the_subject_that_names_one() {
    let ruleset = two_sources(json!([entry("team/empty", json!([[key("")]]), json!({}))]));
    assert_eq!(None, applied(&ruleset, "", "192.0.2.1"));
}
