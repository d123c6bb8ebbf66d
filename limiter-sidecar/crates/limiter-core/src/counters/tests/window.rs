// SPDX-License-Identifier: Apache-2.0
use super::*;

const DAY: u64 = 86_400 * SECOND;

#[test]
fn a_window_is_aligned_to_the_epoch_and_ends_for_everybody_at_once() {
    let mut subject = Subject::new(fixed_window(3, 60 * SECOND));
    assert_eq!(3, subject.admitted(50 * SECOND, 9));
    let refused = subject.take(59 * SECOND, 1);
    assert_eq!((0, Wait::Us(SECOND), SECOND), (refused.remaining, refused.wait, refused.reset_us));
    assert_eq!(3, subject.admitted(60 * SECOND, 9));
}

/// D03.
#[test]
fn a_cost_above_the_requests_can_never_pass() {
    let refused = Subject::new(fixed_window(3, 60 * SECOND)).take(0, 4);
    assert_eq!(CheckReply { ok: false, remaining: 3, wait: Wait::Never, reset_us: 0 }, refused);
}

/// D02.
#[test]
fn an_older_clock_stays_in_the_later_window() {
    let mut subject = Subject::new(fixed_window(3, 60 * SECOND));
    assert_eq!(2, subject.admitted(60 * SECOND, 2));
    let last = subject.take(30 * SECOND, 1);
    assert_eq!((true, 0, 90 * SECOND), (last.ok, last.remaining, last.reset_us));
    assert_eq!(Wait::Us(90 * SECOND), subject.take(30 * SECOND, 1).wait);
}

#[test]
fn a_changed_limit_keeps_the_count_of_the_window() {
    let mut subject = Subject::new(fixed_window(5, 60 * SECOND));
    assert_eq!(4, subject.admitted(10 * SECOND, 4));
    subject.limit = fixed_window(2, 60 * SECOND);
    assert!(!subject.take(11 * SECOND, 1).ok);
    subject.limit = fixed_window(9, 60 * SECOND);
    assert_eq!(5, subject.admitted(12 * SECOND, 9));
}

#[test]
fn a_changed_period_keeps_what_was_charged_in_the_present_window() {
    let mut subject = Subject::new(fixed_window(5, 60 * SECOND));
    assert_eq!(4, subject.admitted(10 * SECOND, 4));
    subject.limit = fixed_window(5, 3_600 * SECOND);
    assert_eq!(1, subject.admitted(20 * SECOND, 9));
    subject.limit = fixed_window(5, 15 * SECOND);
    // 20 s lie in the window from 15 s on.
    assert_eq!(0, subject.admitted(20 * SECOND, 1));
    assert_eq!(5, subject.admitted(30 * SECOND, 9));
}

#[test]
fn a_count_says_nothing_after_the_end_of_the_window_it_was_made_in() {
    let mut subject = Subject::new(fixed_window(5, 60 * SECOND));
    assert_eq!(5, subject.admitted(0, 9));
    subject.limit = fixed_window(5, 3_600 * SECOND);
    assert_eq!(0, subject.admitted(59 * SECOND, 9));
    assert_eq!(5, subject.admitted(60 * SECOND, 9));
}

#[test]
fn a_calendars_window_ends_at_local_midnight() {
    // START_US is midnight in UTC, and one o'clock in Berlin.
    let mut subject = Subject::new(calendar_window(3, CalendarUnit::Day, "Europe/Berlin"));
    assert_eq!(3, subject.admitted(0, 9));
    let refused = subject.take(0, 1);
    assert_eq!((Wait::Us(DAY - 3_600 * SECOND), DAY - 3_600 * SECOND), (refused.wait, refused.reset_us));
    assert_eq!(0, subject.admitted(DAY - 3_600 * SECOND - 1, 1));
    assert_eq!(3, subject.admitted(DAY - 3_600 * SECOND, 9));
}

#[test]
fn a_period_may_become_a_calendar_and_keeps_its_count() {
    let mut subject = Subject::new(fixed_window(5, DAY));
    assert_eq!(2, subject.admitted(0, 2));
    subject.limit = calendar_window(5, CalendarUnit::Month, "UTC");
    assert_eq!(3, subject.admitted(SECOND, 9));
}

/// D02: no sidecar's clock matters, only whether its windows hold the store's time.
#[test]
fn windows_that_do_not_hold_the_time_decide_nothing() {
    let day = calendar_window(3, CalendarUnit::Day, "UTC");
    let mut counters = Counters::default();
    let call = |rule, at_us| Charge { demand: day.demand(1, at_us), ..charge(rule, &day, 1) };
    for now_us in [START_US - DAY, START_US + DAY, START_US + 2 * DAY - 1] {
        assert!(matches!(counters.clone().decide(now_us, &[call(1, START_US)]), Answer::Decided(_)), "{now_us}");
    }
    for now_us in [START_US - DAY - 1, START_US + 2 * DAY] {
        let other = charge(2, &token_bucket(1, SECOND, 1), 1);
        assert_eq!(Answer::Stale { now_us }, counters.decide(now_us, &[other, call(1, START_US)]));
    }
    assert_eq!(Counters::default(), counters);
}

#[test]
fn a_record_that_is_ahead_of_the_edges_counts_until_its_own_window_ends() {
    let day = calendar_window(3, CalendarUnit::Day, "UTC");
    let mut counters = Counters::default();
    let later = Charge { demand: day.demand(1, START_US + 5 * DAY), ..charge(1, &day, 1) };
    assert!(decide(&mut counters, START_US + 5 * DAY, &[later]).allowed);
    // Whatever another rule's record lies in.
    let both = [charge(1, &day, 1), charge(2, &day, 1)];
    for left in [(1, 2), (0, 1)] {
        let reply = decide(&mut counters, START_US, &both);
        assert_eq!((true, left), (reply.allowed, (reply.checks[0].remaining, reply.checks[1].remaining)));
    }
    let refused = decide(&mut counters, START_US, &both);
    assert_eq!(
        (false, Wait::Us(6 * DAY), 6 * DAY),
        (refused.allowed, refused.checks[0].wait, refused.checks[0].reset_us)
    );
    assert_eq!((true, 1), (refused.checks[1].ok, refused.checks[1].remaining));
    assert_eq!(0, decide(&mut counters, START_US + 5 * DAY, &[later]).checks[0].remaining);
    let next = Charge { demand: day.demand(1, START_US + 6 * DAY), ..later };
    assert_eq!(2, decide(&mut counters, START_US + 6 * DAY, &[next]).checks[0].remaining);
}
