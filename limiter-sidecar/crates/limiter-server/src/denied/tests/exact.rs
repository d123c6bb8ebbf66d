// SPDX-License-Identifier: Apache-2.0
//! Two limiters, a store, and everything that may happen between: nobody is refused here whom the store would admit.

use std::sync::LazyLock;

use limiter_core::Ruleset;
use proptest::prelude::*;

use super::world::{Site, World, ruleset};
use super::*;

const CLIENTS: [&str; 4] = ["a", "b", "a/", "b/"];
const LIMITERS: usize = 2;
const LEVELS: usize = 5;

/// By level.
static RULESETS: LazyLock<Vec<Ruleset>> = LazyLock::new(|| (0..LEVELS as u64).map(ruleset).collect());

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// A client asks; the question and its answer take so long on their ways.
    Ask { limiter: usize, site: Site, client: &'static str, ways_us: (u64, u64) },
    /// Time passes.
    Pass(u64),
    /// The limits change, and may change back.
    Change(usize),
    /// The store's clock is set forward, and every limiter hears of it by some answer.
    Step(u64),
    /// The link of everybody to the store breaks, and the store has forgotten everything.
    Forget,
    /// One of the charges of held requests is given back.
    GiveBack(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let site = prop_oneof![3 => Just(Site::Plain), 1 => Just(Site::Held)];
    let ask = (0..LIMITERS, site, prop::sample::select(&CLIENTS), (0..3_000_u64, 0..3_000_u64));
    prop_oneof![
        12 => ask.prop_map(|(limiter, site, client, ways_us)| Event::Ask { limiter, site, client, ways_us }),
        5 => (0..250_000_u64).prop_map(Event::Pass),
        1 => (0..LEVELS).prop_map(Event::Change),
        1 => (0..600_000_u64).prop_map(Event::Step),
        1 => Just(Event::Forget),
        2 => any::<usize>().prop_map(Event::GiveBack),
    ]
}

/// What is the same for all limiters.
struct Common {
    level: usize,
    revision: u64,
    links: u64,
    /// Charges of requests that may be held, with their times.
    charges: Vec<(StoreCall, u64)>,
}

/// Asks as a limiter does, and says whether it answered without the store. Panics on a false refusal.
fn ask(
    world: &mut World,
    common: &mut Common,
    denied: &Denied,
    (site, client): (Site, &str),
    ways: (u64, u64),
) -> bool {
    site.ask(client, &RULESETS[common.level], &World::new(), |prepared| {
        let call = prepared.store_calls(None).remove(0);
        let Common { links, revision, .. } = *common;
        let sent = Moment { local: world.local(), store_us: world.store_us(), links, revision };
        if denied.find(&call, prepared, sent).is_some() {
            assert!(!world.would_admit(&call), "refused although the store would admit");
            return true;
        }
        world.pass(ways.0);
        let reply = world.decide(&call);
        world.pass(ways.1);
        if !reply.allowed {
            denied.remember((&call, &reply), prepared, false, sent, world.local());
        } else if let Some(charged) = call.charged(&reply).filter(|_| matches!(site, Site::Held)) {
            common.charges.push((charged, reply.now_us));
        }
        false
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_refused_whom_the_store_would_admit(events in prop::collection::vec(event(), 1..120)) {
        let mut world = World::new();
        let limiters: Vec<Denied> = (0..LIMITERS).map(|_| denied(3)).collect();
        let mut common = Common { level: 0, revision: 1, links: 0, charges: Vec::new() };
        for event in events {
            match event {
                Event::Ask { limiter, site, client, ways_us } => {
                    ask(&mut world, &mut common, &limiters[limiter], (site, client), ways_us);
                }
                Event::Pass(us) => world.pass(us),
                Event::Change(level) => {
                    common.level = level;
                    common.revision += 1;
                }
                Event::Step(us) => world.step(us),
                Event::Forget => {
                    world.store = limiter_core::counters::Counters::default();
                    common.charges.clear();
                    common.links += 1;
                }
                Event::GiveBack(which) if !common.charges.is_empty() => {
                    let (call, at_us) = common.charges.swap_remove(which % common.charges.len());
                    world.give_back(&call, at_us);
                }
                Event::GiveBack(_) => {}
            }
        }
    }
}

/// The property above would hold for a cache that is never asked.
#[test]
fn most_of_a_flood_is_answered_here() {
    let mut world = World::new();
    let mut common = Common { level: 0, revision: 1, links: 0, charges: Vec::new() };
    let denied = denied(3);
    let mut here = 0;
    for _ in 0..1_000 {
        here += usize::from(ask(&mut world, &mut common, &denied, (Site::Plain, "a"), (100, 100)));
        world.pass(900);
    }
    assert!(here > 950, "{here}");
}
