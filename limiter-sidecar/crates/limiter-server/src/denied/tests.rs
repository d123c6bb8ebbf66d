// SPDX-License-Identifier: Apache-2.0
mod exact;
mod world;

use limiter_core::{CheckReply, Outcome};
use serde_json::json;

use self::world::{Site, World, ruleset};
use super::*;

fn moment(world: &World, after: Duration) -> Moment {
    Moment { local: world.local() + after, store_us: world.store_us(), links: 0, revision: 1 }
}

/// The waits and the number of rules in what is found after a refusal with this wait.
fn found(world: &World, denied: &Denied, prepared: &Prepared<'_>, after: Duration) -> Option<Vec<CheckReply>> {
    let call = prepared.store_calls(None).remove(0);
    Some(denied.find(&call, prepared, moment(world, after))?.reply.checks)
}

fn refused(wait: Wait) -> CheckReply {
    CheckReply { ok: false, remaining: 0, wait, reset_us: 900_000 }
}

fn remember(world: &World, denied: &Denied, prepared: &Prepared<'_>, checks: &[CheckReply]) {
    let call = prepared.store_calls(None).remove(0);
    let reply = Reply { allowed: false, now_us: world.store_us(), checks: checks.to_vec() };
    denied.remember((&call, &reply), prepared, false, moment(world, Duration::ZERO), world.local());
}

fn denied(most: usize) -> Denied {
    Denied::new(most, Arc::new(Metrics::new()))
}

#[test]
fn a_refusal_is_repeated_with_the_wait_that_is_left_until_a_millisecond_before_its_end() {
    let (world, ruleset, denied) = (World::new(), ruleset(0), denied(10));
    Site::Plain.ask("k", &ruleset, &world, |prepared| {
        remember(&world, &denied, prepared, &[refused(Wait::Us(300_000)), refused(Wait::Us(100_000))]);
        let waits = |after_ms| {
            let checks = found(&world, &denied, prepared, Duration::from_millis(after_ms))?;
            Some(checks.iter().map(|check| (check.wait, check.reset_us)).collect::<Vec<_>>())
        };
        let ms = |wait: u64, reset: u64| (Wait::Us(wait * 1_000), reset * 1_000);
        assert_eq!(Some(vec![ms(250, 850), ms(50, 850)]), waits(50));
        assert_eq!(Some(vec![ms(150, 750)]), waits(150), "what has run out does not refuse any more");
        assert_eq!(Some(vec![ms(2, 602)]), waits(298));
        assert_eq!(None, waits(299));
    });
    assert_eq!(3, denied.report().hits);
}

#[test]
fn the_longest_life_is_a_second_also_where_no_wait_helps() {
    let (world, ruleset, denied) = (World::new(), ruleset(0), denied(10));
    Site::Plain.ask("k", &ruleset, &world, |prepared| {
        remember(&world, &denied, prepared, &[refused(Wait::Never), refused(Wait::Never)]);
        let checks = found(&world, &denied, prepared, Duration::from_millis(998)).unwrap();
        assert_eq!(vec![Wait::Never; 2], checks.iter().map(|check| check.wait).collect::<Vec<_>>());
        assert!(found(&world, &denied, prepared, Duration::from_millis(999)).is_none());
    });
}

#[test]
fn other_rules_another_link_or_a_store_that_is_ahead_ask_again() {
    let (world, ruleset, denied) = (World::new(), ruleset(0), denied(10));
    Site::Plain.ask("k", &ruleset, &world, |prepared| {
        remember(&world, &denied, prepared, &[refused(Wait::Us(500_000)); 2]);
        let call = prepared.store_calls(None).remove(0);
        let now = moment(&world, Duration::ZERO);
        let finds = |now| denied.find(&call, prepared, now).is_some();
        assert!(finds(now));
        assert!(!finds(Moment { links: 1, ..now }));
        assert!(!finds(Moment { revision: 2, ..now }));
        assert!(!finds(Moment { store_us: now.store_us + 499_000, ..now }));
    });
}

#[test]
fn rules_in_shadow_were_not_evaluated() {
    let (world, ruleset, denied) = (World::new(), world::with_shadow(), denied(10));
    Site::Plain.ask("k", &ruleset, &world, |prepared| {
        let passed = CheckReply { ok: true, remaining: 3, wait: Wait::Us(0), reset_us: 0 };
        remember(&world, &denied, prepared, &[refused(Wait::Us(500_000)), passed, refused(Wait::Us(1))]);
        let call = prepared.store_calls(None).remove(0);
        let part = denied.find(&call, prepared, moment(&world, Duration::ZERO)).unwrap();
        let verdict = prepared.verdict(&[part]).unwrap();
        assert_eq!(vec![Outcome::Rejected, Outcome::Allowed, Outcome::NotEvaluated], verdict.outcomes);
        assert_eq!(Some(Wait::Us(500_000)), verdict.wait);
    });
}

#[test]
fn what_may_be_given_back_is_not_remembered() {
    let (world, ruleset, denied) = (World::new(), ruleset(0), denied(10));
    Site::Held.ask("k", &ruleset, &world, |prepared| {
        remember(&world, &denied, prepared, &[refused(Wait::Us(500_000)); 2]);
        assert!(found(&world, &denied, prepared, Duration::ZERO).is_none());
    });
}

#[test]
fn the_oldest_makes_room_and_what_is_over_does_not_count_as_evicted() {
    let (mut world, ruleset, denied) = (World::new(), ruleset(0), denied(2));
    let refuse = |world: &World, key: &str| {
        Site::Plain.ask(key, &ruleset, world, |prepared| {
            remember(world, &denied, prepared, &[refused(Wait::Us(500_000)); 2]);
        });
    };
    for key in ["a", "a", "b", "c"] {
        refuse(&world, key);
    }
    let report = denied.report();
    assert_eq!((2, 1), (report.entries, report.evictions));
    world.pass(2_000_000);
    refuse(&world, "d");
    let report = denied.report();
    assert_eq!((1, 1), (report.entries, report.evictions));
    assert!(json!(report)["most"] == 2);
}

#[test]
fn a_cache_of_none_remembers_nothing() {
    let (world, ruleset, denied) = (World::new(), ruleset(0), denied(0));
    Site::Plain.ask("k", &ruleset, &world, |prepared| {
        remember(&world, &denied, prepared, &[refused(Wait::Us(500_000)); 2]);
        assert!(found(&world, &denied, prepared, Duration::ZERO).is_none());
    });
    assert_eq!(0, denied.report().entries);
}
