// SPDX-License-Identifier: Apache-2.0
//! Which mode holds for which request: stages, switches, two entries of one name, broken glass.

use super::*;
use crate::breakglass::BreakGlass;
use crate::ruleset::Mode;
use crate::samples::{Limiter, START_US, header, limit, one_policy, rule, with};

const NOW_S: u64 = START_US / 1_000_000;

fn stage(mode: &str, plans: &[&str], percent: u8) -> Value {
    json!({"mode": mode, "plans": plans, "percent": percent})
}

fn plans() -> Value {
    json!({"from": {"header": "x-plan"}, "limits": {"gold": limit(9, 1_000_000, 9)}})
}

/// The mode of each rule that acts on a request with these headers.
fn modes(ruleset: &Ruleset, headers: &[(&str, &str)]) -> Vec<Mode> {
    get("/", headers).prepare(ruleset).rules().iter().map(|rule| rule.mode).collect()
}

fn subjects() -> Vec<String> {
    (0..200).map(|number| format!("k{number}")).collect()
}

#[test]
fn a_stage_by_plan_holds_for_requests_of_that_plan() {
    let ruleset = one_policy(json!([rule(json!({
        "mode": "Shadow", "plans": plans(), "stage": stage("Enforce", &["gold"], 0)
    }))]));
    assert_eq!(vec![Mode::Enforce], modes(&ruleset, &[("x-api-key", "k"), ("x-plan", "gold")]));
    assert_eq!(vec![Mode::Shadow], modes(&ruleset, &[("x-api-key", "k"), ("x-plan", "silver")]));
    assert_eq!(vec![Mode::Shadow], modes(&ruleset, &[("x-api-key", "k")]));
}

#[test]
fn a_stage_by_percent_holds_for_the_same_subjects_in_every_version() {
    let staged = |changes: Value| one_policy(json!([rule(with(json!({"mode": "Shadow"}), changes))]));
    let few = staged(json!({"stage": stage("Enforce", &[], 10), "version": "000000000000"}));
    let more = staged(json!({"stage": stage("Enforce", &[], 50), "version": "111111111111", "slot": "b"}));
    let all = staged(json!({"stage": stage("Enforce", &[], 100)}));
    let enforced = |ruleset: &Ruleset, key: &str| modes(ruleset, &[("x-api-key", key)]) == [Mode::Enforce];
    let (mut in_few, mut in_more) = (0, 0);
    for key in subjects() {
        in_few += usize::from(enforced(&few, &key));
        in_more += usize::from(enforced(&more, &key));
        assert!(!enforced(&few, &key) || enforced(&more, &key), "{key} went back to shadow");
        assert!(enforced(&all, &key));
    }
    assert!((5..=40).contains(&in_few) && (70..=130).contains(&in_more), "{in_few} {in_more}");
    assert_eq!(vec![Mode::Enforce], modes(&all, &[]), "a request without a subject is in a stage of all");
    assert_eq!(vec![Mode::Shadow], modes(&more, &[]), "and in no other");
}

#[test]
fn each_request_is_enforced_by_one_of_two_entries() {
    let new_key = json!([{"header": "x-user"}]);
    for key in [json!([{"header": "x-api-key"}]), new_key, json!([])] {
        let ruleset = one_policy(json!([
            rule(json!({"stage": stage("Shadow", &["gold"], 50), "plans": plans()})),
            rule(json!({
                "mode": "Shadow", "slot": "b", "stage": stage("Enforce", &["gold"], 50), "plans": plans(), "key": key
            })),
        ]));
        for (number, subject) in subjects().iter().enumerate() {
            let user = (number * 7).to_string();
            let plan = if number % 3 == 0 { "gold" } else { "none" };
            let found = modes(&ruleset, &[("x-api-key", subject), ("x-user", &user), ("x-plan", plan)]);
            assert_eq!(1, found.iter().filter(|mode| **mode == Mode::Enforce).count(), "{key} {subject}: {found:?}");
            assert!(plan != "gold" || found[1] == Mode::Enforce);
        }
    }
}

#[test]
fn a_switch_ends_at_its_second() {
    let until = |not_after: u64| {
        one_policy(json!([rule(
            json!({"switches": [{"mode": "Shadow"}, {"mode": "Disabled", "notAfter": not_after}]})
        )]))
    };
    let key = [("x-api-key", "k")];
    assert_eq!(Vec::<Mode>::new(), modes(&until(NOW_S + 1), &key));
    assert_eq!(vec![Mode::Shadow], modes(&until(NOW_S), &key));
    let off = until(NOW_S + 1);
    assert!(!get("/", &key).prepare(&off).needs_store());
    let rule = &off.policies()[0].rules()[0];
    assert_eq!(
        (Mode::Enforce, Mode::Disabled, Mode::Shadow),
        (rule.mode(), rule.mode_at(NOW_S), rule.mode_at(NOW_S + 1))
    );
}

#[test]
fn a_switch_caps_the_stage_too() {
    let ruleset = one_policy(json!([rule(json!({
        "mode": "Shadow", "stage": stage("Enforce", &[], 100), "switches": [{"mode": "Shadow"}]
    }))]));
    assert_eq!(vec![Mode::Shadow], modes(&ruleset, &[("x-api-key", "k")]));
}

#[test]
fn broken_glass_caps_what_it_names_and_no_more() {
    let ruleset = one_policy(json!([rule(json!({})), rule(json!({"name": "daily"}))]));
    let caps = BreakGlass::new([("team/api/daily", "Disabled")]).unwrap().caps(&ruleset);
    get("/", &[("x-api-key", "k")]).request(|request| {
        let capped = ruleset.prepare_under(caps.as_ref(), request, START_US);
        let found: Vec<_> = capped.rules().iter().map(|rule| (rule.rule.name(), rule.mode)).collect();
        assert_eq!(vec![("burst", Mode::Enforce)], found);
    });
}

#[test]
fn the_two_entries_are_charged_apart_and_the_client_is_told_of_the_one_that_enforces() {
    let entry = |mode: &str, staged: &str, burst: u64, changes: Value| {
        rule(with(
            json!({"mode": mode, "stage": stage(staged, &[], 50), "limit": limit(burst, 60_000_000, burst)}),
            changes,
        ))
    };
    let ruleset = one_policy(json!([
        entry("Enforce", "Shadow", 5, json!({})),
        entry("Shadow", "Enforce", 2, json!({"slot": "b"}))
    ]));
    let mut limiter = Limiter::new(ruleset);
    let (mut sides, subjects) = ([0, 0], subjects());
    for key in subjects.iter().take(40) {
        let headers = [("x-api-key", key.as_str())];
        let mut passed = 0;
        for _ in 0..7 {
            let (_, response) = limiter.answer(get("/", &headers));
            passed += u64::from(response.denial.is_none());
            let quota = header(&response, "ratelimit-policy").unwrap().to_owned();
            assert!(quota == "\"burst\";q=5;w=60" || quota == "\"burst\";q=2;w=60", "{quota}");
        }
        assert!(passed == 5 || passed == 2, "{passed} passed");
        sides[usize::from(passed == 2)] += 1;
    }
    assert!(sides.iter().all(|side| *side > 5), "{sides:?}");
}
