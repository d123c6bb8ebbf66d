// SPDX-License-Identifier: Apache-2.0
use super::*;

const MINUTE: u64 = 60 * SECOND;

/// The documented estimate: 80 before, 30 now, 15 s into 60 s, so three quarters of the 80 still count.
#[test]
fn the_share_of_the_window_before_counts() {
    let mut subject = Subject::new(sliding_counter(100, MINUTE));
    assert_eq!(80, subject.admitted(30 * SECOND, 80));
    assert_eq!(30, subject.admitted(MINUTE + 15 * SECOND, 30));
    assert_eq!(10, subject.take(MINUTE + 15 * SECOND, 0).remaining);
    assert_eq!(10, subject.admitted(MINUTE + 15 * SECOND, 99));
}

#[test]
fn the_wait_is_until_enough_has_slid_out_of_the_window_before() {
    let mut subject = Subject::new(sliding_counter(100, MINUTE));
    assert_eq!(80, subject.admitted(0, 80));
    assert_eq!(40, subject.admitted(MINUTE + 15 * SECOND, 99));
    // One of 80 slides out in 0.75 s.
    let refused = subject.take(MINUTE + 15 * SECOND, 1);
    assert_eq!((Wait::Us(750_000), 105 * SECOND), (refused.wait, refused.reset_us));
}

#[test]
fn the_wait_may_reach_into_the_window_after() {
    let mut subject = Subject::new(sliding_counter(10, MINUTE));
    assert_eq!(10, subject.admitted(20 * SECOND, 99));
    assert_eq!(Wait::Us(46 * SECOND), subject.take(20 * SECOND, 1).wait);
    assert_eq!(Wait::Us(100 * SECOND), subject.take(20 * SECOND, 10).wait);
}

#[test]
fn nothing_counts_two_windows_later() {
    let mut subject = Subject::new(sliding_counter(10, MINUTE));
    assert_eq!(10, subject.admitted(59 * SECOND, 99));
    assert_eq!(10, subject.admitted(2 * MINUTE, 99));
}

/// D02.
#[test]
fn an_older_clock_slides_nothing_out() {
    let mut subject = Subject::new(sliding_counter(10, MINUTE));
    assert_eq!(5, subject.admitted(MINUTE, 5));
    assert_eq!(5, subject.admitted(0, 99));
    assert_eq!((Wait::Us(MINUTE + 66 * SECOND)), subject.take(0, 1).wait);
}

#[test]
fn a_changed_period_takes_over_what_was_in_use() {
    let mut subject = Subject::new(sliding_counter(100, MINUTE));
    assert_eq!(80, subject.admitted(30 * SECOND, 80));
    assert_eq!(10, subject.admitted(MINUTE + 15 * SECOND, 10));
    // 60 of the 80 and all 10.
    subject.limit = sliding_counter(100, 3_600 * SECOND);
    assert_eq!(30, subject.take(MINUTE + 15 * SECOND, 0).remaining);
    assert_eq!(30, subject.admitted(MINUTE + 20 * SECOND, 99));
}

#[test]
fn a_count_that_no_double_holds_under_another_period_is_cut() {
    let mut subject = Subject::new(sliding_counter(1_000_000_000_000, 1_000));
    assert!(subject.take(0, 1_000_000_000_000).ok);
    let year = 365 * 86_400 * SECOND;
    subject.limit = sliding_counter(100, year);
    assert!(!subject.take(500, 1).ok);
    subject.limit = sliding_counter(1_000_000_000_000, 1_000);
    assert_eq!(0, subject.take(500, 0).remaining);
}
