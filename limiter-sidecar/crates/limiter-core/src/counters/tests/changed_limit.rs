// SPDX-License-Identifier: Apache-2.0
use super::properties::{any_bucket, traffic};
use super::*;

/// D13.
#[test]
fn a_lowered_limit_binds_at_once() {
    let mut subject = Subject::new(token_bucket(1000, SECOND, 1000));
    assert_eq!(999, subject.take(0, 1).remaining);
    subject.limit = token_bucket(10, SECOND, 10);
    assert_eq!(9, subject.admitted(0, 30));
}

#[test]
fn a_raised_limit_keeps_the_tokens_used_and_helps_at_once() {
    let mut subject = Subject::new(token_bucket(5, SECOND, 5));
    assert_eq!(5, subject.admitted(0, 9));
    subject.limit = token_bucket(100, SECOND, 100);
    assert_eq!(95, subject.admitted(0, 200));
}

#[test]
fn a_started_token_is_rounded_against_the_client() {
    let mut subject = Subject::new(token_bucket(7, SECOND, 7));
    assert_eq!(6, subject.take(0, 1).remaining);
    // 999,993 of 1,000,000 units of one token are owed; under the new limit that is 499,996.5 of 500,000.
    subject.limit = token_bucket(2, SECOND, 2);
    let charged = subject.take(1, 1);
    assert_eq!((0, 999_997), (charged.remaining, charged.reset_us));
}

/// D46.
#[test]
fn a_raised_rate_helps_who_is_refused() {
    let mut subject = Subject::new(token_bucket(1, 3600 * SECOND, 1));
    assert_eq!(1, subject.admitted(0, 2));
    subject.limit = token_bucket(1, SECOND, 1);
    assert_eq!(Wait::Us(600_000), subject.take(400_000, 1).wait);
    assert!(!subject.take(SECOND - 1, 1).ok);
    assert!(subject.take(SECOND, 1).ok);
}

/// D17: 91 of 100 tokens must drain, at the old five per second.
#[test]
fn a_lowered_limit_tells_the_wait_that_it_takes() {
    let mut subject = Subject::new(token_bucket(100, 20 * SECOND, 100));
    assert!(subject.take(0, 100).ok);
    subject.limit = token_bucket(10, 20 * SECOND, 10);
    let refused = subject.take(0, 1);
    assert_eq!((0, Wait::Us(18_200_001), 20_000_001), (refused.remaining, refused.wait, refused.reset_us));
    assert!(subject.take(0, 0).ok);
    assert!(!subject.take(18_199_999, 1).ok);
    assert!(subject.take(18_200_001, 1).ok);
}

/// D02, D17.
#[test]
fn waits_count_from_the_clock_that_is_behind() {
    let mut subject = Subject::new(token_bucket(1, SECOND, 1));
    assert!(subject.take(30 * SECOND, 1).ok);
    let refused = subject.take(0, 1);
    assert_eq!((Wait::Us(31 * SECOND), 31 * SECOND), (refused.wait, refused.reset_us));
}

proptest! {
    #[test]
    fn a_changed_limit_never_gives_tokens_away((before, after) in (any_bucket(), any_bucket()), used in 1_u64..2_000) {
        let used = used.min(before.quota());
        let mut subject = Subject::new(before);
        subject.take(0, used);
        subject.limit = after;
        let left = subject.limit.quota().saturating_sub(used);
        prop_assert_eq!(left, subject.take(0, 0).remaining);
    }

    /// D17, D46.
    #[test]
    fn waiting_as_told_is_enough_right_after_a_change(
        (before, calls) in any_bucket().prop_flat_map(|limit| { let calls = traffic(&limit); (Just(limit), calls) }),
        after in any_bucket(),
        cost in 1_u64..2_000,
    ) {
        let mut subject = Subject::new(before);
        let mut now_us = 0;
        for (distance_us, cost) in calls {
            now_us += distance_us;
            subject.take(now_us, cost);
        }
        subject.limit = after;
        let reply = subject.take(now_us, cost);
        match reply.wait {
            Wait::Never => prop_assert!(cost > subject.limit.quota()),
            Wait::Us(wait_us) if !reply.ok => prop_assert!(subject.take(now_us + wait_us, cost).ok),
            Wait::Us(wait_us) => prop_assert_eq!(0, wait_us),
        }
    }
}
