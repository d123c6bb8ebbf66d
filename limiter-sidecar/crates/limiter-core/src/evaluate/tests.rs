// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;

const DAY: u64 = 86_400_000_000;

fn rule(changes: Value) -> Value {
    crate::samples::with(
        json!({"id": "burst...", "kind": 1, "numbers": [200_000, 1_000_000, 200_000, 1], "enforcing": true}),
        changes,
    )
}

fn replies(steps: &Value) -> Value {
    let vector = serde_json::to_vec(&json!({"steps": steps})).unwrap();
    serde_json::from_str::<Value>(&evaluate(&vector).unwrap()).unwrap()["replies"].clone()
}

#[test]
fn the_state_lives_on_across_the_steps() {
    let dear = json!({"numbers": [1_000_000, 1_000_000, 200_000, 1]});
    let steps = json!([
        {"now_us": 1_000_000, "rules": [rule(dear)]},
        {"now_us": 1_000_000, "rules": [rule(json!({}))]},
        {"now_us": 1_200_000, "rules": [rule(json!({}))]},
    ]);
    let expected = json!([
        [1, 1_000_000, 1, 0, 0, 1_000_000],
        [0, 1_000_000, 0, 0, 200_000, 1_000_000],
        [1, 1_200_000, 1, 0, 0, 1_000_000]
    ]);
    assert_eq!(expected, replies(&steps));
}

#[test]
fn keys_are_separate_strings_and_a_log_has_its_own() {
    let free = json!({"key": "other", "numbers": [0, 1_000_000, 200_000, 1]});
    let log = json!({"kind": 5, "numbers": [1, 9, 1_000_000, 0]});
    let steps = json!([{"now_us": 1, "rules": [rule(json!({})), rule(free), rule(log)]}]);
    assert_eq!(json!([[1, 1, 1, 4, 0, 200_000, 1, 5, 0, 0, 1, 8, 0, 1_000_000]]), replies(&steps));
}

#[test]
fn a_refund_is_a_step_of_its_own() {
    let window = || rule(json!({"kind": 3, "numbers": [2, 9, 1_000_000, 0]}));
    let steps = json!([
        {"now_us": 1, "rules": [window()]},
        {"now_us": 2, "refund": true, "charged_at_us": 1, "rules": [window()]},
        {"now_us": 3, "rules": [window()]},
    ]);
    assert_eq!(json!([[1, 1, 1, 7, 0, 999_999], [1], [1, 3, 1, 7, 0, 999_997]]), replies(&steps));
}

#[test]
fn a_calendars_edges_follow_its_numbers() {
    let day = |now_us: u64| json!({"now_us": now_us, "rules": [rule(json!({"kind": 6, "numbers": [1, 9, 0, 0, 0, DAY, 2 * DAY, 3 * DAY]}))]});
    let expected = json!([[1, DAY, 1, 8, 0, DAY], [-1, 3 * DAY]]);
    assert_eq!(expected, replies(&json!([day(DAY), day(3 * DAY)])));
}

#[test]
fn what_is_no_vector_is_refused_with_its_path() {
    let cases = [
        (json!({}), "."),
        (json!({"steps": [{"now_us": 0}]}), "steps[0]"),
        (json!({"steps": [{"now_us": -1, "rules": []}]}), "steps[0].now_us"),
        (json!({"steps": [{"now_us": 0, "refund": true, "rules": []}]}), "steps[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"id": "long"}))]}]}), "steps[0].rules[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"kind": 7}))]}]}), "steps[0].rules[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"kind": 6}))]}]}), "steps[0].rules[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"numbers": [1, 1, 0, 1]}))]}]}), "steps[0].rules[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"numbers": [1, 1, 1]}))]}]}), "steps[0].rules[0]"),
        (
            json!({"steps": [{"now_us": 0, "rules": [rule(json!({"numbers": [1, 1_u64 << 53, 1, 1]}))]}]}),
            "steps[0].rules[0]",
        ),
        (
            json!({"steps": [{"now_us": 0, "rules": [rule(json!({"kind": 4, "numbers": [1, 1_u64 << 27, 1_u64 << 27, 0]}))]}]}),
            "steps[0].rules[0]",
        ),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"colour": 1}))]}]}), "steps[0].rules[0]"),
    ];
    for (vector, path) in cases {
        let message = evaluate(&serde_json::to_vec(&vector).unwrap()).unwrap_err().to_string();
        assert!(message.starts_with(path), "{message}");
    }
}
