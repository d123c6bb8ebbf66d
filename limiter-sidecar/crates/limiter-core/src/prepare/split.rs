// SPDX-License-Identifier: Apache-2.0
//! One call as a call for each key: while a slot of a cluster moves, no node has all keys of a call together.

use super::StoreCall;

impl StoreCall {
    /// The same with a call for each key that has rules; all rules of a key stay together.
    #[must_use]
    pub fn by_key(&self) -> Vec<Self> {
        let part = |key| Self { keys: vec![key], plan: Vec::new(), checks: Vec::new() };
        let mut parts: Vec<Self> = self.keys.iter().copied().map(part).collect();
        for (place, rule) in self.rules() {
            // Keys are counted from 1.
            if let [kind, number, rest @ ..] = rule
                && let Some(part) = usize::from(*number).checked_sub(1).and_then(|key| parts.get_mut(key))
            {
                part.plan.extend([*kind, 1]);
                part.plan.extend(rest);
                part.checks.push(place);
            }
        }
        parts.retain(|part| !part.checks.is_empty());
        parts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::samples::{get, policy, rule, ruleset};

    #[test]
    fn each_key_has_a_call_of_its_own_as_if_it_had_been_asked_alone() {
        let calendar = json!({"algorithm": "FixedWindow", "requests": 9, "calendar": "Day", "timeZone": "UTC"});
        let rules = json!([rule(json!({"limit": calendar})), rule(json!({"name": "other"}))]);
        let policies = ["team/a", "team/b"].map(|id| policy(id, rules.clone(), json!({})));
        let ruleset = ruleset(json!(policies), json!([]));
        let prepared = get("/", &[("x-api-key", "k1")]).prepare(&ruleset);
        let calls = prepared.store_calls(None);
        let first = calls[0].keys[0];
        let alone = prepared.store_calls(Some(&|key| u16::from(*key != first)));
        assert_eq!((1, 2), (calls.len(), alone.len()));
        assert_eq!(alone, calls[0].by_key());
        assert_eq!(vec![alone[1].clone()], alone[1].by_key());
    }

    #[test]
    fn a_key_of_which_nothing_was_charged_has_none() {
        let policies = ["team/a", "team/b"].map(|id| policy(id, json!([rule(json!({}))]), json!({})));
        let ruleset = ruleset(json!(policies), json!([]));
        let prepared = get("/", &[("x-api-key", "k1")]).prepare(&ruleset);
        let mut call = prepared.store_calls(None).remove(0);
        call.checks.pop();
        call.plan.truncate(43);
        let parts = call.by_key();
        assert_eq!(vec![vec![call.keys[0]]], parts.iter().map(|part| part.keys.clone()).collect::<Vec<_>>());
    }
}
