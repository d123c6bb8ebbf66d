// SPDX-License-Identifier: Apache-2.0
//! Runs conformance vectors through [`crate::counters`], and through the bounded counters of [`crate::local`] that a limiter
//! has in memory, which must say the same: JSON in, JSON out.
//!
//! In: `{"steps": [{"now_us", "rules": [{"key", "id", "kind", "enforcing", "numbers"}]}]}`, where `id` is a text of 8 bytes, `kind`
//! the plan's kind byte and `numbers` its four numbers, for kind 6 followed by the four edges. A step with `"refund": true` and
//! `"charged_at_us"` gives back what its rules charged. Out: `{"replies": [[int, …]]}`, each the script's reply; a refund's is
//! `[1]`. The counters live on across the steps and never expire. The bounded ones forget what has ended, which changes no
//! reply while the clock goes forward.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::counters::{Charge, Counters};
use crate::limit::{Demand, Kind, MAX_EXACT};
use crate::local::LocalCounters;
use crate::reply::Answer;
use crate::subject::RuleId;

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
    #[serde(default)]
    refund: bool,
    charged_at_us: Option<u64>,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    key: String,
    id: String,
    kind: u8,
    enforcing: bool,
    numbers: Vec<u64>,
}

#[derive(Serialize)]
struct Replies {
    replies: Vec<Vec<i64>>,
}

/// A vector's key, and the id of a rule that has a string of its own.
type Key<'v> = (&'v str, Option<RuleId>);

/// Unbounded counters, and bounded ones beside them.
#[derive(Default)]
struct Both<'v> {
    counters: Counters<Key<'v>>,
    bounded: LocalCounters<Key<'v>>,
    latest_us: u64,
    went_back: bool,
}

impl<'v> Both<'v> {
    fn decide(&mut self, now_us: u64, charges: &[Charge<Key<'v>>]) -> Result<Answer, String> {
        self.notice(now_us);
        let (answer, bounded) = (self.counters.decide(now_us, charges), self.bounded.decide(now_us, charges));
        if self.went_back || bounded == answer {
            return Ok(answer);
        }
        Err(format!("the bounded counters say {:?} instead of {:?}", bounded.numbers(), answer.numbers()))
    }

    fn refund(&mut self, now_us: u64, charged_at_us: u64, charges: &[Charge<Key<'v>>]) {
        self.notice(now_us);
        self.counters.refund(now_us, charged_at_us, charges);
        self.bounded.refund(now_us, charged_at_us, charges);
    }

    fn notice(&mut self, now_us: u64) {
        self.went_back |= now_us < self.latest_us;
        self.latest_us = self.latest_us.max(now_us);
    }
}

/// Runs a vector.
///
/// # Errors
/// [`EvaluateError`] with the path of what is wrong.
pub fn evaluate(vector: &[u8]) -> Result<String, EvaluateError> {
    let mut json = serde_json::Deserializer::from_slice(vector);
    let vector: Vector = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| invalid(error.path().to_string(), error.inner().to_string()))?;
    let mut counters = Both::default();
    let mut replies = Vec::with_capacity(vector.steps.len());
    for (place, step) in vector.steps.iter().enumerate() {
        let charges = step.rules.iter().enumerate().map(|(rule_place, rule)| {
            charge(rule).map_err(|message| invalid(format!("steps[{place}].rules[{rule_place}]"), message))
        });
        let charges = charges.collect::<Result<Vec<_>, _>>()?;
        replies.push(match (step.refund, step.charged_at_us) {
            (false, None) => {
                let answer = counters.decide(step.now_us, &charges);
                answer.map_err(|message| invalid(format!("steps[{place}]"), message))?.numbers()
            }
            (true, Some(charged_at_us)) => {
                counters.refund(step.now_us, charged_at_us, &charges);
                vec![1]
            }
            _ => return Err(invalid(format!("steps[{place}]"), "refund and charged_at_us go together".to_owned())),
        });
    }
    serde_json::to_string(&Replies { replies }).map_err(|error| invalid(String::new(), error.to_string()))
}

fn charge(rule: &Rule) -> Result<Charge<Key<'_>>, String> {
    let kind = match rule.kind {
        1 => Kind::TokenBucket,
        2 => Kind::LeakyBucket,
        3 => Kind::FixedWindow,
        4 => Kind::SlidingWindowCounter,
        5 => Kind::SlidingWindowLog,
        6 => Kind::CalendarWindow,
        other => return Err(format!("{other} is no kind")),
    };
    let (numbers, edges) = match (kind, rule.numbers.as_slice()) {
        (Kind::CalendarWindow, [a, b, c, d, edges @ ..]) => {
            ([*a, *b, *c, *d], edges.try_into().map_err(|_| "kind 6 has eight numbers")?)
        }
        (_, [a, b, c, d]) => ([*a, *b, *c, *d], [0; 4]),
        _ => return Err("there must be four numbers".to_owned()),
    };
    let id = rule.id.as_bytes().try_into().map_err(|_| format!("id must have 8 bytes, not {}", rule.id.len()))?;
    let demand = Demand { kind, numbers, edges };
    check(&demand)?;
    let own = (kind == Kind::SlidingWindowLog).then_some(id);
    Ok(Charge { key: (&*rule.key, own), id, enforcing: rule.enforcing, demand })
}

/// Numbers that no limit comes to would overflow or divide by zero.
fn check(demand: &Demand) -> Result<(), String> {
    let [_, most, third, fourth] = demand.numbers;
    if demand.numbers.iter().skip(1).chain(&demand.edges).any(|number| *number > MAX_EXACT) {
        return Err(format!("all numbers but the first must be at most {MAX_EXACT}"));
    }
    match demand.kind {
        Kind::TokenBucket | Kind::LeakyBucket if third == 0 || fourth == 0 => Err("p and l must be above 0".to_owned()),
        Kind::FixedWindow | Kind::SlidingWindowCounter | Kind::SlidingWindowLog if third == 0 => {
            Err("the period must be above 0".to_owned())
        }
        Kind::SlidingWindowCounter if most.checked_mul(third).is_none_or(|product| product > MAX_EXACT) => {
            Err(format!("requests times period must be at most {MAX_EXACT}"))
        }
        _ => Ok(()),
    }
}

fn invalid(path: String, message: String) -> EvaluateError {
    EvaluateError::Invalid { path, message }
}

#[cfg(test)]
mod tests;
