// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;
use crate::samples::{START_US, get, limit, one_policy, rule};

const SECOND: u64 = 1_000_000;

/// The charges of a request with this API key, at five requests per second.
fn charges(key: &str, limit: &serde_json::Value) -> Vec<Charge<BucketKey>> {
    let ruleset = one_policy(json!([rule(json!({"scope": "Instance", "limit": limit}))]));
    get("/", &[("x-api-key", key)]).prepare(&ruleset).local_call().charges
}

fn bucket() -> serde_json::Value {
    limit(5, SECOND, 5)
}

fn log(requests: u64) -> serde_json::Value {
    json!({"algorithm": "SlidingWindowLog", "requests": requests, "periodUs": 60 * SECOND})
}

fn remaining(counters: &mut LocalCounters, now_us: u64, key: &str, limit: &serde_json::Value) -> u64 {
    match counters.decide(START_US + now_us, &charges(key, limit)) {
        Answer::Decided(reply) => reply.checks[0].remaining,
        Answer::Stale { now_us } => panic!("the edges do not hold {now_us}"),
    }
}

#[test]
fn each_subject_has_its_own_count() {
    let mut counters = LocalCounters::default();
    let left: Vec<u64> = ["a", "b", "a"].map(|key| remaining(&mut counters, 0, key, &bucket())).into();
    assert_eq!((vec![4, 4, 3], 2), (left, counters.len()));
}

#[test]
fn beyond_the_bound_the_least_recently_used_starts_afresh_and_is_counted() {
    let mut counters = LocalCounters::new(Bounds { subjects: 2, ..Bounds::default() });
    for key in ["a", "b", "a", "c"] {
        remaining(&mut counters, 0, key, &bucket());
    }
    assert_eq!((2, 1), (counters.len(), counters.evictions()));
    assert_eq!(2, remaining(&mut counters, 0, "a", &bucket()));
    assert_eq!(4, remaining(&mut counters, 0, "b", &bucket()));
}

#[test]
fn whoever_is_refused_is_in_use_too() {
    let mut counters = LocalCounters::new(Bounds { subjects: 2, ..Bounds::default() });
    let once = limit(1, 60 * SECOND, 1);
    for key in ["a", "b", "a", "c"] {
        remaining(&mut counters, 0, key, &once);
    }
    let Answer::Decided(reply) = counters.decide(START_US, &charges("a", &once)) else { panic!("no edges") };
    assert!(!reply.allowed);
}

#[test]
fn what_has_ended_is_dropped_and_nobody_is_evicted_for_it() {
    let mut counters = LocalCounters::new(Bounds { subjects: 2, ..Bounds::default() });
    for (now_us, key) in [(0, "a"), (0, "b"), (SECOND, "c"), (SECOND, "d")] {
        remaining(&mut counters, now_us, key, &bucket());
    }
    assert_eq!((2, 0), (counters.len(), counters.evictions()));
    remaining(&mut counters, 9 * SECOND, "e", &bucket());
    assert_eq!(1, counters.len());
}

#[test]
fn what_ends_all_at_once_is_freed_by_many_calls_and_counts_for_nothing_meanwhile() {
    let mut counters = LocalCounters::new(Bounds { subjects: 201, ..Bounds::default() });
    for number in 0..200 {
        remaining(&mut counters, 0, &format!("client-{number}"), &bucket());
    }
    assert_eq!(4, remaining(&mut counters, SECOND, "first", &bucket()));
    assert_eq!(201 - FREED_AT_ONCE, counters.len());
    assert_eq!(4, remaining(&mut counters, SECOND, "client-199", &bucket()));
    for number in 0..3 {
        remaining(&mut counters, SECOND, &format!("later-{number}"), &bucket());
    }
    assert_eq!((5, 0), (counters.len(), counters.evictions()));
}

#[test]
fn what_has_ended_makes_room_before_anybody_is_evicted() {
    let mut counters = LocalCounters::new(Bounds { subjects: 1, ..Bounds::default() });
    remaining(&mut counters, 0, "a", &bucket());
    remaining(&mut counters, SECOND, "b", &bucket());
    assert_eq!((1, 0), (counters.len(), counters.evictions()));
}

#[test]
fn long_logs_are_bounded_together() {
    let mut counters = LocalCounters::new(Bounds { subjects: 100, logged: 10 });
    for _ in 0..6 {
        remaining(&mut counters, 0, "a", &log(9));
    }
    for _ in 0..6 {
        remaining(&mut counters, 0, "b", &log(9));
    }
    assert_eq!((1, 1), (counters.len(), counters.evictions()));
    assert_eq!(2, remaining(&mut counters, 0, "b", &log(9)));
    assert_eq!(8, remaining(&mut counters, 0, "a", &log(9)));
}

#[test]
fn what_is_given_back_whole_is_forgotten() {
    let mut counters = LocalCounters::default();
    remaining(&mut counters, 0, "a", &bucket());
    counters.refund(START_US, START_US, &charges("a", &bucket()));
    assert!(counters.is_empty());
    assert_eq!(4, remaining(&mut counters, 0, "a", &bucket()));
}

#[test]
fn what_is_refused_from_the_start_is_not_remembered() {
    let mut counters = LocalCounters::default();
    let mut dear = charges("a", &bucket());
    dear[0].demand.numbers[0] *= 9;
    assert!(matches!(counters.decide(START_US, &dear), Answer::Decided(reply) if !reply.allowed));
    assert!(counters.is_empty());
}

/// D02.
#[test]
fn a_clock_that_goes_back_by_days_stays_in_the_calendars_window_of_the_last_charge() {
    let day = json!({"algorithm": "FixedWindow", "requests": 5, "calendar": "Day", "timeZone": "UTC"});
    let ruleset = one_policy(json!([rule(json!({"scope": "Instance", "limit": day}))]));
    let mut counters = LocalCounters::default();
    let mut remaining = |now_us| {
        let mut prepared = get("/", &[("x-api-key", "k1")]).prepare(&ruleset);
        prepared.set_clock(now_us);
        let Answer::Decided(reply) = counters.decide(now_us, &prepared.local_call().charges) else { panic!("stale") };
        reply.checks[0].remaining
    };
    let hours = |hours: u64| START_US + hours * 3_600 * SECOND;
    assert_eq!(vec![4, 3, 2], [hours(73), hours(73), hours(49)].map(&mut remaining).to_vec());
    assert_eq!(1, remaining(hours(0)));
}
