// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;
use crate::samples::{document, limit, policy, rule, sha256};

fn sample() -> Vec<u8> {
    let key = json!([{"header": "x-api-key"}, {"clientIP": {"ipv4Prefix": 24, "ipv6Prefix": 64}}]);
    let rules =
        json!([rule(json!({"key": key})), rule(json!({"name": "dry", "mode": "Shadow", "onMissingKey": "Deny"}))]);
    let set = json!({
        "id": "team/import", "policy": "team/api", "rules": ["burst"], "action": "Set", "limit": {"burst": 50},
        "subjects": [[{"source": "header:x-api-key", "sha256": sha256("k_7f2")}]], "notAfter": 1000
    });
    document(json!([policy("team/api", rules, json!({}))]), json!([set]))
}

fn explained(request: &Value, now_s: u64) -> Value {
    serde_json::from_str(&explain(&sample(), request.to_string().as_bytes(), now_s).unwrap()).unwrap()
}

#[test]
fn a_request_is_explained_rule_by_rule() {
    let request = json!({"method": "POST", "host": "api.example.com", "path": "/v1", "headers": {"X-Api-Key": "k_7f2"}, "clientIP": "192.0.2.77"});
    let expected = json!({
        "matched": true, "asksStore": true,
        "rules": [
            {
                "policy": "team/api", "rule": "burst", "mode": "Enforce", "outcome": "checked", "unknownPlan": false,
                "key": [
                    {"source": "header:x-api-key", "sha256": sha256("k_7f2")},
                    {"source": "clientIP", "sha256": sha256("192.0.2.0/24")}
                ],
                "limit": {"algorithm": "TokenBucket", "requests": 5, "periodUs": 1_000_000, "burst": 50}, "cost": 1, "override": "team/import"
            },
            {
                "policy": "team/api", "rule": "dry", "mode": "Shadow", "outcome": "checked", "unknownPlan": false,
                "key": [{"source": "header:x-api-key", "sha256": sha256("k_7f2")}],
                "limit": {"algorithm": "TokenBucket", "requests": 5, "periodUs": 1_000_000, "burst": 5}, "cost": 1
            }
        ]
    });
    assert_eq!(expected, explained(&request, 999));
}

/// D61: every source shows what an override would name, never the value.
#[test]
fn keys_of_every_source_are_shown_as_hashes() {
    let key = json!([
        {"cookie": "sid"}, {"query": "key"}, {"claim": ["realm", "sub"]}, {"claim": ["roles"]}, {"principal": {}},
        {"path": "org"}, {"host": {}}, {"method": {}}
    ]);
    let plans = json!({"from": {"claim": ["plan"]}, "limits": {"big": limit(10, 1_000_000, 20)}});
    let matches = json!({"match": {"hosts": [], "routes": [{"path": "/orgs/{org}/*", "methods": []}]}});
    let ruleset =
        document(json!([policy("team/api", json!([rule(json!({"key": key, "plans": plans}))]), matches)]), json!([]));
    let request = json!({
        "method": "post", "host": "API.example.com:443", "path": "/orgs/Acme/x?key=secret-q", "principal": "secret-peer",
        "headers": {"Cookie": "sid=secret-c"}, "claims": {"realm": {"sub": "secret-u"}, "roles": ["secret-r"], "plan": "big"}
    });
    let text = explain(&ruleset, request.to_string().as_bytes(), 0).unwrap();
    assert!(!text.contains("secret") && !text.contains("acme"), "{text}");
    let explained: Value = serde_json::from_str(&text).unwrap();
    let expected = [
        ("cookie:sid", "secret-c"),
        ("query:key", "secret-q"),
        ("claim:realm.sub", "secret-u"),
        ("claim:roles", "[\"secret-r\"]"),
        ("principal", "secret-peer"),
        ("path:org", "acme"),
        ("host", "api.example.com"),
        ("method", "POST"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(source, value)| json!({"source": source, "sha256": sha256(value)})).collect();
    assert_eq!(json!(expected), explained["rules"][0]["key"]);
    assert_eq!(json!(20), explained["rules"][0]["limit"]["burst"]);
}

#[test]
fn an_expired_override_is_not_explained() {
    let request = json!({"path": "/", "headers": {"x-api-key": "k_7f2"}, "clientIP": "192.0.2.77"});
    assert_eq!(Value::Null, explained(&request, 1000)["rules"][0]["override"]);
}

#[test]
fn a_missing_source_has_no_hash() {
    let explained = explained(&json!({"path": "/"}), 0);
    assert_eq!(json!([{"source": "header:x-api-key"}, {"source": "clientIP"}]), explained["rules"][0]["key"]);
    assert_eq!(json!("skipped: the request lacks the key"), explained["rules"][0]["outcome"]);
    assert_eq!(json!("refused: the request lacks the key"), explained["rules"][1]["outcome"]);
}

/// D61.
#[test]
fn no_raw_value_is_shown() {
    let request = json!({"path": "/secret-path", "headers": {"x-api-key": "k_7f2"}, "clientIP": "192.0.2.77"});
    let text = explained(&request, 0).to_string();
    assert!(!text.contains("k_7f2") && !text.contains("192.0.2.77") && !text.contains("secret-path"), "{text}");
}

#[test]
fn a_request_of_another_shape_is_refused_with_its_path() {
    for (request, message) in
        [("{}", "request: .: missing field `path`"), ("{\"path\": 1}", "request: path: "), ("", "request: ")]
    {
        let error = explain(&sample(), request.as_bytes(), 0).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn checking_tells_what_a_document_holds() {
    let summary = check(&sample()).unwrap();
    assert_eq!(
        ("edge", 176, 1, 2, 1),
        (&*summary.gateway, summary.revision, summary.policies, summary.rules, summary.overrides)
    );
    let wrong = document(
        json!([policy("team/api", json!([rule(json!({"limit": limit(0, 1_000_000, 1)}))]), json!({}))]),
        json!([]),
    );
    let message = check(&wrong).unwrap_err().to_string();
    assert!(message.starts_with("policies[0].rules[0].limit.requests: must be from 1"), "{message}");
}
