// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::sf_string;
use crate::Ruleset;
use crate::samples::{Limiter, START_US, answered, delivery, get, header, limit, one_policy, policy, rule, ruleset};

const KEY: &[(&str, &str)] = &[("x-api-key", "k1")];

/// All rate limit fields of the answer to the n-th of several equal requests.
fn fields(ruleset: Ruleset, requests: u64) -> Vec<(&'static str, String)> {
    let mut limiter = Limiter::new(ruleset);
    for _ in 1..requests {
        limiter.answer(get("/", KEY));
    }
    let (_, response) = limiter.answer(get("/", KEY));
    let headers =
        response.headers.into_iter().filter(|(name, _)| name.contains("ratelimit") && *name != "x-envoy-ratelimited");
    headers.map(|(name, value)| (name, value.into_owned())).collect()
}

fn owned(fields: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

fn dialect(name: &str, rules: Value) -> Ruleset {
    ruleset(json!([policy("team/api", rules, json!({"response": {"headers": name}}))]), json!([]))
}

fn two_rules() -> Value {
    json!([
        rule(json!({"limit": limit(100, 1_000_000, 200)})),
        rule(json!({"name": "hourly", "limit": limit(360, 3_600_000_000, 3)}))
    ])
}

#[test]
fn an_allowed_response_lists_every_public_rule_in_both_fields() {
    let expected = [
        ("ratelimit-policy", "\"burst\";q=200;w=2, \"hourly\";q=3;w=30"),
        ("ratelimit", "\"burst\";r=199;t=1, \"hourly\";r=2;t=10"),
    ];
    assert_eq!(owned(&expected), fields(one_policy(two_rules()), 1));
}

#[test]
fn a_refused_response_tells_the_wait_of_the_rule_that_refuses() {
    let expected = [
        ("ratelimit-policy", "\"burst\";q=200;w=2, \"hourly\";q=3;w=30"),
        ("ratelimit", "\"burst\";r=197;t=1, \"hourly\";r=0;t=10"),
    ];
    assert_eq!(owned(&expected), fields(one_policy(two_rules()), 4));
}

#[test]
fn the_x_dialect_shows_the_tightest_rule_in_seconds() {
    let expected = [("x-ratelimit-limit", "3"), ("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", "10")];
    assert_eq!(owned(&expected), fields(dialect("XRateLimit", two_rules()), 1));
    let expected = [("x-ratelimit-limit", "3"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "30")];
    assert_eq!(owned(&expected), fields(dialect("XRateLimit", two_rules()), 4));
}

#[test]
fn the_epoch_dialect_adds_the_time_of_the_answer() {
    let reset = (START_US / 1_000_000 + 10).to_string();
    let expected = [("x-ratelimit-limit", "3"), ("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", &reset)];
    assert_eq!(owned(&expected), fields(dialect("XRateLimitEpoch", two_rules()), 1));
}

/// D17: floor of the time and ceiling of the wait added up would be a second early.
#[test]
fn the_epoch_dialect_rounds_the_sum_up() {
    let mut limiter = Limiter::new(dialect("XRateLimitEpoch", two_rules()));
    limiter.now_us = START_US + 700_000;
    let (_, response) = limiter.answer(get("/", KEY));
    let reset = (START_US / 1_000_000 + 11).to_string();
    assert_eq!(Some(&*reset), header(&response, "x-ratelimit-reset"));
}

#[test]
fn a_policy_may_speak_no_dialect() {
    assert_eq!(owned(&[]), fields(dialect("None", two_rules()), 1));
    assert_eq!(owned(&[]), fields(dialect("None", two_rules()), 4));
}

#[test]
fn of_two_dialects_the_tightest_rules_one_is_spoken_for_its_own_policies() {
    let policies = |x_burst: u64| {
        json!([
            policy("team/a", json!([rule(json!({"name": "one"}))]), json!({})),
            policy(
                "team/b",
                json!([rule(json!({"name": "two", "limit": limit(9, 1_000_000, x_burst)}))]),
                json!({"response": {"headers": "XRateLimit"}})
            ),
            policy("team/c", json!([rule(json!({"name": "three", "limit": limit(7, 1_000_000, 7)}))]), json!({})),
        ])
    };
    let expected = [
        ("ratelimit-policy", "\"one\";q=5;w=1, \"three\";q=7;w=1"),
        ("ratelimit", "\"one\";r=4;t=1, \"three\";r=6;t=1"),
    ];
    assert_eq!(owned(&expected), fields(ruleset(policies(9), json!([])), 1));
    let expected = [("x-ratelimit-limit", "3"), ("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", "1")];
    assert_eq!(owned(&expected), fields(ruleset(policies(3), json!([])), 1));
}

#[test]
fn a_rule_name_that_two_policies_bring_is_told_apart_in_both_fields() {
    let policies = json!([
        policy("team/api", json!([rule(json!({})), rule(json!({"name": "daily"}))]), json!({})),
        policy("team/web.shop", json!([rule(json!({}))]), json!({})),
    ]);
    let expected = [
        ("ratelimit-policy", "\"api.burst\";q=5;w=1, \"daily\";q=5;w=1, \"web.shop.burst\";q=5;w=1"),
        ("ratelimit", "\"api.burst\";r=4;t=1, \"daily\";r=4;t=1, \"web.shop.burst\";r=4;t=1"),
    ];
    assert_eq!(owned(&expected), fields(ruleset(policies, json!([])), 1));
}

#[test]
fn shadow_and_silent_rules_leave_no_trace() {
    let hidden = json!([
        rule(json!({"name": "dry", "mode": "Shadow", "limit": limit(1, 1_000_000, 1)})),
        rule(json!({"name": "secret", "visibility": "Silent", "limit": limit(50, 1_000_000, 50)})),
        rule(json!({"name": "off", "mode": "Disabled"}))
    ]);
    assert_eq!(owned(&[]), fields(one_policy(hidden.clone()), 1));
    assert_eq!(owned(&[]), fields(one_policy(hidden.clone()), 3));
    let mut with_public = hidden;
    with_public.as_array_mut().unwrap().push(rule(json!({})));
    let expected = [("ratelimit-policy", "\"burst\";q=5;w=1"), ("ratelimit", "\"burst\";r=3;t=1")];
    assert_eq!(owned(&expected), fields(one_policy(with_public), 2));
}

/// D03: the document's own checks refuse such a cost, so the reply is made by hand.
#[test]
fn a_request_that_can_never_pass_is_told_the_truth() {
    let ruleset = one_policy(json!([rule(json!({}))]));
    get("/", KEY).request(|request| {
        let prepared = ruleset.prepare(request, 0);
        let verdict = prepared.verdict(&[answered(&prepared, false, &[0, 5, -1, 0])]).unwrap();
        let response = prepared.respond(request, &verdict, &delivery(0));
        assert_eq!(
            (Some("\"burst\";r=5;t=1"), None),
            (header(&response, "ratelimit"), header(&response, "retry-after"))
        );
    });
}

/// D22.
#[test]
fn names_become_strings_of_rfc_9651_or_are_refused() {
    let cases = [
        ("burst", Some("\"burst\"")),
        ("a\"b\\c", Some("\"a\\\"b\\\\c\"")),
        ("9 .~", Some("\"9 .~\"")),
        ("", Some("\"\"")),
        ("é", None),
        ("a\r\nb", None),
        ("\u{7f}", None),
    ];
    for (text, expected) in cases {
        assert_eq!(expected.map(str::to_owned), sf_string(text), "{text:?}");
    }
}

/// The fields of one request under a rule with this limit.
fn fields_of(limit: &Value) -> Vec<(&'static str, String)> {
    fields(one_policy(json!([rule(json!({"limit": limit}))])), 1)
}

#[test]
fn each_algorithm_tells_its_quota_its_window_and_when_something_comes_back() {
    let cases = [
        (
            json!({"algorithm": "LeakyBucket", "requests": 10, "periodUs": 60_000_000, "queue": 3, "maxDelayUs": 60_000_000}),
            "q=4;w=24",
            "r=3;t=6",
        ),
        (json!({"algorithm": "FixedWindow", "requests": 9, "periodUs": 60_000_000}), "q=9;w=60", "r=8;t=60"),
        (json!({"algorithm": "SlidingWindowLog", "requests": 9, "periodUs": 60_000_000}), "q=9;w=60", "r=8;t=60"),
        // The rest of two windows: nothing counts any more when the second has slid by.
        (json!({"algorithm": "SlidingWindowCounter", "requests": 9, "periodUs": 60_000_000}), "q=9;w=60", "r=8;t=120"),
        // December in Berlin has ended an hour before it does in UTC.
        (
            json!({"algorithm": "FixedWindow", "requests": 9, "calendar": "Month", "timeZone": "Europe/Berlin"}),
            "q=9;w=2678400",
            "r=8;t=2674800",
        ),
    ];
    for (limit, policy, state) in cases {
        let expected =
            [("ratelimit-policy", &*format!("\"burst\";{policy}")), ("ratelimit", &*format!("\"burst\";{state}"))];
        assert_eq!(owned(&expected), fields_of(&limit), "{limit}");
    }
}

#[test]
fn the_x_dialect_shows_the_quota_as_the_limit() {
    let queue = json!({"algorithm": "LeakyBucket", "requests": 10, "periodUs": 60_000_000, "queue": 3, "maxDelayUs": 60_000_000});
    let expected = [("x-ratelimit-limit", "4"), ("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", "6")];
    assert_eq!(owned(&expected), fields(dialect("XRateLimit", json!([rule(json!({"limit": queue}))])), 1));
}
