// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;
use crate::Ruleset;
use crate::samples::{Call, Limiter, delivery, get, header, limit, one_policy, policy, rule, ruleset};

const KEY: &[(&str, &str)] = &[("x-api-key", "k1")];
const GRPC: &[(&str, &str)] = &[("x-api-key", "k1"), ("content-type", "application/grpc+proto")];

fn once() -> Value {
    rule(json!({"limit": limit(1, 1_500_000, 1)}))
}

/// A limiter that has let the first request pass.
fn exhausted(ruleset: Ruleset) -> Limiter {
    let mut limiter = Limiter::new(ruleset);
    assert_eq!(None, limiter.answer(get("/", KEY)).1.denial);
    limiter
}

fn names(response: &Response<'_>) -> Vec<&'static str> {
    response.headers.iter().map(|(name, _)| *name).collect()
}

#[test]
fn an_allowed_request_gets_the_fields_and_no_more() {
    let mut limiter = Limiter::new(one_policy(json!([once()])));
    let (_, response) = limiter.answer(get("/", KEY));
    assert_eq!((None, vec!["ratelimit-policy", "ratelimit"]), (response.denial.clone(), names(&response)));
    let expected = Metadata { policy: "team/api", rule: "burst", decision: "allowed", mode: "Enforce" };
    assert_eq!(expected, response.metadata);
}

/// D17: 1.5 s are told as 2.
#[test]
fn a_refusal_has_whole_seconds_rounded_up_and_may_not_be_stored() {
    let mut limiter = exhausted(one_policy(json!([once()])));
    let (_, response) = limiter.answer(get("/", KEY));
    assert_eq!(429, response.denial.as_ref().unwrap().status);
    let expected = [
        ("retry-after", "2"),
        ("cache-control", "no-store"),
        ("x-envoy-ratelimited", "true"),
        ("content-type", "application/problem+json"),
        ("ratelimit-policy", "\"burst\";q=1;w=2"),
        ("ratelimit", "\"burst\";r=0;t=2"),
    ];
    assert_eq!(expected.map(|(name, value)| (name, Cow::Borrowed(value))).to_vec(), response.headers);
    assert_eq!("refused", response.metadata.decision);
}

/// D17.
#[test]
fn waiting_the_told_seconds_always_lets_the_request_pass() {
    for (requests, period_us) in [(3, 10_000_000), (7, 1_000_000), (50, 1_000_000), (1, 7_300_000)] {
        let mut limiter =
            Limiter::new(one_policy(json!([rule(json!({"limit": limit(requests, period_us, requests)}))])));
        for step in 0..200 {
            limiter.now_us += step * 7_919;
            let wait_s =
                header(&limiter.answer(get("/", KEY)).1, "retry-after").map(|value| value.parse::<u64>().unwrap());
            if let Some(wait_s) = wait_s {
                assert!(wait_s >= 1);
                limiter.now_us += wait_s * 1_000_000;
                assert_eq!(None, limiter.answer(get("/", KEY)).1.denial);
            }
        }
    }
}

#[test]
fn a_silent_refusal_has_nothing_of_ours_but_the_wait() {
    let mut limiter = exhausted(one_policy(json!([with_visibility("Silent"), rule(json!({"name": "public"}))])));
    let (_, response) = limiter.answer(get("/", KEY));
    assert_eq!(vec!["retry-after", "cache-control", "x-envoy-ratelimited", "content-type"], names(&response));
    assert_eq!(
        "{\"type\":\"about:blank\",\"title\":\"Too Many Requests\",\"status\":429}",
        response.denial.unwrap().body
    );
}

fn with_visibility(visibility: &str) -> Value {
    crate::samples::with(once(), json!({"visibility": visibility}))
}

#[test]
fn a_shadow_refusal_changes_no_byte() {
    let dry = rule(json!({"name": "dry", "mode": "Shadow", "limit": limit(1, 60_000_000, 1)}));
    let alone = one_policy(json!([rule(json!({}))]));
    let with_dry = one_policy(json!([dry, rule(json!({}))]));
    let (mut plain, mut shadowed) = (Limiter::new(alone), Limiter::new(with_dry));
    for _ in 0..8 {
        let (expected, actual) = (plain.answer(get("/", KEY)).1, shadowed.answer(get("/", KEY)).1);
        assert_eq!((expected.denial, expected.headers), (actual.denial, actual.headers));
    }
}

#[test]
fn grpc_clients_are_told_in_their_way() {
    let mut limiter = exhausted(one_policy(json!([once()])));
    let (_, response) = limiter.answer(get("/", GRPC));
    assert_eq!(Some(Denial { status: 200, body: String::new() }), response.denial);
    assert_eq!(Some("8"), header(&response, "grpc-status"));
    assert_eq!(Some("Limit \"burst\" allows 1 request per 1500 ms; retry in 2 s."), header(&response, "grpc-message"));
    assert_eq!(Some("2"), header(&response, "retry-after"));
    assert_eq!(None, header(&response, "content-type"));
}

#[test]
fn grpc_clients_of_a_closed_rule_get_unavailable() {
    let limiter = Limiter::new(one_policy(json!([rule(json!({"onStoreFailure": "Closed"}))])));
    let (_, response) = limiter.answer_without_store(get("/", GRPC));
    assert_eq!((Some("14"), 200), (header(&response, "grpc-status"), response.denial.as_ref().unwrap().status));
}

#[test]
fn grpc_messages_are_percent_encoded() {
    assert_eq!("a b~ 100%25 %C2%B5s %0D%0A%7F", percent_encoded("a b~ 100% µs \r\n\u{7f}"));
}

#[test]
fn a_closed_rule_answers_503_for_a_second() {
    for visibility in ["Public", "Silent"] {
        let rules = json!([rule(json!({"onStoreFailure": "Closed", "visibility": visibility}))]);
        let limiter = Limiter::new(one_policy(rules));
        let (_, response) = limiter.answer_without_store(get("/", KEY));
        assert_eq!(vec!["retry-after", "cache-control", "content-type"], names(&response));
        assert_eq!((Some("1"), "closed"), (header(&response, "retry-after"), response.metadata.decision));
        let denial = response.denial.unwrap();
        assert_eq!((503, visibility == "Public"), (denial.status, denial.body.contains("limiter_unavailable")));
    }
}

/// D30.
#[test]
fn open_mode_is_shown_unless_it_is_switched_off_or_only_silent_rules_are_open() {
    let cases = [
        (json!([rule(json!({}))]), vec!["x-ratelimit-mode"]),
        (json!([rule(json!({"visibility": "Silent"}))]), vec![]),
        (json!([rule(json!({"mode": "Shadow"}))]), vec![]),
    ];
    for (rules, expected) in cases {
        let limiter = Limiter::new(one_policy(rules));
        let (_, response) = limiter.answer_without_store(get("/", KEY));
        assert_eq!((None, expected), (response.denial.clone(), names(&response)));
    }
    let ruleset = one_policy(json!([rule(json!({}))]));
    get("/", KEY).request(|request| {
        let prepared = ruleset.prepare(request, 0);
        let verdict = prepared.verdict_on_store_failure(&[], None);
        let response = prepared.respond(request, &verdict, &Delivery { mode_header: false, ..delivery(0) });
        assert!(response.headers.is_empty());
        assert_eq!("open", response.metadata.decision);
    });
}

#[test]
fn a_request_without_a_rule_passes_untouched() {
    let elsewhere = json!({"match": {"hosts": [], "routes": [{"path": "/other", "methods": []}]}});
    let mut limiter = Limiter::new(ruleset(json!([policy("team/api", json!([once()]), elsewhere)]), json!([])));
    let (_, response) = limiter.answer(get("/", KEY));
    let metadata = Metadata { policy: "", rule: "", decision: "allowed", mode: "" };
    assert_eq!(Response { denial: None, headers: vec![], metadata }, response);
}

/// D60.
#[test]
fn every_spelling_of_a_path_shares_the_count() {
    let route = json!({"match": {"hosts": [], "routes": [{"path": "/login", "methods": ["POST"]}]}});
    let rules = json!([rule(json!({"key": [], "limit": limit(3, 60_000_000, 3)}))]);
    let mut limiter = Limiter::new(ruleset(json!([policy("team/login", rules, route)]), json!([])));
    let spellings =
        ["/login", "//login", "/./login", "/x/../login", "/%6cogin", "/LOGIN", "/login?x=1", "/login;a=b", "/login%2f"];
    let mut refused = |path| limiter.answer(Call { method: "POST", path, ..get("/", &[]) }).1.denial.is_some();
    let expected = spellings.iter().enumerate().map(|(place, _)| place >= 3).collect::<Vec<_>>();
    assert_eq!(expected, spellings.map(&mut refused).to_vec());
}

/// D24, D25.
#[test]
fn clients_are_told_apart_by_network() {
    let by_client = json!([{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}]);
    let mut limiter =
        Limiter::new(one_policy(json!([rule(json!({"key": by_client, "limit": limit(1, 60_000_000, 1)}))])));
    let cases = [
        ("2001:db8:1:2::1", false),
        ("2001:db8:1:2:ffff::1", true),
        ("2001:db8:1:3::1", false),
        ("::ffff:192.0.2.1", false),
        ("192.0.2.1", true),
        ("::ffff:10.0.0.1", false),
    ];
    for (client, refused) in cases {
        let (_, response) = limiter.answer(get("/", &[("x-weir-client-ip", client)]));
        assert_eq!(refused, response.denial.is_some(), "{client}");
    }
}
