// SPDX-License-Identifier: Apache-2.0

use serde_json::{Value, json};

use super::*;
use crate::local::LocalCounters;
use crate::samples::{Call, START_US, answered, delivery, get, header, limit, policy, rule, sha256, signed};
use crate::{Answer, Response, Ruleset};

const KEY: &[(&str, &str)] = &[("x-api-key", "k1")];
const S: u64 = 1_000_000;

/// A rule of 10 requests an hour that is split while the store is away.
fn local(changes: Value) -> Value {
    let hourly = json!({"limit": limit(10, 3_600 * S, 10), "onStoreFailure": "Local"});
    rule(crate::samples::with(hourly, changes))
}

fn ruleset(limiters: u64, rules: Value, overrides: &Value) -> Ruleset {
    let document = signed(json!({
        "format": 2, "gateway": "edge", "revision": 176, "limiters": limiters, "overrides": overrides,
        "policies": [policy("team/api", rules, json!({}))],
    }));
    Ruleset::parse(&document, &crate::samples::hash_key()).unwrap()
}

/// A limiter whose store is away.
struct Alone {
    ruleset: Ruleset,
    counters: LocalCounters,
    now_us: u64,
}

impl Alone {
    fn new(limiters: u64, rules: Value) -> Self {
        Self { ruleset: ruleset(limiters, rules, &json!([])), counters: LocalCounters::default(), now_us: START_US }
    }

    /// Answers a request of which nothing but what `parts` says was decided.
    fn answer_beside(&mut self, call: Call<'_>, parts: &[Part]) -> (Verdict, Response<'_>) {
        let Self { ruleset, counters, now_us } = self;
        call.request(|request| {
            let prepared = ruleset.prepare(request, *now_us);
            let asked = prepared.fallback_call(parts);
            let fallback = (!prepared.fails_closed(parts)).then(|| {
                let Answer::Decided(reply) = counters.decide(*now_us, &asked.charges) else { panic!("stale") };
                asked.answered(&reply)
            });
            let verdict = prepared.verdict_on_store_failure(parts, fallback.as_ref());
            let response = prepared.respond(request, &verdict, &delivery(*now_us));
            (verdict, response)
        })
    }

    fn answer(&mut self, call: Call<'_>) -> (Verdict, Response<'_>) {
        self.answer_beside(call, &[])
    }

    fn decisions(&mut self, count: usize) -> Vec<Decision> {
        (0..count).map(|_| self.answer(get("/", KEY)).0.decision).collect()
    }
}

#[test]
fn a_limiter_grants_its_part_of_a_split_limit_and_no_more() {
    let mut alone = Alone::new(5, json!([local(json!({}))]));
    assert_eq!([Decision::Local, Decision::Local, Decision::Refused], *alone.decisions(3));
    let (verdict, _) = alone.answer(get("/", KEY));
    assert_eq!((vec![Outcome::LocalRejected], Some(0)), (verdict.outcomes, verdict.named));
    // One in five hours of ten an hour: two an hour.
    assert_eq!(Some(Wait::Us(1_800 * S)), verdict.wait);
    alone.now_us += 1_800 * S;
    assert_eq!([Decision::Local, Decision::Refused], *alone.decisions(2));
}

#[test]
fn a_factor_is_what_every_limiter_grants_whatever_their_number() {
    let mut alone = Alone::new(5, json!([local(json!({"localFactorMilli": 2_000}))]));
    let decisions = alone.decisions(21);
    assert_eq!(20, decisions.iter().filter(|decision| **decision == Decision::Local).count());
}

#[test]
fn the_client_is_told_of_the_mode_and_of_the_share_that_holds() {
    let mut alone = Alone::new(5, json!([local(json!({}))]));
    let (_, response) = alone.answer(get("/", KEY));
    assert_eq!(Some("local"), header(&response, "x-ratelimit-mode"));
    assert_eq!(Some("\"burst\";q=2;w=3600"), header(&response, "ratelimit-policy"));
    assert_eq!(Some("\"burst\";r=1;t=1800"), header(&response, "ratelimit"));
    assert_eq!("local", response.metadata.decision);
    alone.answer(get("/", KEY));
    let (_, response) = alone.answer(get("/", KEY));
    assert_eq!(Some("local"), header(&response, "x-ratelimit-mode"));
    assert_eq!(Some("1800"), header(&response, "retry-after"));
    let denial = response.denial.unwrap();
    assert_eq!(429, denial.status);
    assert!(denial.body.contains("2 requests per 3600 s here while its counters cannot be reached"), "{}", denial.body);
}

#[test]
fn a_closed_rule_refuses_before_anything_is_counted() {
    let closed = rule(json!({"name": "login", "onStoreFailure": "Closed"}));
    let mut alone = Alone::new(1, json!([local(json!({})), closed]));
    assert_eq!([Decision::Closed; 20], *alone.decisions(20));
    assert!(alone.counters.is_empty());
}

#[test]
fn where_one_rule_passes_unlimited_the_mode_is_open_and_no_budget_is_told() {
    let open = rule(json!({"name": "open"}));
    let mut alone = Alone::new(5, json!([local(json!({})), open]));
    let (verdict, response) = alone.answer(get("/", KEY));
    assert_eq!(vec![Outcome::LocalAllowed, Outcome::StoreFailureOpen], verdict.outcomes);
    assert_eq!(vec![("x-ratelimit-mode", "open".into())], response.headers);
    assert_eq!([Decision::Open, Decision::Refused], *alone.decisions(2));
}

#[test]
fn a_share_of_a_shadow_rule_counts_and_refuses_nobody() {
    let mut alone = Alone::new(10, json!([local(json!({"mode": "Shadow"}))]));
    let (first, response) = alone.answer(get("/", KEY));
    assert_eq!((Decision::Allowed, vec![Outcome::LocalAllowed]), (first.decision, first.outcomes));
    assert!(response.headers.is_empty());
    let (second, _) = alone.answer(get("/", KEY));
    assert_eq!((Decision::Allowed, vec![Outcome::LocalWouldReject]), (second.decision, second.outcomes));
}

#[test]
fn shares_are_charged_together_or_not_at_all() {
    let tight = local(json!({"name": "tight", "limit": limit(10, 3_600 * S, 1)}));
    let mut alone = Alone::new(1, json!([local(json!({})), tight]));
    assert_eq!([Decision::Local, Decision::Refused, Decision::Refused], *alone.decisions(3));
    let (verdict, _) = alone.answer(get("/", KEY));
    let left = verdict.checks.first().copied().flatten().map(|check| check.remaining);
    assert_eq!(Some(9), left, "the refused ones took nothing");
}

#[test]
fn the_dearest_request_passes_in_a_share_that_would_be_too_small_for_it() {
    let dear = json!({"cost": [{"match": {"path": "/x", "methods": []}, "cost": 8}]});
    let mut alone = Alone::new(5, json!([local(dear)]));
    let (first, _) = alone.answer(get("/x", KEY));
    let (second, _) = alone.answer(get("/x", KEY));
    assert_eq!([Decision::Local, Decision::Refused], [first.decision, second.decision]);
    assert!(matches!(second.wait, Some(Wait::Us(_))), "it passes again some time");
}

#[test]
fn what_the_store_has_answered_is_not_decided_again() {
    let daily = local(json!({"name": "daily"}));
    let mut alone = Alone::new(1, json!([local(json!({})), daily]));
    let prepared = get("/", KEY).prepare(&alone.ruleset);
    let from_store = Part { checks: vec![0], ..answered(&prepared, true, &[1, 4, 0, 0]) };
    let (verdict, _) = alone.answer_beside(get("/", KEY), &[from_store]);
    assert_eq!(Decision::Local, verdict.decision);
    assert_eq!(vec![Outcome::Allowed, Outcome::LocalAllowed], verdict.outcomes);
}

#[test]
fn nobody_is_asked_for_a_share_where_the_store_has_refused() {
    let ruleset = ruleset(1, json!([local(json!({}))]), &json!([]));
    let prepared = get("/", KEY).prepare(&ruleset);
    let refused = answered(&prepared, false, &[0, 0, 700, 700]);
    assert!(prepared.fallback_call(std::slice::from_ref(&refused)).charges.is_empty());
}

#[test]
fn an_override_is_shared_as_the_limit_is() {
    let raise = json!({
        "id": "team/raise", "policy": "team/api", "rules": ["burst"], "action": "Multiply", "factorMilli": 3_000,
        "subjects": [[{"source": "header:x-api-key", "sha256": sha256("k1")}]],
    });
    let ruleset = ruleset(5, json!([local(json!({}))]), &json!([raise]));
    let mut alone = Alone { ruleset, counters: LocalCounters::default(), now_us: START_US };
    let passed = alone.decisions(10).into_iter().filter(|decision| *decision == Decision::Local);
    assert_eq!(6, passed.count());
}

#[test]
fn a_document_that_splits_must_say_between_how_many() {
    let parse = |members: Value| {
        let document = crate::samples::with(
            json!({
                "format": 2, "gateway": "edge", "revision": 176, "overrides": [],
                "policies": [policy("team/api", json!([local(json!({}))]), json!({}))],
            }),
            members,
        );
        let refused = Ruleset::parse(&signed(document), &crate::samples::hash_key()).err();
        refused.map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(parse(json!({})).starts_with("limiters: must be there"));
    assert!(parse(json!({"limiters": 0})).starts_with("limiters: must be at least 1"));
    assert_eq!("", parse(json!({"limiters": 3})));
    let wrong = json!([policy("team/api", json!([rule(json!({"localFactorMilli": 1_000}))]), json!({}))]);
    assert!(parse(json!({"policies": wrong})).contains("goes with onStoreFailure Local only"));
}
