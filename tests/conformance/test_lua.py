# SPDX-License-Identifier: Apache-2.0
"""The scripts in real stores: the vectors, and what only a store can show (TTL, atomic writes, its clock, cluster)."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha1
from typing import Any

import pytest
import redis

import vector
import wire
from lab.store import StoreCluster
from model import (
    BucketRecord,
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    Limit,
    Model,
    Rule,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)
from reading import START_US as NOW
from script import DECIDE, Script

MINUTE_US, DAY_US = 60_000_000, 86_400_000_000
MINUTE = TokenBucket(requests=10, period_us=MINUTE_US, burst=10)
DIGEST = sha1(DECIDE.encode(), usedforsecurity=False).hexdigest()
LIMITS: dict[str, Limit] = {
    "token...": MINUTE,
    "leaky...": LeakyBucket(requests=10, period_us=MINUTE_US, queue=9, max_delay_us=MINUTE_US),
    "fixed...": FixedWindow(requests=10, period_us=MINUTE_US),
    "counter.": SlidingWindowCounter(requests=10, period_us=MINUTE_US),
    "log.....": SlidingWindowLog(requests=10, period_us=MINUTE_US),
    "calendar": CalendarWindow(requests=10, edges_us=(NOW - DAY_US, NOW, NOW + DAY_US, NOW + 2 * DAY_US)),
}

every_algorithm = pytest.mark.parametrize("name", LIMITS)


def rule(limit: Limit = MINUTE, *, key: str = "subject", name: str = "minute..", **more: Any) -> Rule:
    return Rule(key, name, limit, **more)


def all_rules(**more: Any) -> list[Rule]:
    return [rule(limit, name=name, **more) for name, limit in LIMITS.items()]


@pytest.mark.parametrize("case", vector.parameters())
def test_script_agrees_with_the_vector(case: vector.Vector, script: Script) -> None:
    vector.play(case, script)


def test_stored_bytes_are_the_records_of_the_model(script: Script) -> None:
    calls = [
        (NOW, all_rules(cost=2)),
        (NOW + 1000, [rule(TokenBucket(333, 1_000_000, 999), key="other", name="other...", cost=500)]),
        (NOW + 2000, [rule(TokenBucket(20, MINUTE_US, 30)), rule(name="shadow..", enforcing=False), *all_rules()]),
    ]
    model = Model()
    assert script.decide_all(calls) == model.decide_all(calls)
    script.check_same_state(model)


@pytest.mark.requirement("R08")
@pytest.mark.parametrize("requests", [1, 7, 333, 1000, 300_000])
@pytest.mark.parametrize("period_us", [1000, 1_000_000, 2_678_400_000_000])
def test_every_write_leaves_a_ttl_that_is_bounded_by_the_time_to_full(
    script: Script, requests: int, period_us: int
) -> None:
    """D38: a counter without a TTL blocks its subject for ever, and one with TTL 0 is gone at once."""
    limit = TokenBucket(requests, period_us, burst=min(2 * requests, 1000))
    bound_ms = -(-limit.burst * limit.period_us // (limit.requests * 1000)) + 1
    for turn in range(5):
        writes = script.writes
        reply = script.decide(NOW + turn * period_us // 3, [rule(limit)])
        assert (script.writes > writes) == bool(reply[0])
        assert 0 <= script.ttl_ms["subject"] <= bound_ms


@pytest.mark.requirement("R08")
@every_algorithm
@pytest.mark.parametrize("enforcing", [True, False])
def test_every_key_of_every_algorithm_has_a_ttl_by_the_clock_of_the_store(
    script: Script, name: str, enforcing: bool
) -> None:
    """D38: read without the transaction that keeps keys alive for the other tests; two windows are the longest."""
    asked = rule(LIMITS[name], name=name, cost=3, enforcing=enforcing)
    key = script.stored_key(asked.stored_under)
    for _ in range(5):
        script.client.eval(DECIDE, 1, key, wire.plan([asked]), NOW)
        assert 0 < script.client.pttl(key) <= (DAY_US if name == "calendar" else 2 * MINUTE_US) // 1000 + 1


@pytest.mark.requirement("R10")
def test_refusal_writes_nothing_to_any_key(script: Script) -> None:
    """D04, D08: neither the refusing rule, nor one that had room, nor a shadow rule."""
    room = [*all_rules(key="room"), rule(key="shadow", name="shadow..", enforcing=False)]
    script.decide_all([(NOW, [rule(cost=10)]), (NOW, room)])
    keys = wire.keys([*room, rule()])
    before = [script.client.dump(script.stored_key(key)) for key in keys]
    writes = script.writes
    assert script.decide(NOW + 1000, [*room, rule()])[0] == 0
    assert [script.client.dump(script.stored_key(key)) for key in keys] == before
    assert script.writes == writes


@every_algorithm
def test_first_refusal_and_asking_for_nothing_create_no_key(script: Script, name: str) -> None:
    refusing = rule(TokenBucket(1, MINUTE_US, 1), key="other", cost=2)
    assert script.decide(NOW, [rule(LIMITS[name], name=name), refusing])[0] == 0
    assert script.decide(NOW, [rule(LIMITS[name], name=name, cost=0)])[0] == 1
    assert script.client.exists(script.stored_key("subject"), script.stored_key(f"subject:{name}")) == 0


def test_record_that_has_nothing_left_to_say_is_dropped_with_the_next_write(script: Script) -> None:
    script.decide_all([(NOW, all_rules()), (NOW + 2 * MINUTE_US, [rule(name="charged.")])])
    assert set(script.records("subject")) == {"charged.", "calendar"}


def test_times_outside_the_edges_of_a_calendar_decide_nothing(script: Script) -> None:
    """A limiter with a wrong clock is told the time, and asks once more."""
    for now_us in (NOW - DAY_US - 1, NOW + 2 * DAY_US):
        assert script.decide(now_us, all_rules()) == [-1, now_us]
    assert script.writes == 0
    assert script.decide(NOW - DAY_US, all_rules())[0] == 1


@pytest.mark.requirement("R08")
def test_memory_of_a_log_follows_its_limit_and_not_its_traffic(script: Script) -> None:
    """10,000 requests of a limit of 1,000 per second: no more than a quarter of the entries is kept too long."""
    limit = SlidingWindowLog(requests=1000, period_us=1_000_000)
    key = script.stored_key("subject:log.....")
    for turn in range(10):
        script.decide_all([(NOW + turn * 1_000_000 + n * 1000, [rule(limit, name="log.....")]) for n in range(1000)])
        assert script.client.strlen(key) <= 24 + 8 * 1252
        assert int(script.client.memory_usage(key) or 0) <= 24_000
    assert script.decide(NOW + 10_000_000, [rule(limit, name="log.....", cost=0)])[3] == 1


def test_refund_leaves_no_key_behind_and_keeps_the_expiry_of_others(script: Script) -> None:
    rules = all_rules()
    script.decide(NOW, rules)
    script.refund(NOW, NOW, rules)
    assert script.client.exists(*map(script.stored_key, wire.keys(rules))) == 0
    key = script.stored_key("subject")
    script.client.eval(DECIDE, 1, key, wire.plan([rule(name="stays..."), rule()]), NOW)
    script.refund(NOW, NOW, [rule()])
    assert set(script.records("subject")) == {"stays..."}
    assert 5000 < script.client.pttl(key) <= 6001


def test_without_a_given_time_the_clock_is_that_of_the_store(script: Script) -> None:
    seconds, micros = script.client.time()
    reply = wire.integers(script.client.eval(DECIDE, 1, script.stored_key("subject"), wire.plan([rule()])))
    later_seconds, later_micros = script.client.time()
    record = script.records("subject")["minute.."]
    assert isinstance(record, BucketRecord)
    assert seconds * 1_000_000 + micros <= record.at_us <= later_seconds * 1_000_000 + later_micros
    assert reply[1] == record.at_us


@pytest.mark.requirement("R10")
def test_script_is_found_again_after_the_store_has_forgotten_it(script: Script) -> None:
    """D32: a flush answers NOSCRIPT, which has charged nothing; the same call with the source is counted once."""
    sha = script.client.script_load(DECIDE)
    call = (script.stored_key("subject"), wire.plan([rule()]), NOW)
    script.client.evalsha(sha, 1, *call)
    script.client.script_flush()
    with pytest.raises(redis.exceptions.NoScriptError):
        script.client.evalsha(sha, 1, *call)
    assert wire.integers(script.client.eval(DECIDE, 1, *call))[:4] == [1, NOW, 1, 8]


def test_reply_is_whole_numbers_only_whatever_the_rules(script: Script) -> None:
    """D15: a fraction would be cut off."""
    rules = [
        rule(TokenBucket(n, 1_000_000, n), name=f"rule-{n:03}", cost=n % 3, enforcing=n % 2 == 0) for n in range(1, 40)
    ]
    assert len(script.decide(NOW + 1, rules)) == 2 + 4 * len(rules)


@pytest.mark.requirement("R54")
def test_script_decides_on_every_node_of_a_cluster(cluster: StoreCluster) -> None:
    """D32, D33: subjects spread over the nodes, the keys of one meet in one slot, and each node learns the script."""
    model = Model()
    with cluster.client() as client:
        for subject in map(str, range(30)):
            for turn in range(4):
                rules = [rule(TokenBucket(2, MINUTE_US, 2), key="login"), *all_rules(key="api")]
                keys = [f"weir:2:{{{subject}}}:{key}" for key in wire.keys(rules)]
                reply = evaluate(client, keys, [wire.plan(rules), NOW + turn])
                expected = model.decide(NOW + turn, [replace(r, key=f"{subject}.{r.key}") for r in rules])
                assert wire.integers(reply) == expected
    for node in cluster.nodes:
        with node.client() as client:
            assert client.dbsize() > 0


@pytest.mark.requirement("R54")
def test_keys_of_two_subjects_in_one_call_are_an_error_on_a_cluster_and_never_an_allowance(
    cluster: StoreCluster,
) -> None:
    """D33: the limiter has to ask once per subject there; the store says so instead of deciding on half of the keys."""
    plan = wire.plan([rule(key="a"), rule(key="b")])
    with cluster.nodes[0].client() as client, pytest.raises(redis.ResponseError, match=r"(?i)same slot"):
        client.eval(DECIDE, 2, "weir:2:{a}:x", "weir:2:{b}:x", plan, NOW)


def evaluate(client: redis.RedisCluster, keys: list[str], argv: list[bytes | int]) -> Any:
    """By digest, and with the source where a node does not know it: what the limiter does."""
    try:
        return client.evalsha(DIGEST, len(keys), *keys, *argv)
    except redis.exceptions.NoScriptError:
        return client.eval(DECIDE, len(keys), *keys, *argv)
