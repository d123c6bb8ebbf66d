// SPDX-License-Identifier: Apache-2.0
//! For tests: small documents with a right digest, and a limiter whose store is memory.
#![expect(clippy::needless_pass_by_value, reason = "json!(…) arguments read best by value")]

use serde_json::{Value, json};

use crate::counters::Counters;
use crate::subject::BucketKey;
use crate::{Answer, Claims, Delivery, HashKey, NoClaims, Part, Prepared, Reply, Request, Response, Ruleset, Verdict};

/// A start time with as many digits as in production: 2025-12-01 in µs.
pub(crate) const START_US: u64 = 1_764_547_200_000_000;

pub(crate) fn hash_key() -> HashKey {
    HashKey::new(b"an unguessable secret of 32 bytes or more").unwrap()
}

/// `base` with the members of `changes` in place of its own.
pub(crate) fn with(mut base: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!("changes must be an object") };
    for (name, value) in changes {
        base[name] = value;
    }
    base
}

/// A rule of 5 requests per second for each API key.
pub(crate) fn rule(changes: Value) -> Value {
    let rule = json!({
        "name": "burst", "mode": "Enforce", "key": [{"header": "x-api-key"}], "onMissingKey": "Skip",
        "limit": limit(5, 1_000_000, 5), "cost": [], "onStoreFailure": "Open", "visibility": "Public",
        "code": "rate_limited"
    });
    with(rule, changes)
}

pub(crate) fn limit(requests: u64, period_us: u64, burst: u64) -> Value {
    json!({"algorithm": "TokenBucket", "requests": requests, "periodUs": period_us, "burst": burst})
}

/// A policy for all requests.
pub(crate) fn policy(id: &str, rules: Value, changes: Value) -> Value {
    let policy = json!({
        "id": id, "generation": 7, "match": {"hosts": [], "routes": []}, "exempt": [], "rules": rules,
        "response": {"headers": "RateLimit"}
    });
    with(policy, changes)
}

/// A whole document, with its digest.
pub(crate) fn document(policies: Value, overrides: Value) -> Vec<u8> {
    signed(json!({"format": 2, "gateway": "edge", "revision": 176, "policies": policies, "overrides": overrides}))
}

/// The document with the digest that belongs to it.
pub(crate) fn signed(mut document: Value) -> Vec<u8> {
    document["digest"] = Value::String(crate::ruleset::digest_of(&document).unwrap());
    serde_json::to_vec(&document).unwrap()
}

pub(crate) fn ruleset(policies: Value, overrides: Value) -> Ruleset {
    Ruleset::parse(&document(policies, overrides), &hash_key()).unwrap()
}

/// One policy `team/api` with these rules.
pub(crate) fn one_policy(rules: Value) -> Ruleset {
    ruleset(json!([policy("team/api", rules, json!({}))]), json!([]))
}

/// SHA-256 in hex, as documents hold it.
pub(crate) fn sha256(value: &str) -> String {
    use sha2::Digest;
    crate::hex::encode(&sha2::Sha256::digest(value.as_bytes()))
}

pub(crate) fn get<'a>(path: &'a str, headers: &'a [(&'a str, &'a str)]) -> Call<'a> {
    Call { method: "GET", host: "api.example.com", path, headers, principal: "", claims: None }
}

/// A request that owns the list that [`Request`] borrows.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) principal: &'a str,
    pub(crate) claims: Option<&'a Value>,
}

impl Call<'_> {
    pub(crate) fn request<R>(&self, then: impl FnOnce(&Request<'_>) -> R) -> R {
        let headers: std::collections::BTreeMap<&str, &str> = self.headers.iter().copied().collect();
        then(&Request {
            method: self.method,
            host: self.host,
            path: self.path.as_bytes(),
            headers: &headers,
            principal: self.principal.as_bytes(),
            claims: self.claims.map_or(&NoClaims as &dyn Claims, |claims| claims),
        })
    }

    pub(crate) fn prepare<'r>(&self, ruleset: &'r Ruleset) -> Prepared<'r> {
        self.request(|request| ruleset.prepare(request, START_US))
    }
}

/// A limiter whose store is memory, too.
pub(crate) struct Limiter {
    pub(crate) ruleset: Ruleset,
    pub(crate) counters: Counters<BucketKey>,
    pub(crate) now_us: u64,
}

impl Limiter {
    pub(crate) fn new(ruleset: Ruleset) -> Self {
        Self { ruleset, counters: Counters::default(), now_us: START_US }
    }

    /// Decides a request and answers it.
    pub(crate) fn answer(&mut self, call: Call<'_>) -> (Verdict, Response<'_>) {
        let Self { ruleset, counters, now_us } = self;
        call.request(|request| {
            let prepared = ruleset.prepare(request, *now_us);
            let verdict = if prepared.needs_store() || prepared.needs_memory() {
                let answer = counters.decide(*now_us, &prepared.charges());
                prepared.verdict(&[decided(&prepared, answer)]).unwrap()
            } else {
                prepared.verdict_without_store()
            };
            let response = prepared.respond(request, &verdict, &delivery(*now_us));
            (verdict, response)
        })
    }

    /// Answers a request as if the store were away.
    pub(crate) fn answer_without_store(&self, call: Call<'_>) -> (Verdict, Response<'_>) {
        call.request(|request| {
            let prepared = self.ruleset.prepare(request, self.now_us);
            let verdict = prepared.verdict_on_store_failure(&[], None);
            let response = prepared.respond(request, &verdict, &delivery(self.now_us));
            (verdict, response)
        })
    }
}

/// One answer to all checks.
pub(crate) fn decided(prepared: &Prepared<'_>, answer: Answer) -> Part {
    let Answer::Decided(reply) = answer else { panic!("the edges are stale") };
    Part { checks: (0..prepared.check_count()).collect(), reply }
}

/// What a store that returns these numbers says to all checks.
pub(crate) fn answered(prepared: &Prepared<'_>, allowed: bool, checks: &[i64]) -> Part {
    let number = |value: i64| value.to_string().parse::<f64>().unwrap().to_be_bytes();
    let numbers = [i64::from(allowed), 1].into_iter().chain(checks.iter().copied());
    let bytes: Vec<u8> = numbers.flat_map(number).collect();
    decided(prepared, Reply::decode(&bytes, checks.len() / 4).unwrap())
}

pub(crate) fn delivery(now_us: u64) -> Delivery<'static> {
    Delivery { now_ms: now_us / 1_000, instance: "edge-0", sequence: 42, mode_header: true }
}

/// The value of a response header.
pub(crate) fn header<'a>(response: &'a Response<'_>, name: &str) -> Option<&'a str> {
    response.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
}
