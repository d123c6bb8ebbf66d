// SPDX-License-Identifier: Apache-2.0
use super::*;

const MINUTE: u64 = 60 * SECOND;

#[test]
fn a_bucket_gets_back_what_has_not_drained_since() {
    let mut subject = Subject::new(token_bucket(1, SECOND, 10));
    subject.take(0, 5);
    subject.refund(2 * SECOND, 0, 5);
    assert_eq!(10, subject.take(2 * SECOND, 0).remaining);
    subject.take(2 * SECOND, 9);
    subject.refund(4 * SECOND, 2 * SECOND, 4);
    // Two seconds have drained two of the four, whether or not the call was made.
    assert_eq!(10 - 7 + 2, subject.take(4 * SECOND, 0).remaining);
}

#[test]
fn a_bucket_gets_all_back_while_it_owes_what_was_owed_before() {
    for limit in [token_bucket(1, SECOND, 10), leaky_bucket(1, SECOND, 9, MINUTE)] {
        let (mut subject, mut never) = (Subject::new(limit.clone()), Subject::new(limit));
        subject.take(0, 5);
        never.take(0, 5);
        let cancelled = subject.take(0, 3);
        subject.take(2 * SECOND, 1);
        never.take(2 * SECOND, 1);
        let now_us = 5 * SECOND - 1;
        subject.give_back(now_us, 0, 3, cancelled.reset_us);
        assert_eq!(never.take(now_us, 0), subject.take(now_us, 0));
    }
}

#[test]
fn a_bucket_loses_what_has_drained_beyond_what_was_owed_before() {
    let mut subject = Subject::new(token_bucket(1, SECOND, 10));
    subject.take(0, 2);
    let cancelled = subject.take(0, 3);
    subject.take(4 * SECOND, 4);
    subject.give_back(4 * SECOND, 0, 3, cancelled.reset_us);
    // Of the three, two have drained; the reset is a microsecond too long for certain.
    assert_eq!(4 * SECOND + 1, subject.take(4 * SECOND, 0).reset_us);
}

/// D02.
#[test]
fn a_clock_that_was_behind_gives_no_more_back() {
    let (mut subject, mut never) =
        (Subject::new(token_bucket(1, SECOND, 10)), Subject::new(token_bucket(1, SECOND, 10)));
    subject.take(9 * SECOND, 2);
    never.take(9 * SECOND, 2);
    let cancelled = subject.take(0, 3);
    subject.take(13 * SECOND, 4);
    never.take(13 * SECOND, 4);
    subject.give_back(13 * SECOND, 0, 3, cancelled.reset_us);
    assert_eq!(
        (4 * SECOND, 4 * SECOND + 1),
        (never.take(13 * SECOND, 0).reset_us, subject.take(13 * SECOND, 0).reset_us)
    );
}

#[test]
fn a_drained_bucket_gets_nothing_back_and_is_forgotten() {
    let mut subject = Subject::new(token_bucket(1, SECOND, 10));
    subject.take(0, 1);
    subject.refund(5 * SECOND, 0, 1);
    assert_eq!(Counters::default(), subject.counters);
}

#[test]
fn a_bucket_whose_rate_has_changed_gets_nothing_back() {
    let mut subject = Subject::new(token_bucket(1, SECOND, 10));
    subject.take(0, 5);
    subject.limit = token_bucket(2, SECOND, 10);
    subject.refund(0, 0, 5);
    subject.limit = token_bucket(1, SECOND, 10);
    assert_eq!(5, subject.take(0, 0).remaining);
}

#[test]
fn a_window_gets_back_what_was_charged_in_it_only() {
    let mut subject = Subject::new(fixed_window(5, MINUTE));
    subject.take(0, 3);
    subject.refund(SECOND, 0, 2);
    assert_eq!(4, subject.take(SECOND, 0).remaining);
    subject.take(MINUTE, 3);
    subject.refund(MINUTE, 59 * SECOND, 3);
    assert_eq!(2, subject.take(MINUTE, 0).remaining);
}

#[test]
fn a_calendars_window_is_told_by_the_edges_of_the_call() {
    let mut subject = Subject::new(calendar_window(5, CalendarUnit::Day, "UTC"));
    subject.take(0, 3);
    subject.refund(SECOND, 0, 3);
    assert_eq!(Counters::default(), subject.counters);
}

#[test]
fn a_sliding_counter_gets_it_back_in_the_window_that_was_charged() {
    let mut subject = Subject::new(sliding_counter(10, MINUTE));
    subject.take(0, 8);
    subject.take(MINUTE, 2);
    subject.refund(MINUTE, 0, 8);
    assert_eq!(8, subject.take(MINUTE, 0).remaining);
    subject.refund(MINUTE, MINUTE, 2);
    assert_eq!(Counters::default(), subject.counters);
}

#[test]
fn a_log_loses_as_many_entries_of_that_very_time() {
    let mut subject = Subject::new(sliding_log(9, MINUTE));
    for (at_us, cost) in [(0, 2), (5, 3), (9, 1)] {
        subject.take(at_us, cost);
    }
    subject.refund(10, 5, 2);
    assert_eq!(5, subject.take(10, 0).remaining);
    subject.refund(10, 7, 1);
    assert_eq!(5, subject.take(10, 0).remaining);
    subject.refund(10, 5, 9);
    assert_eq!(6, subject.take(10, 0).remaining);
}

#[test]
fn other_rules_of_the_key_keep_their_counts() {
    let (one, other) = (token_bucket(1, SECOND, 10), sliding_log(10, MINUTE));
    let mut counters = Counters::default();
    let charges = [charge(1, &one, 3), charge(2, &other, 3)];
    decide(&mut counters, START_US, &charges);
    counters.refund(START_US, START_US, &charges[..1]);
    let asked = decide(&mut counters, START_US, &[charge(1, &one, 0), charge(2, &other, 0)]);
    assert_eq!((10, 7), (asked.checks[0].remaining, asked.checks[1].remaining));
}

#[test]
fn a_record_that_is_older_than_the_charge_does_not_hold_it() {
    for limit in
        [token_bucket(1, SECOND, 10), fixed_window(10, MINUTE), sliding_counter(10, MINUTE), sliding_log(10, MINUTE)]
    {
        let mut subject = Subject::new(limit);
        subject.take(0, 5);
        let before = subject.counters.clone();
        subject.refund(2, 1, 3);
        assert_eq!(before, subject.counters);
    }
}
