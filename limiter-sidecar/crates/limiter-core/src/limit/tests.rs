// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;
use crate::ruleset::SetLimitDoc;
use crate::samples::{START_US, with};

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

fn read(doc: Value) -> Result<Limit, Wrong> {
    Limit::from_doc(&serde_json::from_value(doc).unwrap())
}

fn token_bucket(requests: u64, period_us: u64, burst: u64) -> Value {
    json!({"algorithm": "TokenBucket", "requests": requests, "periodUs": period_us, "burst": burst})
}

fn leaky_bucket(requests: u64, period_us: u64, queue: u64, max_delay_us: u64) -> Value {
    json!({
        "algorithm": "LeakyBucket", "requests": requests, "periodUs": period_us, "queue": queue,
        "maxDelayUs": max_delay_us
    })
}

fn window(algorithm: &str, requests: u64, period_us: u64) -> Value {
    json!({"algorithm": algorithm, "requests": requests, "periodUs": period_us})
}

fn calendar(unit: &str, zone: &str) -> Value {
    json!({"algorithm": "FixedWindow", "requests": 9, "calendar": unit, "timeZone": zone})
}

#[test]
fn rates_that_are_no_whole_interval_stay_exact() {
    let cases = [
        ((100, SECOND, 200), (10_000, 1, 2_000_000)),
        ((7, SECOND, 7), (1_000_000, 7, 7_000_000)),
        ((333, SECOND, 999), (1_000_000, 333, 999_000_000)),
        ((300_000, SECOND, 300_000), (10, 3, 3_000_000)),
        ((1, 3 * DAY, 1), (259_200_000_000, 1, 259_200_000_000)),
    ];
    for ((requests, period_us, burst), (weight, drain_per_us, capacity)) in cases {
        let demand = read(token_bucket(requests, period_us, burst)).unwrap().demand(3, 0);
        assert_eq!([3 * weight, capacity, weight, drain_per_us], demand.numbers);
        // L units per µs over p units per token are `requests` tokens per period.
        assert_eq!(drain_per_us * period_us, weight * requests);
    }
}

#[test]
fn each_algorithm_has_its_numbers_in_the_plan() {
    let cases = [
        (token_bucket(10, SECOND, 20), Kind::TokenBucket, [200_000, 2_000_000, 100_000, 1]),
        // Two wait, as long as they may: 200 ms of the 300 that the queue is worth.
        (leaky_bucket(10, SECOND, 3, 200_000), Kind::LeakyBucket, [200_000, 300_000, 100_000, 1]),
        (leaky_bucket(10, SECOND, 3, SECOND), Kind::LeakyBucket, [200_000, 400_000, 100_000, 1]),
        (leaky_bucket(10, SECOND, 0, 0), Kind::LeakyBucket, [200_000, 100_000, 100_000, 1]),
        (window("FixedWindow", 9, SECOND), Kind::FixedWindow, [2, 9, SECOND, 0]),
        (calendar("Day", "UTC"), Kind::CalendarWindow, [2, 9, 0, 0]),
        (window("SlidingWindowCounter", 9, SECOND), Kind::SlidingWindowCounter, [2, 9, SECOND, 0]),
        (window("SlidingWindowLog", 9, SECOND), Kind::SlidingWindowLog, [2, 9, SECOND, 0]),
    ];
    for (doc, kind, numbers) in cases {
        let demand = read(doc).unwrap().demand(2, START_US);
        let edges = [START_US - DAY, START_US, START_US + DAY, START_US + 2 * DAY];
        let expected = if kind == Kind::CalendarWindow { edges } else { [0; 4] };
        assert_eq!((kind, numbers, expected), (demand.kind, demand.numbers, demand.edges));
    }
}

#[test]
fn numbers_out_of_range_name_their_member() {
    let cases = [
        (token_bucket(0, SECOND, 1), "requests"),
        (token_bucket(MAX_TOKENS + 1, SECOND, 1), "requests"),
        (token_bucket(1, 999, 1), "periodUs"),
        (token_bucket(1, SECOND, 0), "burst"),
        (token_bucket(1, SECOND, MAX_TOKENS + 1), "burst"),
        // 10^12 tokens of 10^6 units are beyond 2^53.
        (token_bucket(1, SECOND, MAX_TOKENS), "burst"),
        (token_bucket(7, u64::MAX, 2), "burst"),
        (leaky_bucket(0, SECOND, 0, 0), "requests"),
        (leaky_bucket(1, SECOND, MAX_QUEUE + 1, 1), "queue"),
        (leaky_bucket(1, 400 * DAY, 1_000, 1), "queue"),
        (leaky_bucket(1, SECOND, 1, 0), "maxDelayUs"),
        (leaky_bucket(1, SECOND, 0, 1), "maxDelayUs"),
        (window("FixedWindow", 1, 999), "periodUs"),
        (window("FixedWindow", 1, MAX_EXACT + 1), "periodUs"),
        (json!({"algorithm": "FixedWindow", "requests": 1}), "periodUs"),
        (with(calendar("Day", "UTC"), json!({"periodUs": SECOND})), "periodUs"),
        (with(window("FixedWindow", 1, SECOND), json!({"timeZone": "UTC"})), "timeZone"),
        (json!({"algorithm": "FixedWindow", "requests": 1, "calendar": "Day"}), "timeZone"),
        (calendar("Day", "Europe/Atlantis"), "timeZone"),
        (window("SlidingWindowCounter", 1_000, 365 * DAY), "requests"),
        (window("SlidingWindowLog", MAX_LOG + 1, SECOND), "requests"),
        (window("SlidingWindowLog", 0, SECOND), "requests"),
    ];
    for (doc, member) in cases {
        assert_eq!(Some(member), read(doc.clone()).err().map(|(member, _)| member), "{doc}");
    }
}

#[test]
fn members_that_an_algorithm_does_not_have_are_refused() {
    for (doc, member) in [
        (window("FixedWindow", 1, SECOND), json!({"burst": 1})),
        (window("SlidingWindowLog", 1, SECOND), json!({"calendar": "Day"})),
        (token_bucket(1, SECOND, 1), json!({"queue": 1})),
        (leaky_bucket(1, SECOND, 0, 0), json!({"burst": 1})),
        (calendar("Day", "UTC"), json!({"calendar": "Year"})),
        (token_bucket(1, SECOND, 1), json!({"algorithm": "Guess"})),
    ] {
        assert!(serde_json::from_value::<LimitDoc>(with(doc, member.clone())).is_err(), "{member}");
    }
}

#[test]
fn the_largest_numbers_are_accepted_and_one_more_is_not() {
    let most = MAX_EXACT / SECOND;
    assert!(read(token_bucket(1, SECOND, most)).is_ok());
    assert!(read(token_bucket(1, SECOND, most + 1)).unwrap_err().1.contains(&format!("at most {most}")));
    let year = 365 * DAY;
    assert!(read(window("SlidingWindowCounter", MAX_EXACT / year, year)).is_ok());
    let (_, message) = read(window("SlidingWindowCounter", MAX_EXACT / year + 1, year)).unwrap_err();
    assert!(message.contains(&format!("at most {}", MAX_EXACT / year)), "{message}");
    assert!(read(leaky_bucket(1, SECOND, MAX_QUEUE, SECOND)).is_ok());
    assert!(read(leaky_bucket(1, 10_000 * SECOND, MAX_QUEUE, SECOND)).unwrap_err().1.contains("at most 900718"));
}

#[test]
fn the_largest_cost_is_what_can_ever_pass() {
    let cases = [
        (token_bucket(10, SECOND, 20), 20),
        (leaky_bucket(10, SECOND, 3, SECOND), MAX_QUEUE),
        // What is charged on top of a full queue must stay exact: 2^53 µs are 104,249 days.
        (leaky_bucket(1, 100 * DAY, 42, 42 * 100 * DAY), 1_000),
        (window("FixedWindow", 9, SECOND), 9),
        (calendar("Month", "UTC"), 9),
        (window("SlidingWindowLog", 9, SECOND), 9),
    ];
    for (doc, expected) in cases {
        assert_eq!(expected, read(doc.clone()).unwrap().largest_cost(), "{doc}");
    }
}

#[test]
fn a_replaced_limit_keeps_what_is_not_named() {
    let nothing = SetLimitDoc::default();
    let cases = [
        (
            token_bucket(100, SECOND, 200),
            SetLimitDoc { requests: Some(500), ..nothing },
            token_bucket(500, SECOND, 200),
        ),
        (
            leaky_bucket(10, SECOND, 3, 9),
            SetLimitDoc { queue: Some(4), max_delay_us: Some(8), ..nothing },
            leaky_bucket(10, SECOND, 4, 8),
        ),
        (
            window("FixedWindow", 9, SECOND),
            SetLimitDoc { period_us: Some(5 * SECOND), ..nothing },
            window("FixedWindow", 9, 5 * SECOND),
        ),
        (
            calendar("Day", "UTC"),
            SetLimitDoc { requests: Some(3), ..nothing },
            with(calendar("Day", "UTC"), json!({"requests": 3})),
        ),
    ];
    for (doc, by, expected) in cases {
        assert_eq!(read(expected), read(doc).unwrap().replaced(by));
    }
}

#[test]
fn a_number_that_the_algorithm_does_not_have_cannot_be_replaced() {
    let nothing = SetLimitDoc::default();
    let cases = [
        (window("FixedWindow", 9, SECOND), SetLimitDoc { burst: Some(1), ..nothing }, "burst"),
        (calendar("Day", "UTC"), SetLimitDoc { period_us: Some(SECOND), ..nothing }, "periodUs"),
        (token_bucket(1, SECOND, 1), SetLimitDoc { queue: Some(1), ..nothing }, "queue"),
        (token_bucket(1, SECOND, 1), SetLimitDoc { max_delay_us: Some(1), ..nothing }, "maxDelayUs"),
        (token_bucket(1, SECOND, 1), SetLimitDoc { burst: Some(0), ..nothing }, "burst"),
    ];
    for (doc, by, member) in cases {
        assert_eq!(member, read(doc).unwrap().replaced(by).unwrap_err().0);
    }
}

#[test]
fn a_multiplied_limit_is_rounded_down_but_never_to_nothing() {
    let cases = [
        (token_bucket(100, SECOND, 200), 2_500, token_bucket(250, SECOND, 500)),
        (token_bucket(3, SECOND, 1), 500, token_bucket(1, SECOND, 1)),
        (leaky_bucket(10, SECOND, 3, 9), 1_500, leaky_bucket(15, SECOND, 4, 9)),
        (leaky_bucket(10, SECOND, 3, 9), 100, leaky_bucket(1, SECOND, 0, 0)),
        (window("SlidingWindowLog", 9, SECOND), 2_000, window("SlidingWindowLog", 18, SECOND)),
        (calendar("Day", "UTC"), 3_000, with(calendar("Day", "UTC"), json!({"requests": 27}))),
    ];
    for (doc, factor_milli, expected) in cases {
        assert_eq!(read(expected), read(doc).unwrap().multiplied(factor_milli));
    }
}

#[test]
fn a_factor_out_of_range_or_a_product_beyond_the_algorithm_is_refused() {
    let limit = read(window("SlidingWindowLog", 9_000, SECOND)).unwrap();
    for (factor_milli, member) in [(0, "factorMilli"), (1_000_001, "factorMilli"), (2_000, "requests")] {
        assert_eq!(member, limit.multiplied(factor_milli).unwrap_err().0);
    }
    let huge = read(token_bucket(MAX_TOKENS, SECOND, 1)).unwrap();
    assert_eq!("requests", huge.multiplied(1_000_000).unwrap_err().0);
}

#[test]
fn the_window_is_the_time_in_which_the_quota_comes_back_in_whole_seconds() {
    let cases = [
        (token_bucket(100, SECOND, 200), ";q=200;w=2"),
        (token_bucket(100, SECOND, 201), ";q=201;w=3"),
        (token_bucket(1000, SECOND, 1), ";q=1;w=1"),
        (leaky_bucket(10, SECOND, 24, 9 * SECOND), ";q=25;w=3"),
        (leaky_bucket(10, SECOND, 24, SECOND), ";q=11;w=2"),
        (window("FixedWindow", 9, 1_500_000), ";q=9;w=2"),
        (window("SlidingWindowCounter", 9, 60 * SECOND), ";q=9;w=60"),
        (window("SlidingWindowLog", 9, 1_000), ";q=9;w=1"),
        (calendar("Day", "UTC"), ";q=9;w=86400"),
        (calendar("Month", "UTC"), ";q=9;w=2678400"),
        (calendar("Week", "Europe/Berlin"), ";q=9;w=604800"),
    ];
    for (doc, expected) in cases {
        let mut field = String::new();
        read(doc).unwrap().append_policy_parameters(START_US, &mut field);
        assert_eq!(expected, field);
    }
}

#[test]
fn a_token_comes_back_after_a_second_at_least() {
    let cases = [
        (token_bucket(100, SECOND, 200), Some(1)),
        (token_bucket(10, 60 * SECOND, 10), Some(6)),
        (token_bucket(7, 60 * SECOND, 7), Some(9)),
        (leaky_bucket(7, 60 * SECOND, 0, 0), Some(9)),
        (window("FixedWindow", 9, SECOND), None),
    ];
    for (doc, expected) in cases {
        assert_eq!(expected, read(doc).unwrap().token_s());
    }
}

#[test]
fn people_read_the_limit_in_the_largest_whole_unit() {
    let cases = [
        (token_bucket(100, SECOND, 200), "100 requests per 1 s with a burst of 200"),
        (token_bucket(5, 60 * SECOND, 5), "5 requests per 60 s"),
        (token_bucket(1, 250_000, 1), "1 request per 250 ms"),
        (token_bucket(1, 1_500, 2), "1 request per 1500 µs with a burst of 2"),
        (leaky_bucket(10, SECOND, 3, SECOND), "10 requests per 1 s, evenly spaced"),
        (window("FixedWindow", 9, 3_600 * SECOND), "9 requests per 3600 s"),
        (window("SlidingWindowCounter", 9, SECOND), "9 requests per 1 s"),
        (window("SlidingWindowLog", 1, SECOND), "1 request per 1 s"),
        (calendar("Day", "Europe/Berlin"), "9 requests per day in Europe/Berlin"),
        (calendar("Month", "UTC"), "9 requests per month in UTC"),
    ];
    for (doc, text) in cases {
        assert_eq!(text, read(doc).unwrap().to_string());
    }
}

#[test]
fn a_limit_is_shown_as_the_document_has_it() {
    for doc in [token_bucket(7, SECOND, 9), leaky_bucket(1, SECOND, 2, 3), calendar("Week", "UTC")] {
        assert_eq!(doc, serde_json::to_value(read(doc.clone()).unwrap().doc()).unwrap());
    }
}

#[test]
fn a_cost_that_no_bucket_holds_saturates_above_every_capacity() {
    let limit = read(token_bucket(7, SECOND, 7)).unwrap();
    assert_eq!(3_000_000, limit.demand(3, 0).numbers[0]);
    assert!(limit.demand(u64::MAX, 0).numbers[0] > MAX_EXACT);
}
