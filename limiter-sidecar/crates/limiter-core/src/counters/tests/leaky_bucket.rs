// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn without_a_queue_whoever_comes_too_early_is_refused() {
    let mut subject = Subject::new(leaky_bucket(10, SECOND, 0, 0));
    assert_eq!(1, subject.admitted(0, 5));
    let early = subject.take(99_999, 1);
    assert_eq!((false, 0, Wait::Us(1)), (early.ok, early.remaining, early.wait));
    assert_eq!(1, subject.admitted(100_000, 5));
}

#[test]
fn a_queue_holds_so_many_that_they_leave_evenly() {
    let mut subject = Subject::new(leaky_bucket(10, SECOND, 3, 10 * SECOND));
    let replies: Vec<CheckReply> = (0..6).map(|_| subject.take(0, 1)).collect();
    let expected = [(true, 3, 0), (true, 2, 100_000), (true, 1, 200_000), (true, 0, 300_000), (false, 0, 100_000)];
    for (reply, (ok, remaining, wait_us)) in replies.iter().zip(expected) {
        assert_eq!((ok, remaining, Wait::Us(wait_us)), (reply.ok, reply.remaining, reply.wait));
    }
    assert_eq!(replies[4], replies[5]);
    assert_eq!(400_000, replies[4].reset_us);
}

#[test]
fn nobody_is_held_for_longer_than_the_longest_delay() {
    let mut subject = Subject::new(leaky_bucket(10, SECOND, 100, 250_000));
    let held: Vec<Wait> = (0..9).map(|_| subject.take(0, 1)).filter(|reply| reply.ok).map(|reply| reply.wait).collect();
    assert_eq!(vec![Wait::Us(0), Wait::Us(100_000), Wait::Us(200_000)], held);
    // 300 ms are owed; the next may come when its wait has sunk to 250.
    assert_eq!(Wait::Us(50_000), subject.take(0, 1).wait);
}

#[test]
fn a_dear_request_passes_like_a_cheap_one_and_those_behind_it_wait() {
    let mut subject = Subject::new(leaky_bucket(10, SECOND, 2, SECOND));
    assert!(subject.take(0, 5).ok);
    let refused = subject.take(0, 1);
    assert_eq!((false, 0, Wait::Us(300_000)), (refused.ok, refused.remaining, refused.wait));
    let held = subject.take(300_000, 1);
    assert_eq!((true, Wait::Us(200_000)), (held.ok, held.wait));
}

#[test]
fn a_free_request_passes_and_is_not_held() {
    let mut subject = Subject::new(leaky_bucket(10, SECOND, 0, 0));
    assert_eq!(1, subject.take(0, 0).remaining);
    assert_eq!(1, subject.admitted(0, 2));
    let asked = subject.take(0, 0);
    assert_eq!((true, 0, Wait::Us(0)), (asked.ok, asked.remaining, asked.wait));
}

/// D02: real time does not go back with the clock.
#[test]
fn a_clock_that_goes_back_makes_no_hold_longer() {
    let mut subject = Subject::new(leaky_bucket(10, SECOND, 3, 10 * SECOND));
    assert!(subject.take(60 * SECOND, 1).ok);
    let held = subject.take(0, 1);
    assert_eq!((true, Wait::Us(100_000), 60_200_000), (held.ok, held.wait, held.reset_us));
}

#[test]
fn what_is_not_charged_is_not_held() {
    let (queue, full) = (leaky_bucket(10, SECOND, 3, 10 * SECOND), token_bucket(1, SECOND, 1));
    let mut counters = Counters::default();
    let rules = [charge(1, &queue, 1), charge(2, &full, 1)];
    assert!(decide(&mut counters, START_US, &rules).allowed);
    let refused = decide(&mut counters, START_US, &rules);
    assert_eq!((false, true, Wait::Us(0)), (refused.allowed, refused.checks[0].ok, refused.checks[0].wait));
}

#[test]
fn a_raised_rate_lets_the_queue_leave_faster() {
    let mut subject = Subject::new(leaky_bucket(1, SECOND, 2, 10 * SECOND));
    assert_eq!(3, subject.admitted(0, 9));
    subject.limit = leaky_bucket(10, SECOND, 4, 10 * SECOND);
    assert_eq!(Wait::Us(300_000), subject.take(0, 1).wait);
}
