// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;

/// A server's life with a breaker before it, by hand.
struct Rig {
    breaker: Breaker,
    now: Instant,
    tally: Tally,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self { breaker: Breaker::default(), now: Instant::now(), tally: Tally::default() };
        rig.tick();
        rig
    }

    fn tick(&mut self) {
        self.breaker.sample(self.now, self.tally);
    }

    fn passes(&mut self, time: Duration) {
        self.now += time;
    }

    /// Asks if the breaker lets it; whether it did.
    fn asks(&mut self, good: bool) -> bool {
        if !self.breaker.admits(self.now, COOL_DOWN) {
            return false;
        }
        if good {
            self.tally.decided += 1;
            self.breaker.succeeded(self.now, self.tally);
        } else {
            self.tally.failed += 1;
            self.breaker.failed(self.now, self.tally, COOL_DOWN);
        }
        true
    }

    fn is_open(&self) -> bool {
        self.breaker.probe_at.is_some()
    }
}

#[test]
fn half_of_twenty_calls_open_it_and_fewer_do_not() {
    let mut rig = Rig::new();
    for _ in 0..10 {
        assert!(rig.asks(true));
    }
    for _ in 0..9 {
        assert!(rig.asks(false));
    }
    assert!(!rig.is_open(), "19 calls say nothing");
    rig.asks(false);
    assert!(rig.is_open(), "10 of 20 failed");
}

#[test]
fn fewer_than_half_never_open_it() {
    let mut rig = Rig::new();
    for _ in 0..1_000 {
        rig.asks(true);
        rig.asks(true);
        rig.asks(false);
        assert!(!rig.is_open());
    }
}

#[test]
fn what_failed_longer_ago_than_the_window_does_not_count() {
    let mut rig = Rig::new();
    for _ in 0..19 {
        rig.asks(false);
    }
    for _ in 0..12 {
        rig.passes(Duration::from_secs(1));
        rig.tick();
    }
    rig.asks(false);
    assert!(!rig.is_open());
}

#[test]
fn while_it_is_open_one_in_each_pause_asks_and_all_others_are_turned_away() {
    let mut rig = Rig::new();
    while !rig.is_open() {
        rig.asks(false);
    }
    let mut probes = 0;
    for _ in 0..30_000 {
        rig.passes(Duration::from_millis(2));
        probes += u32::from(rig.asks(false));
    }
    assert_eq!(12, probes, "one in five seconds of a minute");
}

#[test]
fn one_answer_closes_it_and_the_failures_before_are_forgotten() {
    let mut rig = Rig::new();
    while !rig.is_open() {
        rig.asks(false);
    }
    rig.passes(COOL_DOWN);
    assert!(rig.asks(true));
    assert!(!rig.is_open());
    for _ in 0..19 {
        assert!(rig.asks(false), "it takes twenty new calls");
    }
}

#[test]
fn a_probe_that_never_ends_does_not_keep_it_open_for_ever() {
    let mut rig = Rig::new();
    while !rig.is_open() {
        rig.asks(false);
    }
    rig.passes(COOL_DOWN);
    assert!(rig.breaker.admits(rig.now, COOL_DOWN), "whose caller goes away");
    rig.passes(COOL_DOWN);
    assert!(rig.asks(true));
}

#[test]
fn a_new_link_is_probed_at_once_by_one() {
    let mut rig = Rig::new();
    while !rig.is_open() {
        rig.asks(false);
    }
    rig.breaker.renewed(rig.now);
    assert!(rig.breaker.admits(rig.now, COOL_DOWN));
    assert!(!rig.breaker.admits(rig.now, COOL_DOWN));
}

/// One thing that happens: time, and whether an answer would be good.
fn events() -> impl Strategy<Value = Vec<(u64, bool)>> {
    proptest::collection::vec((0_u64..2_000, any::<bool>()), 1..400)
}

proptest! {
    #[test]
    fn it_opens_exactly_when_the_window_says_so(events in events()) {
        let mut rig = Rig::new();
        let mut calls: Vec<(Instant, bool)> = Vec::new();
        for (pause_ms, good) in events {
            // Quarters of a second, as the supervisor ticks.
            for _ in 0..pause_ms / 250 {
                rig.passes(Duration::from_millis(250));
                if !rig.is_open() {
                    rig.tick();
                }
            }
            if rig.is_open() {
                break;
            }
            rig.asks(good);
            calls.push((rig.now, good));
            // The window's edge is exact to a second: whatever both edges agree on must be so.
            let opens = |window: Duration| {
                let inside: Vec<_> = calls.iter().filter(|(at, _)| rig.now - *at < window).collect();
                let failed = inside.iter().filter(|(_, good)| !good).count();
                !good && inside.len() >= 20 && 2 * failed >= inside.len()
            };
            if rig.is_open() {
                let some_window = (0..=9).any(|step| opens(WINDOW + SAMPLE_EVERY * step / 8));
                prop_assert!(some_window, "opened without a reason");
            } else {
                let all_windows = (0..=9).all(|step| opens(WINDOW + SAMPLE_EVERY * step / 8));
                prop_assert!(!all_windows, "stayed closed");
            }
        }
    }

    #[test]
    fn probes_are_never_closer_than_the_pause(
        events in events(), pauses in proptest::collection::vec(1_000_u64..=5_000, 400),
    ) {
        let mut breaker = Breaker::default();
        let mut now = Instant::now();
        breaker.sample(now, Tally::default());
        let opened = breaker.failed(now, Tally { decided: 0, failed: 20 }, COOL_DOWN);
        prop_assert!(opened.is_some());
        let mut earliest = now + COOL_DOWN;
        for ((step_ms, _), pause_ms) in events.into_iter().zip(pauses) {
            now += Duration::from_millis(step_ms);
            let pause = Duration::from_millis(pause_ms);
            let probes = breaker.admits(now, pause);
            prop_assert_eq!(now >= earliest, probes);
            if probes {
                earliest = now + pause;
            }
        }
    }
}
