// SPDX-License-Identifier: Apache-2.0
use super::*;

/// D01.
#[test]
fn a_bucket_in_use_is_not_refilled_at_the_end_of_its_period() {
    let mut subject = Subject::new(token_bucket(3, SECOND, 3));
    let admitted: u64 = (0..100).map(|step| subject.admitted(step * 100_000, 1)).sum();
    assert!(admitted <= 3 + 3 * 10, "{admitted} were admitted");
}

/// D02.
#[test]
fn an_older_clock_refills_nothing_and_rewinds_nothing() {
    let mut subject = Subject::new(token_bucket(5, SECOND, 5));
    assert_eq!(5, subject.admitted(0, 5));
    assert_eq!(4, subject.admitted(SECOND, 4));
    assert_eq!(1, subject.admitted(0, 3));
    assert_eq!(0, subject.admitted(SECOND, 5));
}

/// D03.
#[test]
fn a_cost_above_the_burst_can_never_pass_and_takes_nothing() {
    let mut subject = Subject::new(token_bucket(1, SECOND, 5));
    let refused = subject.take(0, 10);
    assert_eq!(CheckReply { ok: false, remaining: 5, wait: Wait::Never, reset_us: 0 }, refused);
    assert_eq!(None, subject.counters.ends_us(&0));
    assert_eq!(4, subject.take(0, 1).remaining);
}

/// D04.
#[test]
fn a_refused_heavy_request_burns_nothing() {
    let mut subject = Subject::new(token_bucket(10, 60 * SECOND, 10));
    assert_eq!(2, subject.take(0, 8).remaining);
    let refused = subject.take(0, 5);
    assert_eq!((false, 2, Wait::Us(18 * SECOND)), (refused.ok, refused.remaining, refused.wait));
    assert_eq!(1, subject.take(0, 1).remaining);
}

/// D07.
#[test]
fn calls_in_one_microsecond_count_each() {
    assert_eq!(5, Subject::new(token_bucket(5, 60 * SECOND, 5)).admitted(0, 20));
}

/// D12.
#[test]
fn high_rates_are_limited_like_low_ones() {
    let rates = [(1000, 60 * SECOND), (6000, SECOND), (8000, SECOND), (100_000, SECOND), (300_000, SECOND)];
    for (requests, period_us) in rates {
        for burst in [requests / 10, 1] {
            let mut subject = Subject::new(token_bucket(requests, period_us, burst));
            // Three times the allowance of a tenth of a second, evenly spread over it.
            let calls = 3 * (burst + requests / 10);
            let time_us = |call: u64| call * SECOND / 10 / calls;
            let admitted: u64 = (0..calls).map(|call| subject.admitted(time_us(call), 1)).sum();
            let allowance = burst + requests * SECOND / 10 / period_us + 1;
            assert!(admitted <= allowance, "{admitted} of {allowance} at {requests} per {period_us} µs, burst {burst}");
            assert!(subject.counters.ends_us(&0).is_some());
        }
    }
}

/// D15.
#[test]
fn a_wait_below_a_second_is_told_and_is_no_pass() {
    let mut subject = Subject::new(token_bucket(1, SECOND, 1));
    assert!(subject.take(0, 1).ok);
    for (now_us, wait_us) in [(1_000, 999_000), (100_000, 900_000), (800_000, 200_000), (999_999, 1)] {
        let refused = subject.take(now_us, 1);
        assert_eq!((false, Wait::Us(wait_us)), (refused.ok, refused.wait));
    }
    assert!(subject.take(SECOND, 1).ok);
}

/// D21.
#[test]
fn remaining_counts_this_request_and_stops_at_zero() {
    let mut subject = Subject::new(token_bucket(3, 60 * SECOND, 3));
    let remaining: Vec<u64> = (0..5).map(|_| subject.take(0, 1).remaining).collect();
    assert_eq!(vec![2, 1, 0, 0, 0], remaining);
}

#[test]
fn a_free_request_writes_nothing() {
    let mut subject = Subject::new(token_bucket(5, SECOND, 5));
    assert_eq!(5, subject.take(0, 0).remaining);
    assert_eq!(None, subject.counters.ends_us(&0));
}
