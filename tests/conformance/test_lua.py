# SPDX-License-Identifier: Apache-2.0
"""The script in real stores: the vectors, and what only a store can show (TTL, atomic writes, its clock, cluster)."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha1
from typing import Any

import pytest
import redis

import vector
from lab.store import StoreCluster
from model import Limit, Model, Rule
from script import SOURCE, Script, arguments

MINUTE = Limit(requests=10, period_us=60_000_000, burst=10)
NOW = vector.START_US
DIGEST = sha1(SOURCE.encode(), usedforsecurity=False).hexdigest()


def rule(limit: Limit = MINUTE, *, key: str = "subject", name: str = "minute..", **more: Any) -> Rule:
    return Rule.of(limit, key=key, name=name, **more)


@pytest.mark.parametrize("case", vector.parameters())
def test_script_agrees_with_the_vector(case: vector.Vector, script: Script) -> None:
    vector.play(case, script)


def test_stored_bytes_are_the_records_of_the_model(script: Script) -> None:
    calls = [
        (NOW, [rule(), rule(Limit(7, 1_000_000, 7), name="seven...")]),
        (NOW + 1000, [rule(Limit(333, 1_000_000, 999), key="other", name="other...", cost=500)]),
        (NOW + 2000, [rule(Limit(20, 60_000_000, 30)), rule(name="shadow..", enforcing=False)]),
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
    limit = Limit(requests, period_us, burst=min(2 * requests, 1000))
    bound_ms = -(-limit.burst * limit.period_us // (limit.requests * 1000)) + 1
    for turn in range(5):
        writes = script.writes
        reply = script.decide(NOW + turn * period_us // 3, [rule(limit)])
        assert (script.writes > writes) == bool(reply[0])
        assert 0 <= script.ttl_ms["subject"] <= bound_ms


def test_key_expires_by_the_clock_of_the_store(script: Script) -> None:
    """D38: read without the transaction that keeps keys alive for the other tests."""
    key = script.stored_key("subject")
    script.client.eval(SOURCE, 1, key, *arguments("", [rule()]))
    assert 5000 < script.client.pttl(key) <= 6001


@pytest.mark.requirement("R10")
def test_refusal_writes_nothing_to_any_key(script: Script) -> None:
    """D04, D08: neither the refusing rule, nor one that had room, nor a shadow rule."""
    room = [rule(key="room", name="room...."), rule(key="shadow", name="shadow..", enforcing=False)]
    script.decide_all([(NOW, [rule(cost=10)]), (NOW, room)])
    before = [script.client.dump(script.stored_key(key)) for key in ("subject", "room", "shadow")]
    writes = script.writes
    assert script.decide(NOW + 1000, [*room, rule()])[0] == 0
    assert [script.client.dump(script.stored_key(key)) for key in ("subject", "room", "shadow")] == before
    assert script.writes == writes


def test_first_refusal_creates_no_key(script: Script) -> None:
    script.decide(NOW, [rule(cost=11)])
    assert script.client.exists(script.stored_key("subject")) == 0


def test_asking_for_nothing_creates_no_key(script: Script) -> None:
    script.decide(NOW, [rule(cost=0)])
    assert script.client.exists(script.stored_key("subject")) == 0


def test_record_that_has_drained_is_dropped_with_the_next_write(script: Script) -> None:
    script.decide_all([(NOW, [rule(name="drained.")]), (NOW + 6_000_000, [rule(name="charged.")])])
    assert set(script.records("subject")) == {"charged."}


def test_without_a_given_time_the_clock_is_that_of_the_store(script: Script) -> None:
    seconds, micros = script.client.time()
    script.client.eval(SOURCE, 1, script.stored_key("subject"), *arguments("", [rule()]))
    later_seconds, later_micros = script.client.time()
    at_us = script.records("subject")["minute.."].at_us
    assert seconds * 1_000_000 + micros <= at_us <= later_seconds * 1_000_000 + later_micros


@pytest.mark.requirement("R10")
def test_script_is_found_again_after_the_store_has_forgotten_it(script: Script) -> None:
    """D32: a flush answers NOSCRIPT, which has charged nothing; the same call with the source is counted once."""
    sha = script.client.script_load(SOURCE)
    call = (script.stored_key("subject"), *arguments(str(NOW), [rule()]))
    script.client.evalsha(sha, 1, *call)
    script.client.script_flush()
    with pytest.raises(redis.exceptions.NoScriptError):
        script.client.evalsha(sha, 1, *call)
    assert script.client.eval(SOURCE, 1, *call)[:3] == [1, 1, 8]


def test_reply_is_integers_only_whatever_the_rules(script: Script) -> None:
    """D15: a fraction would be cut off, a nil would end the array."""
    rules = [rule(Limit(n, 1_000_000, n), name=f"rule-{n:03}", cost=n % 3, enforcing=n % 2 == 0) for n in range(1, 40)]
    reply = script.decide(NOW + 1, rules)
    assert len(reply) == 1 + 4 * len(rules)
    assert all(type(field) is int for field in reply)


@pytest.mark.requirement("R54")
def test_script_decides_on_every_node_of_a_cluster(cluster: StoreCluster) -> None:
    """D32, D33: subjects spread over the nodes, the keys of one meet in one slot, and each node learns the script."""
    model = Model()
    with cluster.client() as client:
        for subject in map(str, range(30)):
            for turn in range(4):
                rules = [rule(Limit(2, 60_000_000, 2), key="login"), rule(key="api"), rule(key="api", name="other...")]
                keys = [f"weir:1:{{{subject}}}:{key}" for key in Script.keys(rules)]
                reply = evaluate(client, keys, arguments(str(NOW + turn), rules))
                expected = model.decide(NOW + turn, [replace(r, key=f"{subject}:{r.key}") for r in rules])
                assert reply == expected
    for node in cluster.nodes:
        with node.client() as client:
            assert client.dbsize() > 0


@pytest.mark.requirement("R54")
def test_keys_of_two_subjects_in_one_call_are_an_error_on_a_cluster_and_never_an_allowance(
    cluster: StoreCluster,
) -> None:
    """D33: the limiter has to ask once per subject there; the store says so instead of deciding on half of the keys."""
    with cluster.nodes[0].client() as client, pytest.raises(redis.ResponseError, match=r"(?i)same slot"):
        client.eval(SOURCE, 2, "weir:1:{a}:x", "weir:1:{b}:x", *arguments(str(NOW), [rule(key="a"), rule(key="b")]))


def evaluate(client: redis.RedisCluster, keys: list[str], argv: list[str | int]) -> Any:
    """By digest, and with the source where a node does not know it: what the limiter does."""
    try:
        return client.evalsha(DIGEST, len(keys), *keys, *argv)
    except redis.exceptions.NoScriptError:
        return client.eval(SOURCE, len(keys), *keys, *argv)
