// SPDX-License-Identifier: Apache-2.0
//! Runs conformance vectors through [`crate::bucket`]: JSON in, JSON out.
//!
//! In: `{"steps": [{"now_us": int, "rules": [{"id", "p", "l", "capacity", "increment", "enforcing", "key"?}]}]}`, where `id`
//! is a text of 8 bytes and `key` (default empty) names the bucket string. Out: `{"replies": [[int, …]]}`, each the script's flat list.
//! The strings live on across the steps and never expire.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bucket::{Buckets, Charge};
use crate::limit::MAX_EXACT;

/// A vector that cannot be run.
#[derive(Debug, Error)]
pub enum EvaluateError {
    /// Not of the shape above.
    #[error("{path}: {message}")]
    Invalid {
        /// Where.
        path: String,
        /// What is wrong.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    now_us: u64,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    key: String,
    id: String,
    p: u64,
    l: u64,
    capacity: u64,
    increment: u64,
    enforcing: bool,
}

#[derive(Serialize)]
struct Replies {
    replies: Vec<Vec<i64>>,
}

/// Runs a vector.
///
/// # Errors
/// [`EvaluateError`] with the path of what is wrong.
pub fn evaluate(vector: &[u8]) -> Result<String, EvaluateError> {
    let mut json = serde_json::Deserializer::from_slice(vector);
    let vector: Vector = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| invalid(error.path().to_string(), error.inner().to_string()))?;
    let mut buckets = Buckets::default();
    let mut replies = Vec::with_capacity(vector.steps.len());
    for (place, step) in vector.steps.iter().enumerate() {
        let charges = step.rules.iter().enumerate().map(|(rule_place, rule)| {
            charge(rule).map_err(|message| invalid(format!("steps[{place}].rules[{rule_place}]"), message))
        });
        let charges = charges.collect::<Result<Vec<_>, _>>()?;
        replies.push(buckets.decide(step.now_us, &charges).encode());
    }
    serde_json::to_string(&Replies { replies }).map_err(|error| invalid(String::new(), error.to_string()))
}

fn charge(rule: &Rule) -> Result<Charge<&str>, String> {
    if rule.p == 0 || rule.l == 0 {
        return Err("p and l must be above 0".to_owned());
    }
    if [rule.p, rule.l, rule.capacity].iter().any(|number| *number > MAX_EXACT) {
        return Err(format!("p, l and capacity must be at most {MAX_EXACT}"));
    }
    let id = rule.id.as_bytes().try_into().map_err(|_| format!("id must have 8 bytes, not {}", rule.id.len()))?;
    Ok(Charge {
        key: &*rule.key,
        id,
        weight: rule.p,
        drain_per_us: rule.l,
        capacity: rule.capacity,
        increment: rule.increment,
        enforcing: rule.enforcing,
    })
}

fn invalid(path: String, message: String) -> EvaluateError {
    EvaluateError::Invalid { path, message }
}

#[cfg(test)]
mod tests;
