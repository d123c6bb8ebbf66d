// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::samples::{START_US, answered, decided};
use crate::{Answer, Ruleset};

const KEY: &[(&str, &str)] = &[("x-api-key", "k1"), CLIENT];

/// Kind, key, flags, id and numbers of one rule.
type Planned = (u8, u8, u8, [u8; 8], Vec<u64>);

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
fn integers(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|number| f64::from_be_bytes(*number) as u64).collect()
}

/// The rules of a plan.
fn read(mut plan: &[u8]) -> Vec<Planned> {
    let mut rules = Vec::new();
    while let [kind, key, flags, rest @ ..] = plan {
        let (id, rest) = rest.split_first_chunk::<8>().unwrap();
        let (numbers, following) = rest.split_at(if *kind == 6 { 64 } else { 32 });
        rules.push((*kind, *key, *flags, *id, integers(numbers)));
        plan = following;
    }
    rules
}

fn only(calls: Vec<StoreCall>) -> StoreCall {
    let [call] = <[StoreCall; 1]>::try_from(calls).unwrap();
    call
}

/// A rule of each algorithm, the last two keyed otherwise.
fn six() -> Ruleset {
    let window = |algorithm: &str| json!({"algorithm": algorithm, "requests": 9, "periodUs": 60_000_000});
    let leaky = json!({"algorithm": "LeakyBucket", "requests": 10, "periodUs": 1_000_000, "queue": 0, "maxDelayUs": 0});
    let calendar = json!({"algorithm": "FixedWindow", "requests": 9, "calendar": "Day", "timeZone": "UTC"});
    one_policy(json!([
        rule(json!({"limit": limit(7, 1_000_000, 14)})),
        rule(json!({"name": "even", "limit": leaky})),
        rule(json!({"name": "log", "limit": window("SlidingWindowLog")})),
        rule(json!({"name": "window", "limit": window("FixedWindow"), "mode": "Shadow"})),
        rule(json!({"name": "two", "limit": window("SlidingWindowCounter"), "key": by_client()})),
        rule(json!({"name": "day", "limit": calendar, "key": by_client()}))
    ]))
}

#[test]
fn the_plan_has_a_rule_after_the_other_as_the_script_reads_them() {
    let ruleset = six();
    let prepared = get("/", KEY).prepare(&ruleset);
    let call = only(prepared.store_calls(None));
    let start = 1_764_547_200_000_000;
    let day = 86_400_000_000;
    let expected = [
        (1, 1, 1, vec![1_000_000, 14_000_000, 1_000_000, 7]),
        (2, 1, 1, vec![100_000, 100_000, 100_000, 1]),
        (5, 2, 1, vec![1, 9, 60_000_000, 0]),
        (3, 1, 0, vec![1, 9, 60_000_000, 0]),
        (4, 3, 1, vec![1, 9, 60_000_000, 0]),
        (6, 3, 1, vec![1, 9, 0, 0, start - day, start, start + day, start + 2 * day]),
    ];
    let ids = ruleset.rules().map(|(_, rule)| rule.id);
    let expected: Vec<_> = expected
        .into_iter()
        .zip(ids)
        .map(|((kind, key, flags, numbers), id)| (kind, key, flags, id, numbers))
        .collect();
    assert_eq!((expected, vec![0, 1, 2, 3, 4, 5]), (read(&call.plan), call.checks));
}

#[test]
fn a_log_has_a_key_of_its_own_in_the_slot_of_its_subject() {
    let ruleset = six();
    let call = only(get("/", KEY).prepare(&ruleset).store_calls(None));
    let keys: Vec<String> = call.keys.iter().map(|key| String::from_utf8(key.as_bytes().to_vec()).unwrap()).collect();
    assert_eq!(vec![43, 55, 43], keys.iter().map(String::len).collect::<Vec<_>>());
    assert!(keys[1].starts_with(&format!("{}:", keys[0])) && keys[0].starts_with("weir:2:{"), "{keys:?}");
}

#[test]
fn calendars_turn_with_the_clock() {
    let ruleset = six();
    let mut prepared = get("/", KEY).prepare(&ruleset);
    prepared.set_clock(START_US + 3 * 86_400_000_000);
    let plan = only(prepared.store_calls(None)).plan;
    assert_eq!(1_764_547_200_000_000 + 2 * 86_400_000_000, read(&plan)[5].4[4]);
}

#[test]
fn keys_of_several_slots_make_several_calls() {
    let ruleset = six();
    let prepared = get("/", KEY).prepare(&ruleset);
    let last = *prepared.keys().last().unwrap();
    let calls = prepared.store_calls(Some(&|key| u16::from(*key == last)));
    assert_eq!(vec![vec![0, 1, 2, 3], vec![4, 5]], calls.iter().map(|call| call.checks.clone()).collect::<Vec<_>>());
    assert_eq!(vec![1, 1], read(&calls[1].plan).iter().map(|rule| rule.1).collect::<Vec<_>>());
}

#[test]
fn a_call_has_no_more_keys_than_its_plan_can_count() {
    let policies: Vec<_> =
        (0..300).map(|place| policy(&format!("team/p{place:03}"), json!([rule(json!({}))]), json!({}))).collect();
    let ruleset = ruleset(Value::Array(policies), json!([]));
    let calls = get("/", KEY).prepare(&ruleset).store_calls(None);
    assert_eq!(vec![255, 45], calls.iter().map(|call| call.keys.len()).collect::<Vec<_>>());
    assert_eq!(255, read(&calls[0].plan)[254].1);
}

#[test]
fn only_what_was_charged_is_given_back() {
    let free = json!([{"match": {"path": "/", "methods": []}, "cost": 0}]);
    let calendar = json!({"algorithm": "FixedWindow", "requests": 9, "calendar": "Day", "timeZone": "UTC"});
    let ruleset = one_policy(json!([
        rule(json!({"limit": calendar})),
        rule(json!({"name": "free", "cost": free})),
        rule(json!({"name": "dry", "mode": "Shadow"})),
        rule(json!({"name": "last"}))
    ]));
    let prepared = get("/", KEY).prepare(&ruleset);
    let call = only(prepared.store_calls(None));
    let reply = answered(&prepared, true, &[1, 8, 0, 0, 1, 5, 0, 0, 0, 0, 9, 0, 1, 4, 0, 900_000]).reply;
    let charged = call.charged(&reply).unwrap();
    let mut rules = read(&call.plan);
    // Of a bucket with what it owed before, and a microsecond less.
    rules[3].4[1] = 900_000 - 1 - rules[3].4[0];
    assert_eq!((vec![rules[0].clone(), rules[3].clone()], vec![0, 3]), (read(&charged.plan), charged.checks));
    let refused = answered(&prepared, false, &[1, 8, 0, 0, 0, 5, 0, 0, 0, 0, 9, 0, 1, 4, 0, 0]).reply;
    assert_eq!(None, call.charged(&refused));
}

#[test]
fn rules_of_one_instance_stay_out_of_the_store() {
    let ruleset = one_policy(json!([
        rule(json!({})),
        rule(json!({"name": "own", "scope": "Instance"})),
        rule(json!({"name": "dry", "scope": "Instance", "mode": "Shadow"}))
    ]));
    let prepared = get("/", KEY).prepare(&ruleset);
    assert!(prepared.needs_store() && prepared.needs_memory());
    assert_eq!(vec![0], only(prepared.store_calls(None)).checks);
    let local = prepared.local_call();
    assert_eq!(vec![1, 2], local.checks);
    assert_eq!(vec![true, false], local.charges.iter().map(|charge| charge.enforcing).collect::<Vec<_>>());
}

#[test]
fn what_memory_charged_can_be_given_back() {
    let own = |name: &str, mode: &str| rule(json!({"name": name, "scope": "Instance", "mode": mode}));
    let ruleset = one_policy(json!([own("own", "Enforce"), own("dry", "Shadow")]));
    let prepared = get("/", KEY).prepare(&ruleset);
    let local = prepared.local_call();
    let mut counters = crate::LocalCounters::default();
    let Answer::Decided(reply) = counters.decide(START_US, &local.charges) else { panic!("no edges") };
    counters.refund(START_US, reply.now_us, &local.charged(&reply));
    assert!(counters.is_empty());
    let part = local.answered(&reply);
    assert_eq!(2, prepared.verdict(&[part]).unwrap().checks.len());
    assert_eq!(2, decided(&prepared, counters.decide(START_US, &prepared.charges())).checks.len());
}
