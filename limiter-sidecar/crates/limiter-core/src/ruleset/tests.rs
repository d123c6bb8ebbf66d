// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;
use crate::samples::{document, limit, policy, rule, signed, with};

fn sample() -> Value {
    let policies = json!([policy("team/api", json!([rule(json!({}))]), json!({}))]);
    serde_json::from_slice(&document(policies, json!([]))).unwrap()
}

fn parse(value: &Value) -> Result<Document, RulesetError> {
    Document::parse(&serde_json::to_vec(value).unwrap())
}

/// The path and message of the error that a document with this content gives.
fn refusal(value: Value) -> (String, String) {
    match Document::parse(&signed(value)) {
        Err(RulesetError::Invalid { path, message }) => (path, message),
        other => panic!("expected a refusal with a path, got {other:?}"),
    }
}

#[test]
fn every_member_of_a_full_document_is_read() {
    let full = signed(json!({
        "format": 2, "gateway": "edge", "revision": 1_764_477_123_042_u64,
        "policies": [{
            "id": "team-orders/orders-api", "generation": 7,
            "match": {"hosts": ["api.example.com"], "routes": [{"path": "/v1/*", "methods": ["GET"]}]},
            "exempt": [{"clientIP": ["10.0.0.0/8"]}, {"header": {"name": "x-api-key", "in": ["sha256:00"]}}],
            "rules": [{
                "name": "burst", "mode": "Shadow",
                "key": [{"header": "x-api-key"}, {"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}],
                "onMissingKey": "Deny", "limit": limit(100, 1_000_000, 200),
                "plans": {"from": {"header": "x-plan"}, "limits": {"enterprise": limit(1000, 1_000_000, 2000)}},
                "cost": [{"match": {"path": "/v1/exports", "methods": ["POST"]}, "cost": 10}],
                "onStoreFailure": "Closed", "visibility": "Silent", "code": "rate_limited",
                "version": "0123456789ab", "slot": "b",
                "stage": {"mode": "Enforce", "plans": ["enterprise"], "percent": 10},
                "switches": [{"mode": "Disabled", "notAfter": 3}, {"mode": "Shadow"}]
            }],
            "response": {"headers": "XRateLimitEpoch", "documentation": "https://example.com/limits"}
        }],
        "overrides": [{
            "id": "team-orders/import", "policy": "team-orders/orders-api", "rules": ["burst"],
            "subjects": [[{"source": "header:x-api-key", "sha256": "00"}]],
            "action": "Set", "limit": {"requests": 500}, "notBefore": 1, "notAfter": 2
        }]
    }));
    let document = Document::parse(&full).unwrap();
    let policy = &document.policies[0];
    assert_eq!(1_764_477_123_042, document.revision);
    assert_eq!(Dialect::XRateLimitEpoch, policy.response.headers);
    assert_eq!(Some("https://example.com/limits"), policy.response.documentation.as_deref());
    assert_eq!(KeyDoc::ClientIp(PrefixesDoc { ipv4_prefix: 32, ipv6_prefix: 64 }), policy.rules[0].key[1]);
    assert_eq!(1000, policy.rules[0].plans.as_ref().unwrap().limits["enterprise"].requests());
    assert_eq!(Some(SetLimitDoc { requests: Some(500), ..SetLimitDoc::default() }), document.overrides[0].limit);
    assert_eq!(Some(2), document.overrides[0].not_after);
    let RuleDoc { version, slot, stage, switches, .. } = &policy.rules[0];
    assert_eq!((Some("0123456789ab"), Some(Slot::B)), (version.as_deref(), *slot));
    let plans = vec!["enterprise".to_owned()];
    assert_eq!(&Some(StageDoc { mode: Mode::Enforce, plans, percent: 10 }), stage);
    let until = |mode, not_after| SwitchDoc { mode, not_after };
    assert_eq!(&[until(Mode::Disabled, Some(3)), until(Mode::Shadow, None)], switches.as_slice());
}

#[test]
fn the_digest_is_that_of_pythons_canonical_json() {
    // sha256 of json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False), made in Python.
    let document = json!({"b": [1, true, null, "é\"\\\n\u{1}"], "a": {"z": 9_007_199_254_740_991_u64, "y": {}}, "revision": 3, "digest": "x"});
    assert_eq!(
        "sha256:15fc4483b5edfee66cb379da9cef4f7f028036051c2c064e093b2a303d893145",
        digest_of(&document).unwrap()
    );
}

#[test]
fn the_digest_does_not_cover_the_revision() {
    let mut document = sample();
    document["revision"] = json!(177);
    assert_eq!(177, parse(&document).unwrap().revision);
}

#[test]
fn content_that_its_digest_does_not_state_is_refused() {
    let mut document = sample();
    document["policies"][0]["rules"][0]["limit"]["burst"] = json!(6);
    assert!(matches!(parse(&document), Err(RulesetError::Digest { .. })));
}

#[test]
fn unknown_members_are_refused_at_every_level_with_their_path() {
    let cases = [
        ("", ""),
        ("/policies/0", "policies[0]"),
        ("/policies/0/match", "policies[0].match"),
        ("/policies/0/rules/0", "policies[0].rules[0]"),
        ("/policies/0/rules/0/limit", "policies[0].rules[0].limit"),
        ("/policies/0/response", "policies[0].response"),
    ];
    for (place, path) in cases {
        let mut document = sample();
        document.pointer_mut(place).unwrap()["colour"] = json!("red");
        let (found, message) = refusal(document);
        assert!(found.starts_with(path), "{found:?} does not lead to {path:?}");
        assert!(message.contains("unknown field `colour`"), "{message}");
    }
}

#[test]
fn a_missing_member_is_refused_with_its_path() {
    let mut document = sample();
    document["policies"][0]["rules"][0].as_object_mut().unwrap().remove("onMissingKey");
    assert_eq!(("policies[0].rules[0]".to_owned(), "missing field `onMissingKey`".to_owned()), refusal(document));
}

#[test]
fn values_of_a_wrong_kind_are_refused_with_their_path() {
    let cases = [
        ("/policies/0/rules/0/mode", json!("Off"), "policies[0].rules[0].mode"),
        ("/policies/0/rules/0/limit/requests", json!(-1), "policies[0].rules[0].limit.requests"),
        ("/policies/0/rules/0/limit/algorithm", json!("Guess"), "policies[0].rules[0].limit.algorithm"),
        ("/policies/0/match/hosts", json!("api.example.com"), "policies[0].match.hosts"),
        ("/policies/0/rules/0/slot", json!("c"), "policies[0].rules[0].slot"),
        ("/policies/0/rules/0/stage", json!({"mode": "Off"}), "policies[0].rules[0].stage.mode"),
        ("/policies/0/rules/0/switches", json!([{"mode": "Off"}]), "policies[0].rules[0].switches[0].mode"),
    ];
    for (place, value, path) in cases {
        let mut document = sample();
        let (parent, member) = place.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap()[member] = value;
        assert_eq!(path, refusal(document).0);
    }
}

#[test]
fn a_number_with_a_fraction_is_refused() {
    let mut document = sample();
    document["policies"][0]["generation"] = json!(1.5);
    assert!(parse(&document).unwrap_err().to_string().contains("1.5 is no integer"));
}

#[test]
fn a_later_format_is_refused_before_anything_else() {
    let document = with(sample(), json!({"format": 3, "colour": "red"}));
    assert_eq!(Err(RulesetError::Format("3".to_owned())), parse(&document));
    assert!(parse(&document).unwrap_err().to_string().contains("reads 1 to 2"));
    assert_eq!(Err(RulesetError::Format("none".to_owned())), parse(&json!({})));
}

#[test]
fn both_formats_are_read() {
    for format in [1, 2] {
        assert!(Document::parse(&signed(with(sample(), json!({"format": format})))).is_ok(), "format {format}");
    }
}

#[test]
fn a_document_that_an_older_limiter_would_refuse_must_not_claim_its_format() {
    let members = [
        ("version", json!("0123456789ab")),
        ("slot", json!("b")),
        ("stage", json!({"mode": "Shadow", "plans": [], "percent": 1})),
        ("switches", json!([{"mode": "Shadow"}])),
    ];
    for (member, value) in members {
        let mut document = with(sample(), json!({"format": 1}));
        document["policies"][0]["rules"][0][member] = value;
        let (path, message) = refusal(document.clone());
        assert_eq!(format!("policies[0].rules[0].{member}"), path);
        assert_eq!("is of format 2, but the document claims 1", message);
        assert!(Document::parse(&signed(with(document, json!({"format": 2})))).is_ok(), "{member}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "{", "format: 1", "[1]"] {
        assert!(Document::parse(text.as_bytes()).is_err(), "{text:?} was accepted");
    }
}
