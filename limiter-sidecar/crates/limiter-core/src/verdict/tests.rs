// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;
use crate::Ruleset;
use crate::samples::{Limiter, answered, get, limit, one_policy, policy, rule, ruleset, sha256};

const KEY: &[(&str, &str)] = &[("x-api-key", "k1")];

/// Two enforcing rules and a shadow rule of one subject.
fn three_rules() -> Ruleset {
    one_policy(json!([
        rule(json!({})),
        rule(json!({"name": "daily", "limit": limit(10, 86_400_000_000, 10), "onStoreFailure": "Closed"})),
        rule(json!({"name": "dry", "mode": "Shadow", "onStoreFailure": "Closed"}))
    ]))
}

/// `checks`: four numbers for each.
fn judged(ruleset: &Ruleset, allowed: bool, checks: &[i64]) -> Verdict {
    let prepared = get("/", KEY).prepare(ruleset);
    prepared.verdict(&[answered(&prepared, allowed, checks)]).unwrap()
}

#[test]
fn a_request_that_every_rule_lets_pass_is_allowed() {
    let verdict = judged(&three_rules(), true, &[1, 4, 0, 0, 1, 9, 0, 0, 1, 4, 0, 0]);
    assert_eq!((Decision::Allowed, None, None), (verdict.decision, verdict.named, verdict.wait));
    assert_eq!(vec![Outcome::Allowed; 3], verdict.outcomes);
}

#[test]
fn of_several_refusing_rules_the_longest_wait_is_named() {
    let verdict = judged(&three_rules(), false, &[0, 0, 100, 0, 0, 0, 900, 0, 0, 0, 99_999, 0]);
    assert_eq!((Decision::Refused, Some(1), Some(Wait::Us(900))), (verdict.decision, verdict.named, verdict.wait));
    assert_eq!(vec![Outcome::Rejected, Outcome::Rejected, Outcome::WouldReject], verdict.outcomes);
}

#[test]
fn of_equal_waits_the_first_is_named_and_never_is_the_longest() {
    assert_eq!(Some(0), judged(&three_rules(), false, &[0, 0, 100, 0, 0, 0, 100, 0, 1, 4, 0, 0]).named);
    let verdict = judged(&three_rules(), false, &[0, 0, 100, 0, 0, 0, -1, 0, 1, 4, 0, 0]);
    assert_eq!((Some(1), Some(Wait::Never)), (verdict.named, verdict.wait));
}

#[test]
fn a_shadow_refusal_does_not_refuse() {
    let verdict = judged(&three_rules(), true, &[1, 4, 0, 0, 1, 9, 0, 0, 0, 0, 100, 0]);
    assert_eq!((Decision::Allowed, None), (verdict.decision, verdict.named));
    assert_eq!(Outcome::WouldReject, verdict.outcomes[2]);
}

#[test]
fn a_reply_that_contradicts_itself_is_no_decision() {
    let ruleset = three_rules();
    let prepared = get("/", KEY).prepare(&ruleset);
    for (allowed, checks) in
        [(true, [0, 0, 100, 0, 1, 9, 0, 0, 1, 4, 0, 0]), (false, [1, 4, 0, 0, 1, 9, 0, 0, 0, 0, 9, 0])]
    {
        let part = answered(&prepared, allowed, &checks);
        assert_eq!(Err(ReplyError::Contradiction), prepared.verdict(&[part]));
    }
    let mut part = answered(&prepared, true, &[1, 4, 0, 0]);
    part.checks = vec![0, 1, 2];
    assert_eq!(Err(ReplyError::Checks { found: 1, expected: 3 }), prepared.verdict(&[part]));
}

#[test]
fn a_store_failure_follows_the_rules_own_modes() {
    let cases = [
        (json!([rule(json!({}))]), Decision::Open, None, vec![Outcome::StoreFailureOpen]),
        (
            json!([rule(json!({"mode": "Shadow", "onStoreFailure": "Closed"}))]),
            Decision::Allowed,
            None,
            vec![Outcome::StoreFailureOpen],
        ),
        (
            json!([rule(json!({})), rule(json!({"name": "login", "onStoreFailure": "Closed"}))]),
            Decision::Closed,
            Some(1),
            vec![Outcome::StoreFailureOpen, Outcome::StoreFailureClosed],
        ),
        (
            json!([
                rule(json!({"name": "silent", "onStoreFailure": "Closed", "visibility": "Silent"})),
                rule(json!({"name": "login", "onStoreFailure": "Closed"}))
            ]),
            Decision::Closed,
            Some(1),
            vec![Outcome::StoreFailureClosed; 2],
        ),
    ];
    for (rules, decision, named, outcomes) in cases {
        let (verdict, _) = Limiter::new(one_policy(rules)).answer_without_store(get("/", KEY)).clone();
        assert_eq!((decision, named, outcomes), (verdict.decision, verdict.named, verdict.outcomes));
    }
}

#[test]
fn a_closed_rule_that_does_not_apply_closes_nothing() {
    let ruleset =
        one_policy(json!([rule(json!({"onStoreFailure": "Closed"})), rule(json!({"name": "all", "key": []}))]));
    assert_eq!(Decision::Open, Limiter::new(ruleset).answer_without_store(get("/", &[])).0.decision);
}

#[test]
fn what_needs_no_store_is_told_apart() {
    let matching = |path: &str| json!({"match": {"hosts": [], "routes": [{"path": path, "methods": []}]}});
    let with_exempt = crate::samples::with(matching("/exempt"), json!({"exempt": [{"clientIP": ["0.0.0.0/0"]}]}));
    let ruleset = ruleset(
        json!([
            policy("team/a", json!([rule(json!({}))]), with_exempt),
            policy("team/b", json!([rule(json!({}))]), matching("/skip")),
            policy(
                "team/c",
                json!([rule(json!({"onMissingKey": "Deny"})), rule(json!({"name": "all", "key": []}))]),
                matching("/deny")
            ),
        ]),
        json!([]),
    );
    let cases = [
        ("/other", Decision::Unmatched, vec![]),
        ("/exempt", Decision::Exempt, vec![Outcome::Exempt]),
        ("/skip", Decision::Allowed, vec![Outcome::SkippedMissingKey]),
        ("/deny", Decision::Refused, vec![Outcome::Rejected, Outcome::NotEvaluated]),
    ];
    for (path, decision, outcomes) in cases {
        let verdict = get(path, &[("x-weir-client-ip", "192.0.2.1")]).prepare(&ruleset).verdict_without_store();
        assert_eq!((decision, outcomes), (verdict.decision, verdict.outcomes), "{path}");
    }
}

#[test]
fn a_blocked_subject_is_refused_and_charges_nothing() {
    let block = json!({
        "id": "team/block", "policy": "team/api", "rules": ["burst"], "action": "Block",
        "subjects": [[{"source": "header:x-api-key", "sha256": sha256("k1")}]]
    });
    let rules = json!([rule(json!({})), rule(json!({"name": "all", "key": []}))]);
    let mut limiter = Limiter::new(ruleset(json!([policy("team/api", rules, json!({}))]), json!([block])));
    let (verdict, _) = limiter.answer(get("/", KEY));
    assert_eq!((Decision::Refused, Some(Wait::Us(3_600_000_000))), (verdict.decision, verdict.wait));
    assert_eq!(vec![Outcome::Blocked, Outcome::NotEvaluated], verdict.outcomes);
    assert_eq!(crate::counters::Counters::default(), limiter.counters);
}

/// What is said about the `places`-th checks alone.
fn part(prepared: &Prepared<'_>, places: &[usize], allowed: bool, checks: &[i64]) -> Part {
    Part { checks: places.to_vec(), ..answered(prepared, allowed, checks) }
}

/// One rule in this limiter's memory between two of the store.
fn mixed(on_store_failure: &str) -> Ruleset {
    one_policy(json!([
        rule(json!({})),
        rule(json!({"name": "own", "scope": "Instance"})),
        rule(json!({"name": "daily", "onStoreFailure": on_store_failure}))
    ]))
}

#[test]
fn parts_are_put_together_in_the_order_of_the_rules() {
    let ruleset = mixed("Open");
    let prepared = get("/", KEY).prepare(&ruleset);
    let own = part(&prepared, &[1], true, &[1, 7, 0, 0]);
    let region = part(&prepared, &[0, 2], true, &[1, 4, 0, 0, 1, 9, 0, 0]);
    let verdict = prepared.verdict(&[own, region]).unwrap();
    assert_eq!((Decision::Allowed, vec![Outcome::Allowed; 3]), (verdict.decision, verdict.outcomes));
    let remaining: Vec<u64> = verdict.checks.iter().map(|check| check.unwrap().remaining).collect();
    assert_eq!(vec![4, 7, 9], remaining);
}

#[test]
fn what_memory_refuses_the_store_is_not_asked_about() {
    let ruleset = mixed("Closed");
    let prepared = get("/", KEY).prepare(&ruleset);
    let verdict = prepared.verdict(&[part(&prepared, &[1], false, &[0, 0, 700, 0])]).unwrap();
    assert_eq!((Decision::Refused, Some(1), Some(Wait::Us(700))), (verdict.decision, verdict.named, verdict.wait));
    assert_eq!(vec![Outcome::NotEvaluated, Outcome::Rejected, Outcome::NotEvaluated], verdict.outcomes);
}

#[test]
fn without_the_store_the_rules_in_memory_keep_their_verdict() {
    for (mode, decision, last) in
        [("Open", Decision::Open, Outcome::StoreFailureOpen), ("Closed", Decision::Closed, Outcome::StoreFailureClosed)]
    {
        let ruleset = mixed(mode);
        let prepared = get("/", KEY).prepare(&ruleset);
        let own = part(&prepared, &[1], true, &[1, 7, 0, 0]);
        let verdict = prepared.verdict_on_store_failure(&[own], None);
        assert_eq!(decision, verdict.decision);
        assert_eq!(vec![Outcome::StoreFailureOpen, Outcome::Allowed, last], verdict.outcomes);
    }
}

#[test]
fn a_rule_in_memory_knows_no_store_failure() {
    let ruleset = one_policy(json!([rule(json!({"scope": "Instance", "onStoreFailure": "Closed"}))]));
    let prepared = get("/", KEY).prepare(&ruleset);
    assert!(prepared.needs_memory() && !prepared.needs_store());
}
