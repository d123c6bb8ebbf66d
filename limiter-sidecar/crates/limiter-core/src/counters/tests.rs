// SPDX-License-Identifier: Apache-2.0
mod changed_limit;
mod leaky_bucket;
mod log;
mod properties;
mod refund;
mod sliding;
mod token_bucket;
mod window;

use proptest::prelude::*;

use super::*;
use crate::limit::Limit;
use crate::reply::Wait;
use crate::ruleset::{CalendarUnit, LimitDoc};
use crate::samples::START_US;

const SECOND: u64 = 1_000_000;

fn limit(doc: &LimitDoc) -> Limit {
    Limit::from_doc(doc).unwrap()
}

fn token_bucket(requests: u64, period_us: u64, burst: u64) -> Limit {
    limit(&LimitDoc::TokenBucket { requests, period_us, burst })
}

fn leaky_bucket(requests: u64, period_us: u64, queue: u64, max_delay_us: u64) -> Limit {
    limit(&LimitDoc::LeakyBucket { requests, period_us, queue, max_delay_us })
}

fn fixed_window(requests: u64, period_us: u64) -> Limit {
    limit(&LimitDoc::FixedWindow { requests, period_us: Some(period_us), calendar: None, time_zone: None })
}

fn calendar_window(requests: u64, unit: CalendarUnit, zone: &str) -> Limit {
    let time_zone = Some(zone.to_owned());
    limit(&LimitDoc::FixedWindow { requests, period_us: None, calendar: Some(unit), time_zone })
}

fn sliding_counter(requests: u64, period_us: u64) -> Limit {
    limit(&LimitDoc::SlidingWindowCounter { requests, period_us })
}

fn sliding_log(requests: u64, period_us: u64) -> Limit {
    limit(&LimitDoc::SlidingWindowLog { requests, period_us })
}

fn charge(rule: u8, limit: &Limit, cost: u64) -> Charge<u8> {
    Charge { key: 0, id: [rule; 8], enforcing: true, demand: limit.demand(cost, START_US) }
}

fn shadow(charge: Charge<u8>) -> Charge<u8> {
    Charge { enforcing: false, ..charge }
}

fn decide(counters: &mut Counters<u8>, now_us: u64, charges: &[Charge<u8>]) -> Reply {
    match counters.decide(now_us, charges) {
        Answer::Decided(reply) => reply,
        Answer::Stale { now_us } => panic!("the edges do not hold {now_us}"),
    }
}

/// One subject under one rule. Times count from [`START_US`].
#[derive(Clone)]
struct Subject {
    limit: Limit,
    counters: Counters<u8>,
}

impl Subject {
    fn new(limit: Limit) -> Self {
        Self { limit, counters: Counters::default() }
    }

    fn charge(&self, now_us: u64, cost: u64) -> Charge<u8> {
        Charge { key: 0, id: [1; 8], enforcing: true, demand: self.limit.demand(cost, START_US + now_us) }
    }

    fn take(&mut self, now_us: u64, cost: u64) -> CheckReply {
        let charge = self.charge(now_us, cost);
        decide(&mut self.counters, START_US + now_us, &[charge]).checks[0]
    }

    fn admitted(&mut self, now_us: u64, requests: u64) -> u64 {
        (0..requests).filter(|_| self.take(now_us, 1).ok).count().try_into().unwrap()
    }

    /// Of a charge that found a bucket empty.
    fn refund(&mut self, now_us: u64, charged_at_us: u64, cost: u64) {
        self.give_back(now_us, charged_at_us, cost, 0);
    }

    fn give_back(&mut self, now_us: u64, charged_at_us: u64, cost: u64, reset_us: u64) {
        let mut charge = self.charge(charged_at_us, cost);
        charge.demand = charge.demand.given_back(&CheckReply { ok: true, remaining: 0, wait: Wait::Us(0), reset_us });
        self.counters.refund(START_US + now_us, START_US + charged_at_us, &[charge]);
    }
}

/// D08, D10.
#[test]
fn several_rules_are_charged_together_or_not_at_all() {
    let (strict, loose) = (token_bucket(10, 60 * SECOND, 10), token_bucket(30, 1800 * SECOND, 30));
    for order in [[1, 2], [2, 1]] {
        let mut counters = Counters::default();
        let rules = order.map(|rule| charge(rule, if rule == 1 { &strict } else { &loose }, 1));
        let admitted = (0..31).filter(|_| decide(&mut counters, START_US, &rules).allowed).count();
        assert_eq!(10, admitted);
        let asked = decide(&mut counters, START_US, &[charge(2, &loose, 0)]);
        assert_eq!(20, asked.checks[0].remaining);
    }
}

/// D11.
#[test]
fn an_exhausted_shadow_rule_refuses_nobody_and_stops_nothing() {
    let (dry, real) = (token_bucket(1, 60 * SECOND, 1), token_bucket(3, 60 * SECOND, 3));
    for order in [[1, 2], [2, 1]] {
        let mut counters = Counters::default();
        let rules = order.map(|rule| if rule == 1 { shadow(charge(1, &dry, 1)) } else { charge(2, &real, 1) });
        let replies: Vec<Reply> = (0..5).map(|_| decide(&mut counters, START_US, &rules)).collect();
        let dry_place = usize::from(order[0] == 2);
        assert_eq!(vec![true, true, true, false, false], replies.iter().map(|reply| reply.allowed).collect::<Vec<_>>());
        assert_eq!(4, replies.iter().filter(|reply| !reply.checks[dry_place].ok).count());
    }
}

#[test]
fn a_shadow_rule_is_not_charged_for_a_refused_request() {
    let (real, dry) = (token_bucket(1, 60 * SECOND, 1), token_bucket(9, 60 * SECOND, 9));
    let mut counters = Counters::default();
    let rules = [charge(1, &real, 1), shadow(charge(2, &dry, 1))];
    assert!(decide(&mut counters, START_US, &rules).allowed);
    let refused = decide(&mut counters, START_US, &rules);
    assert_eq!((false, true, 8), (refused.allowed, refused.checks[1].ok, refused.checks[1].remaining));
}

/// D38.
#[test]
fn a_key_is_forgotten_with_its_last_record() {
    let mut counters = Counters::default();
    let (fast, slow) = (token_bucket(1000, SECOND, 1000), token_bucket(1, SECOND, 5));
    decide(&mut counters, START_US, &[charge(1, &fast, 1)]);
    assert_eq!(Some(START_US + 1_000), counters.ends_us(&0));
    decide(&mut counters, START_US, &[charge(2, &slow, 3)]);
    assert_eq!(Some(START_US + 3 * SECOND), counters.ends_us(&0));
    counters.forget(&0);
    assert_eq!(Counters::default(), counters);
}

#[test]
fn rules_of_all_algorithms_share_a_key_and_keep_apart() {
    let limits = [
        token_bucket(9, 60 * SECOND, 9),
        leaky_bucket(9, 60 * SECOND, 8, 60 * SECOND),
        fixed_window(9, 60 * SECOND),
        calendar_window(9, CalendarUnit::Day, "UTC"),
        sliding_counter(9, 60 * SECOND),
        sliding_log(9, 60 * SECOND),
    ];
    let mut counters = Counters::default();
    for left in [8, 7, 6] {
        let charges: Vec<_> = (1..).zip(&limits).map(|(rule, limit)| charge(rule, limit, 1)).collect();
        let reply = decide(&mut counters, START_US, &charges);
        assert_eq!(vec![left; 6], reply.checks.iter().map(|check| check.remaining).collect::<Vec<_>>());
    }
}
