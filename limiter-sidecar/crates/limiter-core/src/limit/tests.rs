// SPDX-License-Identifier: Apache-2.0
use super::*;

const SECOND: u64 = 1_000_000;

#[test]
fn rates_that_are_no_whole_interval_stay_exact() {
    let cases = [
        ((100, SECOND, 200), (10_000, 1, 2_000_000)),
        ((7, SECOND, 7), (1_000_000, 7, 7_000_000)),
        ((333, SECOND, 999), (1_000_000, 333, 999_000_000)),
        ((300_000, SECOND, 300_000), (10, 3, 3_000_000)),
        ((1, 3 * 86_400 * SECOND, 1), (259_200_000_000, 1, 259_200_000_000)),
    ];
    for ((requests, period_us, burst), expected) in cases {
        let limit = Limit::new(requests, period_us, burst).unwrap();
        assert_eq!(expected, (limit.weight(), limit.drain_per_us(), limit.capacity()));
        // L units per µs over p units per token are `requests` tokens per period.
        assert_eq!(limit.drain_per_us() * period_us, limit.weight() * requests);
    }
}

#[test]
fn numbers_out_of_range_name_their_member() {
    let cases = [
        ((0, SECOND, 1), "requests"),
        ((MAX_TOKENS + 1, SECOND, 1), "requests"),
        ((1, 999, 1), "periodUs"),
        ((1, SECOND, 0), "burst"),
        ((1, SECOND, MAX_TOKENS + 1), "burst"),
        // 10^12 tokens of 10^6 units are beyond 2^53.
        ((1, SECOND, MAX_TOKENS), "burst"),
        ((7, u64::MAX, 2), "burst"),
    ];
    for ((requests, period_us, burst), member) in cases {
        assert_eq!(member, Limit::new(requests, period_us, burst).unwrap_err().0);
    }
}

#[test]
fn the_largest_bucket_is_accepted_and_one_more_token_is_not() {
    let most = MAX_EXACT / SECOND;
    assert!(Limit::new(1, SECOND, most).is_ok());
    assert!(Limit::new(1, SECOND, most + 1).unwrap_err().1.contains(&format!("at most {most}")));
}

#[test]
fn a_replaced_limit_keeps_what_is_not_named() {
    let limit = Limit::new(100, SECOND, 200).unwrap();
    let by = SetLimitDoc { requests: Some(500), period_us: None, burst: None };
    assert_eq!(Limit::new(500, SECOND, 200), limit.replaced(by));
}

#[test]
fn the_window_is_the_time_to_refill_the_burst_in_whole_seconds() {
    let cases =
        [((100, SECOND, 200), ";q=200;w=2"), ((100, SECOND, 201), ";q=201;w=3"), ((1000, SECOND, 1), ";q=1;w=1")];
    for ((requests, period_us, burst), parameters) in cases {
        assert_eq!(parameters, Limit::new(requests, period_us, burst).unwrap().policy_parameters());
    }
}

#[test]
fn a_token_comes_back_after_a_second_at_least() {
    assert_eq!(1, Limit::new(100, SECOND, 200).unwrap().token_s());
    assert_eq!(6, Limit::new(10, 60 * SECOND, 10).unwrap().token_s());
    assert_eq!(9, Limit::new(7, 60 * SECOND, 7).unwrap().token_s());
}

#[test]
fn people_read_the_limit_in_the_largest_whole_unit() {
    let cases = [
        ((100, SECOND, 200), "100 requests per 1 s with a burst of 200"),
        ((5, 60 * SECOND, 5), "5 requests per 60 s"),
        ((1, 250_000, 1), "1 request per 250 ms"),
        ((1, 1_500, 2), "1 request per 1500 µs with a burst of 2"),
    ];
    for ((requests, period_us, burst), text) in cases {
        assert_eq!(text, Limit::new(requests, period_us, burst).unwrap().to_string());
    }
}

#[test]
fn a_cost_that_no_bucket_holds_saturates_above_every_capacity() {
    let limit = Limit::new(7, SECOND, 7).unwrap();
    assert_eq!(3_000_000, limit.increment(3));
    assert!(limit.increment(u64::MAX) > MAX_EXACT);
}
