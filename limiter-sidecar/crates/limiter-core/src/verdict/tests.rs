// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;
use crate::Ruleset;
use crate::samples::{Limiter, get, limit, one_policy, policy, rule, ruleset, sha256};

const KEY: &[(&str, &str)] = &[("x-api-key", "k1")];

/// Two enforcing rules and a shadow rule of one subject.
fn three_rules() -> Ruleset {
    one_policy(json!([
        rule(json!({})),
        rule(json!({"name": "daily", "limit": limit(10, 86_400_000_000, 10), "onStoreFailure": "Closed"})),
        rule(json!({"name": "dry", "mode": "Shadow", "onStoreFailure": "Closed"}))
    ]))
}

fn judged(ruleset: &Ruleset, integers: &[i64]) -> Verdict {
    let prepared = get("/", KEY).prepare(ruleset);
    prepared.verdict(&Reply::decode(integers, prepared.check_count()).unwrap()).unwrap()
}

#[test]
fn a_request_that_every_rule_lets_pass_is_allowed() {
    let verdict = judged(&three_rules(), &[1, 1, 4, 0, 0, 1, 9, 0, 0, 1, 4, 0, 0]);
    assert_eq!((Decision::Allowed, None, None), (verdict.decision, verdict.named, verdict.wait));
    assert_eq!(vec![Outcome::Allowed; 3], verdict.outcomes);
}

#[test]
fn of_several_refusing_rules_the_longest_wait_is_named() {
    let verdict = judged(&three_rules(), &[0, 0, 0, 100, 0, 0, 0, 900, 0, 0, 0, 99_999, 0]);
    assert_eq!((Decision::Refused, Some(1), Some(Wait::Us(900))), (verdict.decision, verdict.named, verdict.wait));
    assert_eq!(vec![Outcome::Rejected, Outcome::Rejected, Outcome::WouldReject], verdict.outcomes);
}

#[test]
fn of_equal_waits_the_first_is_named_and_never_is_the_longest() {
    assert_eq!(Some(0), judged(&three_rules(), &[0, 0, 0, 100, 0, 0, 0, 100, 0, 1, 4, 0, 0]).named);
    let verdict = judged(&three_rules(), &[0, 0, 0, 100, 0, 0, 0, -1, 0, 1, 4, 0, 0]);
    assert_eq!((Some(1), Some(Wait::Never)), (verdict.named, verdict.wait));
}

#[test]
fn a_shadow_refusal_does_not_refuse() {
    let verdict = judged(&three_rules(), &[1, 1, 4, 0, 0, 1, 9, 0, 0, 0, 0, 100, 0]);
    assert_eq!((Decision::Allowed, None), (verdict.decision, verdict.named));
    assert_eq!(Outcome::WouldReject, verdict.outcomes[2]);
}

#[test]
fn a_reply_that_contradicts_itself_is_no_decision() {
    let ruleset = three_rules();
    let prepared = get("/", KEY).prepare(&ruleset);
    for integers in [[1, 0, 0, 100, 0, 1, 9, 0, 0, 1, 4, 0, 0], [0, 1, 4, 0, 0, 1, 9, 0, 0, 0, 0, 9, 0]] {
        let reply = Reply::decode(&integers, 3).unwrap();
        assert_eq!(Err(ReplyError::Contradiction), prepared.verdict(&reply));
    }
    let reply = Reply::decode(&[1, 1, 4, 0, 0], 1).unwrap();
    assert!(matches!(prepared.verdict(&reply), Err(ReplyError::Length { found: 1, expected: 3 })));
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
    assert_eq!(crate::bucket::Buckets::default(), limiter.buckets);
}
