// SPDX-License-Identifier: Apache-2.0
//! A store in memory with a clock of its own, and rulesets at several limits.

use std::collections::BTreeMap;

use limiter_core::counters::{Charge, Counters};
use limiter_core::limit::{Demand, Kind};
use limiter_core::ruleset::digest_of;
use limiter_core::{BucketKey, HashKey, NoClaims, Request, Ruleset};
use serde_json::{Value, json};

use super::super::*;

/// A start time with as many digits as in production: 2025-12-01 in µs.
const START_US: u64 = 1_764_547_200_000_000;

/// The store and its time.
pub(super) struct World {
    pub(super) store: Counters<BucketKey>,
    born: Instant,
    passed_us: u64,
    stepped_us: u64,
}

/// Where requests go: to a policy that nobody meets, or to one whose requests may be held and given back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Site {
    Plain,
    Held,
}

impl World {
    pub(super) fn new() -> Self {
        Self { store: Counters::default(), born: Instant::now(), passed_us: 0, stepped_us: 0 }
    }

    pub(super) fn pass(&mut self, us: u64) {
        self.passed_us += us;
    }

    /// Sets the store's clock forward.
    pub(super) fn step(&mut self, us: u64) {
        self.stepped_us += us;
    }

    /// A limiter's own clock.
    pub(super) fn local(&self) -> Instant {
        self.born + Duration::from_micros(self.passed_us)
    }

    /// The store's, which runs a little faster: 100 ppm.
    pub(super) fn store_us(&self) -> u64 {
        START_US + self.passed_us + self.passed_us / 10_000 + self.stepped_us
    }

    /// What the store decides.
    pub(super) fn decide(&mut self, call: &StoreCall) -> Reply {
        let now_us = self.store_us();
        match self.store.decide(now_us, &charges(call)) {
            limiter_core::Answer::Decided(reply) => reply,
            limiter_core::Answer::Stale { .. } => panic!("no rule has a calendar"),
        }
    }

    /// What it would decide, without doing so.
    pub(super) fn would_admit(&self, call: &StoreCall) -> bool {
        let mut store = self.store.clone();
        match store.decide(self.store_us(), &charges(call)) {
            limiter_core::Answer::Decided(reply) => reply.allowed,
            limiter_core::Answer::Stale { .. } => panic!("no rule has a calendar"),
        }
    }

    pub(super) fn give_back(&mut self, call: &StoreCall, charged_at_us: u64) {
        let now_us = self.store_us();
        self.store.refund(now_us, charged_at_us, &charges(call));
    }
}

impl Site {
    /// Prepares a request of one client, which costs three at `/heavy`.
    pub(super) fn ask<R>(
        self,
        target: &str,
        ruleset: &Ruleset,
        world: &World,
        then: impl FnOnce(&mut Prepared<'_>) -> R,
    ) -> R {
        let (key, path) = target.split_once('/').map_or((target, "/"), |(key, _)| (key, "/heavy"));
        let headers: BTreeMap<&str, &str> = [("x-api-key", key)].into();
        let host = if matches!(self, Self::Plain) { "plain.example.com" } else { "held.example.com" };
        let (method, path, claims) = ("GET", path.as_bytes(), &NoClaims);
        let request = Request { method, host, path, headers: &headers, principal: b"", claims };
        then(&mut ruleset.prepare(&request, world.store_us()))
    }
}

/// The rules at one of several levels of their limits; all have the same names, so their counters go on.
pub(super) fn ruleset(level: u64) -> Ruleset {
    parse(&[rule("first", &bucket(level)), rule("second", &other(level))])
}

/// The same with a rule in shadow.
pub(super) fn with_shadow() -> Ruleset {
    let mut shadow = rule("third", &bucket(0));
    shadow["mode"] = json!("Shadow");
    parse(&[rule("first", &bucket(0)), rule("second", &other(0)), shadow])
}

/// Slow and fast, so that a wait at one level is short at another.
fn bucket(level: u64) -> Value {
    let (requests, burst) = [(2, 3), (40, 3), (1, 6), (7, 4)][usize::try_from(level % 4).unwrap()];
    json!({"algorithm": "TokenBucket", "requests": requests, "periodUs": 1_000_000, "burst": burst})
}

fn other(level: u64) -> Value {
    let requests = 4 + level % 3;
    match level % 5 {
        0 | 1 => json!({"algorithm": "SlidingWindowCounter", "requests": requests, "periodUs": 700_000}),
        2 => json!({"algorithm": "FixedWindow", "requests": requests, "periodUs": 600_000}),
        3 => json!({"algorithm": "SlidingWindowLog", "requests": requests, "periodUs": 500_000}),
        _ => bucket(level),
    }
}

fn rule(name: &str, limit: &Value) -> Value {
    json!({
        "name": name, "mode": "Enforce", "key": [{"header": "x-api-key"}], "onMissingKey": "Skip", "limit": limit,
        "cost": [{"match": {"path": "/heavy", "methods": []}, "cost": 3}], "onStoreFailure": "Open",
        "visibility": "Public", "code": "rate_limited"
    })
}

fn parse(rules: &[Value]) -> Ruleset {
    let leaky =
        json!({"algorithm": "LeakyBucket", "requests": 9, "periodUs": 1_000_000, "queue": 3, "maxDelayUs": 400_000});
    let policy = |id: &str, host: &str, rules: &[Value]| {
        json!({
            "id": id, "generation": 1, "match": {"hosts": [host], "routes": []}, "exempt": [], "rules": rules,
            "response": {"headers": "RateLimit"}
        })
    };
    let holding = [&rules[..2], &[rule("even", &leaky)]].concat();
    let policies =
        [policy("team/held", "held.example.com", &holding), policy("team/plain", "plain.example.com", rules)];
    let mut document = json!({"format": 2, "gateway": "edge", "revision": 1, "policies": policies, "overrides": []});
    document["digest"] = json!(digest_of(&document).unwrap());
    let key = HashKey::new(b"a-key-that-only-this-test-has-and-knows").unwrap();
    Ruleset::parse(&serde_json::to_vec(&document).unwrap(), &key).unwrap()
}

/// What a call's plan asks for, as the script reads it.
fn charges(call: &StoreCall) -> Vec<Charge<BucketKey>> {
    let rules = call.plan.chunks_exact(43).map(|rule| {
        let kind = match rule[0] {
            1 => Kind::TokenBucket,
            2 => Kind::LeakyBucket,
            3 => Kind::FixedWindow,
            4 => Kind::SlidingWindowCounter,
            _ => Kind::SlidingWindowLog,
        };
        let number = |place: usize| {
            let number = f64::from_be_bytes(rule[11 + 8 * place..19 + 8 * place].try_into().unwrap());
            format!("{number:.0}").parse().unwrap()
        };
        let demand = Demand { kind, numbers: [0, 1, 2, 3].map(number), edges: [0; 4] };
        let key = call.keys[usize::from(rule[1]) - 1];
        Charge { key, id: rule[3..11].try_into().unwrap(), enforcing: rule[2] == 1, demand }
    });
    rules.collect()
}
