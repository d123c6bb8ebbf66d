// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;

fn rule(changes: Value) -> Value {
    crate::samples::with(
        json!({"id": "burst...", "p": 200_000, "l": 1, "capacity": 1_000_000, "increment": 200_000, "enforcing": true}),
        changes,
    )
}

fn replies(steps: &Value) -> Value {
    let vector = serde_json::to_vec(&json!({"steps": steps})).unwrap();
    serde_json::from_str::<Value>(&evaluate(&vector).unwrap()).unwrap()["replies"].clone()
}

#[test]
fn the_state_lives_on_across_the_steps() {
    let dear = json!({"increment": 1_000_000});
    let steps = json!([
        {"now_us": 1_000_000, "rules": [rule(dear)]},
        {"now_us": 1_000_000, "rules": [rule(json!({}))]},
        {"now_us": 1_200_000, "rules": [rule(json!({}))]},
    ]);
    let expected = json!([[1, 1, 0, 0, 1_000_000], [0, 0, 0, 200_000, 1_000_000], [1, 1, 0, 0, 1_000_000]]);
    assert_eq!(expected, replies(&steps));
}

#[test]
fn keys_are_separate_strings() {
    let steps = json!([{"now_us": 1, "rules": [rule(json!({})), rule(json!({"key": "other", "increment": 0}))]}]);
    assert_eq!(json!([[1, 1, 4, 0, 200_000, 1, 5, 0, 0]]), replies(&steps));
}

#[test]
fn what_is_no_vector_is_refused_with_its_path() {
    let cases = [
        (json!({}), "."),
        (json!({"steps": [{"now_us": 0}]}), "steps[0]"),
        (json!({"steps": [{"now_us": -1, "rules": []}]}), "steps[0].now_us"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"id": "long"}))]}]}), "steps[0].rules[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"p": 0}))]}]}), "steps[0].rules[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"l": 1_u64 << 53}))]}]}), "steps[0].rules[0]"),
        (json!({"steps": [{"now_us": 0, "rules": [rule(json!({"colour": 1}))]}]}), "steps[0].rules[0]"),
    ];
    for (vector, path) in cases {
        let message = evaluate(&serde_json::to_vec(&vector).unwrap()).unwrap_err().to_string();
        assert!(message.starts_with(path), "{message}");
    }
}
