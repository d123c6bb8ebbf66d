// SPDX-License-Identifier: Apache-2.0
mod changed_limit;

use proptest::prelude::*;

use super::*;
use crate::limit::Limit;
use crate::samples::START_US;

const SECOND: u64 = 1_000_000;
const RECORD_BYTES: usize = 41;

fn limit(requests: u64, period_us: u64, burst: u64) -> Limit {
    Limit::new(requests, period_us, burst).unwrap()
}

fn charge(rule: u8, limit: &Limit, cost: u64) -> Charge<u8> {
    Charge {
        key: 0,
        id: [rule; 8],
        weight: limit.weight(),
        drain_per_us: limit.drain_per_us(),
        capacity: limit.capacity(),
        increment: limit.increment(cost),
        enforcing: true,
    }
}

fn shadow(charge: Charge<u8>) -> Charge<u8> {
    Charge { enforcing: false, ..charge }
}

/// One subject's bucket under one rule.
struct Bucket {
    limit: Limit,
    buckets: Buckets<u8>,
}

impl Bucket {
    fn new(limit: Limit) -> Self {
        Self { limit, buckets: Buckets::default() }
    }

    fn take(&mut self, now_us: u64, cost: u64) -> CheckReply {
        self.buckets.decide(START_US + now_us, &[charge(1, &self.limit, cost)]).checks[0]
    }

    fn admitted(&mut self, now_us: u64, requests: u64) -> u64 {
        (0..requests).filter(|_| self.take(now_us, 1).ok).count().try_into().unwrap()
    }
}

/// D01.
#[test]
fn a_bucket_in_use_is_not_refilled_at_the_end_of_its_period() {
    let mut bucket = Bucket::new(limit(3, SECOND, 3));
    let admitted: u64 = (0..100).map(|step| bucket.admitted(step * 100_000, 1)).sum();
    assert!(admitted <= 3 + 3 * 10, "{admitted} were admitted");
}

/// D02.
#[test]
fn an_older_clock_refills_nothing_and_rewinds_nothing() {
    let mut bucket = Bucket::new(limit(5, SECOND, 5));
    assert_eq!(5, bucket.admitted(0, 5));
    assert_eq!(4, bucket.admitted(SECOND, 4));
    assert_eq!(1, bucket.admitted(0, 3));
    assert_eq!(0, bucket.admitted(SECOND, 5));
}

/// D03.
#[test]
fn a_cost_above_the_burst_can_never_pass_and_takes_nothing() {
    let mut bucket = Bucket::new(limit(1, SECOND, 5));
    let refused = bucket.take(0, 10);
    assert_eq!(CheckReply { ok: false, remaining: 5, wait: Wait::Never, reset_us: 0 }, refused);
    assert_eq!(None, bucket.buckets.stored(&0));
    assert_eq!(4, bucket.take(0, 1).remaining);
}

/// D04.
#[test]
fn a_refused_heavy_request_burns_nothing() {
    let mut bucket = Bucket::new(limit(10, 60 * SECOND, 10));
    assert_eq!(2, bucket.take(0, 8).remaining);
    let refused = bucket.take(0, 5);
    assert_eq!((false, 2, Wait::Us(18 * SECOND)), (refused.ok, refused.remaining, refused.wait));
    assert_eq!(1, bucket.take(0, 1).remaining);
}

/// D07.
#[test]
fn calls_in_one_microsecond_count_each() {
    assert_eq!(5, Bucket::new(limit(5, 60 * SECOND, 5)).admitted(0, 20));
}

/// D12.
#[test]
fn high_rates_are_limited_like_low_ones() {
    let rates = [(1000, 60 * SECOND), (6000, SECOND), (8000, SECOND), (100_000, SECOND), (300_000, SECOND)];
    for (requests, period_us) in rates {
        for burst in [requests / 10, 1] {
            let mut bucket = Bucket::new(limit(requests, period_us, burst));
            // Three times the allowance of a tenth of a second, evenly spread over it.
            let calls = 3 * (burst + requests / 10);
            let time_us = |call: u64| call * SECOND / 10 / calls;
            let admitted: u64 = (0..calls).map(|call| bucket.admitted(time_us(call), 1)).sum();
            let allowance = burst + requests * SECOND / 10 / period_us + 1;
            assert!(admitted <= allowance, "{admitted} of {allowance} at {requests} per {period_us} µs, burst {burst}");
            assert!(bucket.buckets.stored(&0).is_some());
        }
    }
}

/// D15.
#[test]
fn a_wait_below_a_second_is_told_and_is_no_pass() {
    let mut bucket = Bucket::new(limit(1, SECOND, 1));
    assert!(bucket.take(0, 1).ok);
    for (now_us, wait_us) in [(1_000, 999_000), (100_000, 900_000), (800_000, 200_000), (999_999, 1)] {
        let refused = bucket.take(now_us, 1);
        assert_eq!((false, Wait::Us(wait_us)), (refused.ok, refused.wait));
    }
    assert!(bucket.take(SECOND, 1).ok);
}

/// D21.
#[test]
fn remaining_counts_this_request_and_stops_at_zero() {
    let mut bucket = Bucket::new(limit(3, 60 * SECOND, 3));
    let remaining: Vec<u64> = (0..5).map(|_| bucket.take(0, 1).remaining).collect();
    assert_eq!(vec![2, 1, 0, 0, 0], remaining);
}

/// D08, D10.
#[test]
fn several_rules_are_charged_together_or_not_at_all() {
    let (strict, loose) = (limit(10, 60 * SECOND, 10), limit(30, 1800 * SECOND, 30));
    for order in [[1, 2], [2, 1]] {
        let mut buckets = Buckets::default();
        let rules = order.map(|rule| charge(rule, if rule == 1 { &strict } else { &loose }, 1));
        let admitted = (0..31).filter(|_| buckets.decide(START_US, &rules).allowed).count();
        assert_eq!(10, admitted);
        let asked = buckets.decide(START_US, &[charge(2, &loose, 0)]);
        assert_eq!(20, asked.checks[0].remaining);
    }
}

/// D11.
#[test]
fn an_exhausted_shadow_rule_refuses_nobody_and_stops_nothing() {
    let (dry, real) = (limit(1, 60 * SECOND, 1), limit(3, 60 * SECOND, 3));
    for order in [[1, 2], [2, 1]] {
        let mut buckets = Buckets::default();
        let rules = order.map(|rule| if rule == 1 { shadow(charge(1, &dry, 1)) } else { charge(2, &real, 1) });
        let replies: Vec<Reply> = (0..5).map(|_| buckets.decide(START_US, &rules)).collect();
        let dry_place = usize::from(order[0] == 2);
        assert_eq!(vec![true, true, true, false, false], replies.iter().map(|reply| reply.allowed).collect::<Vec<_>>());
        assert_eq!(4, replies.iter().filter(|reply| !reply.checks[dry_place].ok).count());
    }
}

#[test]
fn a_shadow_rule_is_not_charged_for_a_refused_request() {
    let (real, dry) = (limit(1, 60 * SECOND, 1), limit(9, 60 * SECOND, 9));
    let mut buckets = Buckets::default();
    let rules = [charge(1, &real, 1), shadow(charge(2, &dry, 1))];
    assert!(buckets.decide(START_US, &rules).allowed);
    let refused = buckets.decide(START_US, &rules);
    assert_eq!((false, true, 8), (refused.allowed, refused.checks[1].ok, refused.checks[1].remaining));
}

#[test]
fn a_free_request_writes_nothing() {
    let mut bucket = Bucket::new(limit(5, SECOND, 5));
    assert_eq!(5, bucket.take(0, 0).remaining);
    assert_eq!(None, bucket.buckets.stored(&0));
}

/// D38.
#[test]
fn a_string_lives_until_its_last_record_is_drained_and_a_millisecond_longer() {
    let mut buckets = Buckets::default();
    let (fast, slow) = (limit(1000, SECOND, 1000), limit(1, SECOND, 5));
    buckets.decide(START_US, &[charge(1, &fast, 1)]);
    assert_eq!((RECORD_BYTES, 2), stored(&buckets));
    buckets.decide(START_US, &[charge(2, &slow, 3)]);
    assert_eq!((2 * RECORD_BYTES, 3001), stored(&buckets));
    buckets.decide(START_US + 2_500, &[charge(2, &slow, 1)]);
    assert_eq!((RECORD_BYTES, 3999), stored(&buckets));
}

#[test]
fn a_record_has_the_bytes_of_the_scripts_struct() {
    let mut buckets = Buckets::default();
    buckets.decide(START_US, &[charge(7, &limit(7, SECOND, 7), 2)]);
    let mut expected = vec![7; 8];
    expected.push(1);
    for number in [1_764_547_200_000_000.0_f64, 2_000_000.0, 1_000_000.0, 7.0] {
        expected.extend(number.to_be_bytes());
    }
    assert_eq!(expected, buckets.stored(&0).unwrap().value);
}

fn stored(buckets: &Buckets<u8>) -> (usize, u64) {
    let stored = buckets.stored(&0).unwrap();
    (stored.value.len(), stored.ttl_ms)
}

/// About four months: no bucket of these tests takes longer to refill, so that times stay below 2^53 µs.
const LONGEST_US: u64 = 10_000_000_000_000;

fn any_limit() -> impl Strategy<Value = Limit> {
    let rates = prop::sample::select(vec![
        (7, SECOND),
        (333, SECOND),
        (300_000, SECOND),
        (1, 3 * 86_400 * SECOND),
        (1000, 60 * SECOND),
        (1, 1_000),
        (999_983, 86_399_999_981),
    ]);
    (rates, 1_u64..2_000).prop_map(|((requests, period_us), burst)| {
        let most = LONGEST_US * requests / period_us;
        limit(requests, period_us, burst.min(most))
    })
}

/// (distance to the call before in µs, cost), mostly near the time that a token takes.
fn traffic(limit: &Limit) -> impl Strategy<Value = Vec<(u64, u64)>> + use<> {
    let token_us = limit.weight() / limit.drain_per_us() + 1;
    let distance = prop_oneof![Just(0), Just(1), 0..=token_us * 2, 0..=token_us * limit.burst()];
    prop::collection::vec((distance, 0..=limit.burst() + 1), 1..40)
}

proptest! {
    /// D01, D12: over every interval, not only from the start.
    #[test]
    fn no_interval_admits_more_than_burst_and_rate((limit, calls) in any_limit().prop_flat_map(|limit| { let calls = traffic(&limit); (Just(limit), calls) })) {
        let mut bucket = Bucket::new(limit.clone());
        let (mut now_us, mut admitted) = (0, Vec::new());
        for (distance_us, cost) in calls {
            now_us += distance_us;
            if bucket.take(now_us, cost).ok {
                admitted.push((now_us, cost));
            }
        }
        for first in 0..admitted.len() {
            let mut tokens = 0_u128;
            for (at_us, cost) in &admitted[first..] {
                tokens += u128::from(*cost);
                // tokens ≤ burst + rate × elapsed, without a division.
                let elapsed_us = u128::from(at_us - admitted[first].0);
                let allowance = u128::from(limit.burst()) * u128::from(limit.period_us()) + u128::from(limit.requests()) * elapsed_us;
                prop_assert!(tokens * u128::from(limit.period_us()) <= allowance);
            }
        }
    }

    #[test]
    fn a_refusal_changes_nothing((limit, calls) in any_limit().prop_flat_map(|limit| { let calls = traffic(&limit); (Just(limit), calls) })) {
        let mut bucket = Bucket::new(limit);
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            let before = bucket.buckets.clone();
            if !bucket.take(now_us, cost).ok {
                prop_assert_eq!(&before, &bucket.buckets);
            }
        }
    }

    /// D17: as the store's clock counts, to the microsecond.
    #[test]
    fn waiting_as_told_is_enough_and_needed((limit, calls) in any_limit().prop_flat_map(|limit| { let calls = traffic(&limit); (Just(limit), calls) })) {
        let mut bucket = Bucket::new(limit.clone());
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            match bucket.take(now_us, cost) {
                CheckReply { ok: true, .. } => {}
                CheckReply { wait: Wait::Us(wait_us), .. } => {
                    prop_assert!(wait_us > 0);
                    let mut early = Bucket { limit: limit.clone(), buckets: bucket.buckets.clone() };
                    prop_assert!(!early.take(now_us + wait_us - 1, cost).ok);
                    now_us += wait_us;
                    prop_assert!(bucket.take(now_us, cost).ok);
                }
                CheckReply { wait: Wait::Never, .. } => prop_assert!(cost > limit.burst()),
            }
        }
    }
}
