// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn each_request_counts_for_exactly_one_period() {
    let mut subject = Subject::new(sliding_log(3, SECOND));
    for at_us in [0, 400_000, 900_000] {
        assert!(subject.take(at_us, 1).ok);
    }
    let refused = subject.take(999_999, 1);
    assert_eq!((0, Wait::Us(1), 900_001), (refused.remaining, refused.wait, refused.reset_us));
    assert!(subject.take(SECOND, 1).ok);
    assert_eq!(Wait::Us(400_000), subject.take(SECOND, 1).wait);
}

/// D07.
#[test]
fn equal_times_do_not_collapse_and_a_cost_is_so_many_entries() {
    let mut subject = Subject::new(sliding_log(5, SECOND));
    assert_eq!(3, subject.take(0, 2).remaining);
    assert_eq!(3, subject.admitted(0, 9));
    assert_eq!(5, subject.admitted(SECOND, 9));
}

#[test]
fn the_wait_of_a_dear_request_is_until_enough_have_left() {
    let mut subject = Subject::new(sliding_log(4, SECOND));
    for at_us in [0, 100_000, 200_000, 300_000] {
        assert!(subject.take(at_us, 1).ok);
    }
    assert_eq!(Wait::Us(900_000), subject.take(300_000, 3).wait);
    assert_eq!(Wait::Never, subject.take(300_000, 5).wait);
}

/// D02.
#[test]
fn an_older_clock_logs_at_the_latest_time() {
    let mut subject = Subject::new(sliding_log(3, SECOND));
    assert!(subject.take(10 * SECOND, 1).ok);
    assert!(subject.take(0, 1).ok);
    assert_eq!(1, subject.admitted(10 * SECOND, 9));
    assert_eq!(Wait::Us(11 * SECOND), subject.take(0, 1).wait);
}

#[test]
fn a_lowered_limit_waits_for_all_that_are_too_many() {
    let mut subject = Subject::new(sliding_log(4, SECOND));
    for at_us in [0, 100_000, 200_000, 300_000] {
        assert!(subject.take(at_us, 1).ok);
    }
    subject.limit = sliding_log(2, SECOND);
    let refused = subject.take(300_000, 1);
    assert_eq!((0, Wait::Us(900_000)), (refused.remaining, refused.wait));
    subject.limit = sliding_log(6, SECOND);
    assert_eq!(2, subject.admitted(300_000, 9));
}

#[test]
fn a_changed_period_counts_the_same_times() {
    let mut subject = Subject::new(sliding_log(4, 10 * SECOND));
    for at_us in [0, SECOND, 2 * SECOND] {
        assert!(subject.take(at_us, 1).ok);
    }
    subject.limit = sliding_log(4, SECOND);
    assert_eq!(3, subject.take(2 * SECOND, 0).remaining);
    subject.limit = sliding_log(4, 20 * SECOND);
    assert_eq!(1, subject.take(2 * SECOND, 0).remaining);
}

#[test]
fn what_has_left_the_log_does_not_come_back_with_a_longer_period() {
    let mut subject = Subject::new(sliding_log(9, SECOND));
    assert_eq!(4, subject.admitted(0, 4));
    assert!(subject.take(2 * SECOND, 1).ok);
    subject.limit = sliding_log(9, 60 * SECOND);
    assert_eq!(8, subject.take(2 * SECOND, 0).remaining);
    assert_eq!(7, subject.take(3 * SECOND - 1, 1).remaining);
    assert_eq!(Some(START_US + 63 * SECOND - 1), subject.counters.ends_us(&0));
}
