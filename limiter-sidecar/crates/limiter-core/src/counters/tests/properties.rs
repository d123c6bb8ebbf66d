// SPDX-License-Identifier: Apache-2.0
use super::*;

/// About four months: no bucket of these tests takes longer to refill, so that times stay below 2^53 µs.
const LONGEST_US: u64 = 10_000_000_000_000;

type Calls = Vec<(u64, u64)>;

pub(super) fn any_bucket() -> impl Strategy<Value = Limit> {
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
        token_bucket(requests, period_us, burst.min(most))
    })
}

fn any_leaky_bucket() -> impl Strategy<Value = Limit> {
    let rates = prop::sample::select(vec![(7, SECOND), (300_000, SECOND), (1, 60 * SECOND), (999_983, 86_399_999_981)]);
    (rates, 0_u64..50, 1_u64..100 * SECOND).prop_map(|((requests, period_us), queue, delay_us)| {
        leaky_bucket(requests, period_us, queue, if queue > 0 { delay_us } else { 0 })
    })
}

fn any_window() -> impl Strategy<Value = Limit> {
    let periods = prop::sample::select(vec![1_000, 333_333, SECOND, 60 * SECOND, 86_399_999_981]);
    (1_u64..20, periods, 0..3).prop_map(|(requests, period_us, which)| match which {
        0 => fixed_window(requests, period_us),
        1 => sliding_counter(requests, period_us),
        _ => sliding_log(requests, period_us),
    })
}

pub(super) fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![any_bucket(), any_leaky_bucket(), any_window()]
}

/// The time that something takes to come back.
fn pace_us(limit: &Limit) -> u64 {
    let [_, _, third, fourth] = limit.demand(1, 0).numbers;
    third / fourth.max(1) + 1
}

/// (distance to the call before in µs, cost), mostly near the time that something takes to come back.
pub(super) fn traffic(limit: &Limit) -> impl Strategy<Value = Calls> + use<> {
    let (pace_us, most) = (pace_us(limit), limit.quota());
    let distance = prop_oneof![Just(0), Just(1), 0..=pace_us * 2, 0..=pace_us * most.min(100)];
    prop::collection::vec((distance, 0..=most + 1), 1..40)
}

fn with_traffic(limits: impl Strategy<Value = Limit>) -> impl Strategy<Value = (Limit, Calls)> {
    limits.prop_flat_map(|limit| {
        let calls = traffic(&limit);
        (Just(limit), calls)
    })
}

/// (time, cost) of what is admitted.
fn admitted(subject: &mut Subject, calls: &Calls) -> Calls {
    let mut now_us = 0;
    let mut admitted = Vec::new();
    for (distance_us, cost) in calls {
        now_us += distance_us;
        if subject.take(now_us, *cost).ok {
            admitted.push((now_us, *cost));
        }
    }
    admitted
}

proptest! {
    /// D01, D12: over every interval, not only from the start.
    #[test]
    fn no_interval_admits_more_than_burst_and_rate((limit, calls) in with_traffic(any_bucket())) {
        let [weight, capacity, _, drain_per_us] = limit.demand(1, 0).numbers;
        let admitted = admitted(&mut Subject::new(limit), &calls);
        for first in 0..admitted.len() {
            let mut tokens = 0_u128;
            for (at_us, cost) in &admitted[first..] {
                tokens += u128::from(*cost);
                let elapsed_us = u128::from(at_us - admitted[first].0);
                // tokens ≤ burst + rate × elapsed, without a division.
                prop_assert!(tokens * u128::from(weight) <= u128::from(capacity) + u128::from(drain_per_us) * elapsed_us);
            }
        }
    }

    #[test]
    fn no_period_admits_more_than_a_log_allows(
        (limit, calls) in with_traffic((1_u64..20, 1_000..100_000_u64).prop_map(|(requests, period)| sliding_log(requests, period)))
    ) {
        let (most, period_us) = (limit.quota(), limit.demand(1, 0).numbers[2]);
        let admitted = admitted(&mut Subject::new(limit), &calls);
        for (end_us, _) in &admitted {
            let inside = admitted.iter().filter(|(at, _)| at <= end_us && at + period_us > *end_us);
            prop_assert!(inside.map(|(_, cost)| cost).sum::<u64>() <= most);
        }
    }

    #[test]
    fn no_window_admits_more_than_its_requests(
        (limit, calls) in with_traffic((1_u64..20, 1_000..100_000_u64).prop_map(|(requests, period)| fixed_window(requests, period)))
    ) {
        let (most, period_us) = (limit.quota(), limit.demand(1, 0).numbers[2]);
        let window = |at: u64| (START_US + at) / period_us;
        let admitted = admitted(&mut Subject::new(limit), &calls);
        for (in_us, _) in &admitted {
            let same = admitted.iter().filter(|(at, _)| window(*at) == window(*in_us));
            prop_assert!(same.map(|(_, cost)| cost).sum::<u64>() <= most);
        }
    }

    #[test]
    fn what_leaves_a_leaky_bucket_is_spaced_evenly((limit, calls) in with_traffic(any_leaky_bucket())) {
        let [weight, bound, _, drain_per_us] = limit.demand(1, 0).numbers;
        let mut subject = Subject::new(limit);
        let (mut now_us, mut free_from) = (0, 0);
        for (distance_us, cost) in calls {
            now_us += distance_us;
            if let CheckReply { ok: true, wait: Wait::Us(hold_us), .. } = subject.take(now_us, cost)
                && cost > 0
            {
                prop_assert!(hold_us * drain_per_us < bound - weight + drain_per_us, "held for longer than is allowed");
                // A microsecond is lost to rounding the hold up, once.
                prop_assert!(now_us + hold_us + 1 >= free_from);
                free_from = now_us + hold_us + (cost * weight) / drain_per_us;
            }
        }
    }

    #[test]
    fn a_refusal_changes_nothing((limit, calls) in with_traffic(any_limit())) {
        let mut subject = Subject::new(limit);
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            let before = subject.counters.clone();
            if !subject.take(now_us, cost).ok {
                prop_assert_eq!(&before, &subject.counters);
            }
        }
    }

    /// D17: as the store's clock counts, to the microsecond.
    #[test]
    fn waiting_as_told_is_enough_and_needed((limit, calls) in with_traffic(any_limit())) {
        let mut subject = Subject::new(limit);
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            match subject.take(now_us, cost) {
                CheckReply { ok: true, .. } => {}
                CheckReply { wait: Wait::Us(wait_us), .. } => {
                    prop_assert!(wait_us > 0);
                    prop_assert!(!subject.clone().take(now_us + wait_us - 1, cost).ok);
                    now_us += wait_us;
                    prop_assert!(subject.take(now_us, cost).ok);
                }
                CheckReply { wait: Wait::Never, .. } => prop_assert!(cost > subject.limit.largest_cost()),
            }
        }
    }

    #[test]
    fn after_the_told_reset_nothing_counts((limit, calls) in with_traffic(any_limit())) {
        let mut subject = Subject::new(limit);
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            let reset_us = subject.take(now_us, cost).reset_us;
            prop_assert_eq!(subject.limit.quota().max(1), subject.clone().take(now_us + reset_us, 0).remaining);
        }
    }

    #[test]
    fn remaining_is_what_can_still_be_taken_one_by_one((limit, calls) in with_traffic(any_window())) {
        let mut subject = Subject::new(limit);
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            let remaining = subject.take(now_us, cost).remaining;
            prop_assert_eq!(remaining, subject.clone().admitted(now_us, remaining + 1));
        }
    }

    /// Against the same traffic without the call that was given back.
    #[test]
    fn a_refund_never_gives_more_than_was_there_without_the_call(
        (limit, calls) in with_traffic(any_limit()),
        victim in 0_usize..40,
        later_us in prop_oneof![Just(0), Just(1), 0..=200 * SECOND],
    ) {
        let (mut with, mut without) = (Subject::new(limit.clone()), Subject::new(limit));
        let (mut now_us, mut refunded) = (0, None);
        for (place, (distance_us, cost)) in calls.into_iter().enumerate() {
            now_us += distance_us;
            let reply = with.take(now_us, cost);
            if !reply.ok {
                continue;
            }
            if place == victim {
                refunded = Some((now_us, cost, reply.reset_us));
            } else {
                prop_assert!(without.take(now_us, cost).ok);
            }
        }
        if let Some((at_us, cost, reset_us)) = refunded {
            with.give_back(now_us + later_us, at_us, cost, reset_us);
            let now_us = now_us + later_us;
            prop_assert!(with.take(now_us, 0).remaining <= without.take(now_us, 0).remaining);
        }
    }

    #[test]
    fn a_refund_at_once_gives_all_back((limit, calls) in with_traffic(any_limit()), cost in 1_u64..5) {
        let mut subject = Subject::new(limit);
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            subject.take(now_us, cost);
        }
        let before = subject.take(now_us, 0);
        if subject.take(now_us, cost).ok {
            subject.refund(now_us, now_us, cost);
            prop_assert_eq!(before, subject.take(now_us, 0));
        }
    }
}
