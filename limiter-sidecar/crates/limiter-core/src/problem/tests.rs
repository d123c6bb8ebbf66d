// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::is_uuid;
use crate::Ruleset;
use crate::samples::{Limiter, get, limit, one_policy, policy, rule, ruleset, sha256, with};

const KEY: &[(&str, &str)] = &[("x-api-key", "k1")];

/// The body of the first refusal of several equal requests.
fn body(ruleset: Ruleset, headers: &[(&str, &str)]) -> Value {
    let mut limiter = Limiter::new(ruleset);
    for _ in 0..20 {
        if let Some(denial) = limiter.answer(get("/", headers)).1.denial {
            assert!(!denial.body.contains('\n'));
            return serde_json::from_str(&denial.body).unwrap();
        }
    }
    panic!("nothing was refused");
}

fn blocked(rule_changes: Value) -> Ruleset {
    let block = json!({
        "id": "team/block", "policy": "team/api", "rules": ["burst"], "action": "Block",
        "subjects": [[{"source": "header:x-api-key", "sha256": sha256("k1")}]]
    });
    ruleset(json!([policy("team/api", json!([rule(rule_changes)]), json!({}))]), json!([block]))
}

#[test]
fn a_refusal_says_what_was_hit_and_when_to_come_back() {
    let documented = json!({"response": {"headers": "RateLimit", "documentation": "https://example.com/limits"}});
    let rules = json!([rule(json!({"limit": limit(5, 60_000_000, 5), "code": "quota_exceeded"}))]);
    let ruleset = ruleset(json!([policy("team/api", rules, documented)]), json!([]));
    let id = ("x-request-id", "0B8B4BD0-0000-4000-8000-00805F9B34FB");
    let expected = json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota exceeded", "status": 429,
        "detail": "Limit \"burst\" allows 5 requests per 60 s; retry in 12 s.",
        "instance": "urn:uuid:0b8b4bd0-0000-4000-8000-00805f9b34fb",
        "code": "quota_exceeded", "policy": "team/api", "rule": "burst", "retryAfterSeconds": 12,
        "violated-policies": ["burst"], "documentation": "https://example.com/limits"
    });
    assert_eq!(expected, body(ruleset, &[KEY[0], id]));
}

#[test]
fn without_a_uuid_the_instance_is_a_number_of_this_limiter() {
    for id in ["", "not-a-uuid", "0b8b4bd0000040008000-00805f9b34fb-----", "0b8b4bd0-0000-4000-8000-00805f9b34fg"] {
        let body = body(one_policy(json!([rule(json!({}))])), &[KEY[0], ("x-request-id", id)]);
        assert_eq!(json!("urn:weir:decision:edge-0-42"), body["instance"]);
        assert_eq!(Value::Null, body["documentation"]);
    }
    assert!(is_uuid("0b8b4bd0-0000-4000-8000-00805f9b34fb"));
}

#[test]
fn every_refusing_public_rule_is_listed_by_its_name_in_the_fields() {
    let rules = json!([rule(json!({})), rule(json!({"name": "slow", "limit": limit(5, 9_000_000, 5)}))]);
    let silent = rule(json!({"name": "secret", "visibility": "Silent"}));
    let policies =
        json!([policy("team/api", rules, json!({})), policy("team/web", json!([rule(json!({})), silent]), json!({}))]);
    let body = body(ruleset(policies, json!([])), KEY);
    assert_eq!(json!(["api.burst", "slow", "web.burst"]), body["violated-policies"]);
    assert_eq!(
        (json!("slow"), json!("team/api"), json!(2)),
        (body["rule"].clone(), body["policy"].clone(), body["retryAfterSeconds"].clone())
    );
}

#[test]
fn a_silent_rule_says_nothing_about_itself() {
    let body = body(one_policy(json!([rule(json!({"visibility": "Silent"}))])), KEY);
    assert_eq!(json!({"type": "about:blank", "title": "Too Many Requests", "status": 429}), body);
}

#[test]
fn a_denial_for_want_of_the_key_names_the_source_and_no_time() {
    let rules = json!([rule(json!({"onMissingKey": "Deny"}))]);
    let missing = body(one_policy(rules), &[]);
    assert_eq!(json!("missing_key"), missing["code"]);
    assert_eq!(json!("Limit \"burst\" needs the header x-api-key, which the request lacks."), missing["detail"]);
    assert_eq!(Value::Null, missing["retryAfterSeconds"]);
    let by_client = json!([{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}]);
    let missing = body(one_policy(json!([rule(json!({"key": by_client, "onMissingKey": "Deny"}))])), &[]);
    assert_eq!(json!("Limit \"burst\" needs the client address, which the request lacks."), missing["detail"]);
}

#[test]
fn a_blocked_subject_is_told_so() {
    let body = body(blocked(json!({})), KEY);
    assert_eq!(json!("The subject of limit \"burst\" is blocked by an override; retry in 3600 s."), body["detail"]);
    assert_eq!((json!(3600), json!(["burst"])), (body["retryAfterSeconds"].clone(), body["violated-policies"].clone()));
}

#[test]
fn a_closed_rule_blames_the_limiter() {
    let limiter = Limiter::new(one_policy(json!([rule(json!({"onStoreFailure": "Closed"}))])));
    let (_, response) = limiter.answer_without_store(get("/", KEY));
    let body: Value = serde_json::from_str(&response.denial.unwrap().body).unwrap();
    let expected = json!({
        "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        "title": "Temporarily reduced capacity", "status": 503, "code": "limiter_unavailable",
        "detail": "Limit \"burst\" cannot be checked at the moment; retry in 1 s.", "retryAfterSeconds": 1,
        "instance": "urn:weir:decision:edge-0-42", "policy": "team/api", "rule": "burst", "violated-policies": ["burst"]
    });
    assert_eq!(expected, body);
}

#[test]
fn a_request_above_the_burst_is_told_that_no_waiting_helps() {
    // The document's own checks refuse such a cost, so the reply is made by hand.
    let ruleset = one_policy(json!([rule(json!({"cost": [{"match": {"path": "/", "methods": []}, "cost": 3}]}))]));
    get("/", KEY).request(|request| {
        let prepared = ruleset.prepare(request, 0);
        let verdict = prepared.verdict(&[crate::samples::answered(&prepared, false, &[0, 5, -1, 0])]).unwrap();
        let response = prepared.respond(request, &verdict, &crate::samples::delivery(0));
        let body: Value = serde_json::from_str(&response.denial.unwrap().body).unwrap();
        assert_eq!(
            json!("The request costs 3, more than the burst of 5 that limit \"burst\" can ever allow."),
            body["detail"]
        );
        assert_eq!(Value::Null, body["retryAfterSeconds"]);
        assert!(response.headers.iter().all(|(name, _)| *name != "retry-after"));
    });
}

#[test]
fn each_algorithm_says_in_its_own_words_what_it_allows() {
    let window = |algorithm: &str| json!({"algorithm": algorithm, "requests": 1, "periodUs": 60_000_000});
    let cases = [
        (
            json!({"algorithm": "LeakyBucket", "requests": 6, "periodUs": 60_000_000, "queue": 0, "maxDelayUs": 0}),
            "6 requests per 60 s, evenly spaced; retry in 10 s",
        ),
        (window("FixedWindow"), "1 request per 60 s; retry in 60 s"),
        (window("SlidingWindowCounter"), "1 request per 60 s; retry in 120 s"),
        (window("SlidingWindowLog"), "1 request per 60 s; retry in 60 s"),
        // It is one o'clock in Berlin.
        (
            json!({"algorithm": "FixedWindow", "requests": 1, "calendar": "Day", "timeZone": "Europe/Berlin"}),
            "1 request per day in Europe/Berlin; retry in 82800 s",
        ),
    ];
    for (limit, text) in cases {
        let body = body(one_policy(json!([rule(json!({"limit": limit}))])), KEY);
        assert_eq!(json!(format!("Limit \"burst\" allows {text}.")), body["detail"]);
    }
}

#[test]
fn nothing_of_the_request_but_its_uuid_comes_back() {
    let rules =
        json!([rule(json!({"onMissingKey": "Deny"})), rule(json!({"name": "other", "key": [{"header": "x-secret"}]}))]);
    let headers = [("x-secret", "s3cr3t"), ("x-request-id", "<script>"), ("x-weir-client-ip", "192.0.2.1")];
    let body = with(body(one_policy(rules), &headers), json!({})).to_string();
    assert!(!body.contains("s3cr3t") && !body.contains("script") && !body.contains("192.0.2.1"), "{body}");
}
