# SPDX-License-Identifier: Apache-2.0
"""Rules that each limiter counts in its own memory, alone and beside rules of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, limit, policy, rule
from rig.envoy import Answer, Envoy
from rig.sidecar import Sidecar

HOUR_S = 3600
NOWHERE = "redis://127.0.0.1:1"


def own(requests: int, **members: Any) -> dict[str, Any]:
    """A rule of so many requests per hour in each limiter."""
    return rule("own", scope="Instance", limit=limit(requests, period_s=HOUR_S), **members)


async def admitted(envoy: Envoy, key: str, requests: int) -> int:
    return sum([(await envoy.key(key)).allowed for _ in range(requests)])


async def until_refused(envoy: Envoy, key: str) -> Answer:
    """Ask until memory refuses; what it lets pass waits for the store, and goes away."""
    for _ in range(100):
        asked = asyncio.ensure_future(envoy.key(key))
        done, _ = await asyncio.wait([asked], timeout=0.2)
        if done:
            return asked.result()
        asked.cancel()
    raise AssertionError("memory refuses nobody")


async def test_a_rule_of_one_instance_needs_no_store(start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(NOWHERE)
    sidecar.publish(document(policy(own(3))))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert await admitted(envoy, "k", 5) == 3
        assert await admitted(envoy, "other", 1) == 1
        refused = await envoy.key("k")
    assert refused.problem["rule"] == "own"
    assert refused.headers["ratelimit-policy"] == '"own";q=3;w=3600'
    assert sidecar.metric("weir_store_failures_total") == 0


async def test_a_store_that_is_away_does_not_open_the_rules_in_memory(start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(NOWHERE)
    sidecar.publish(document(policy(rule(limit=limit(1, period_s=HOUR_S)), own(3))))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert await admitted(envoy, "k", 5) == 3


async def test_each_limiter_counts_for_itself(store: Store, start_sidecar: Callable[..., Sidecar]) -> None:
    for _ in range(2):
        sidecar = start_sidecar(store.url)
        sidecar.wait_store("Up")
        sidecar.publish(document(policy(own(3))))
        async with Envoy.beside(sidecar.socket) as envoy:
            assert await admitted(envoy, "k", 5) == 3
    with store.client() as client:
        assert client.keys("weir:*") == []


@pytest.mark.requirement("R11")
async def test_what_the_store_refuses_is_given_back_in_memory(sidecar: Sidecar, envoy: Envoy) -> None:
    """A refused request consumes nothing anywhere: ten refusals by the store's rule leave memory as it was."""
    sidecar.publish(document(policy(rule(limit=limit(2, period_s=HOUR_S)), own(6))))
    assert await admitted(envoy, "k", 12) == 2
    sidecar.publish(document(policy(own(6))))
    assert await admitted(envoy, "k", 12) == 4


@pytest.mark.requirement("R11")
async def test_what_memory_refuses_is_not_charged_in_the_store(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(document(policy(rule(limit=limit(6, period_s=HOUR_S)), own(2))))
    assert await admitted(envoy, "k", 12) == 2
    sidecar.publish(document(policy(rule(limit=limit(6, period_s=HOUR_S)))))
    assert await admitted(envoy, "k", 12) == 4


async def test_a_closed_rule_of_the_store_gives_back_what_memory_charged(start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(NOWHERE)
    closed = rule(limit=limit(9, period_s=HOUR_S), onStoreFailure="Closed")
    sidecar.publish(document(policy(closed, own(3))))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).status for _ in range(5)] == [503] * 5
        sidecar.publish(document(policy(own(3))))
        assert await admitted(envoy, "k", 5) == 3


@pytest.mark.requirement("R11")
async def test_a_request_that_goes_away_while_the_store_is_asked_leaves_memory_as_it_was(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """Else a client over its own limit could spend everybody's, one reset stream after the other."""
    # Remembered, the refusal would be repeated at once, and nothing would be left to go away from.
    sidecar = start_sidecar(store.url, flags=("--deny-cache", "0"))
    sidecar.wait_store("Up")
    envoy = Envoy.beside(sidecar.socket)
    everybody = rule("everybody", key=[], scope="Instance", limit=limit(4, period_s=HOUR_S))
    sidecar.publish(document(policy(rule(limit=limit(1, period_s=HOUR_S)), everybody)))
    assert await admitted(envoy, "greedy", 3) == 1
    store.pause()
    try:
        gone = [asyncio.ensure_future(envoy.key("greedy")) for _ in range(3)]
        # Memory has charged them as soon as it refuses, which needs no store.
        refused = await until_refused(envoy, "other")
        assert refused.problem["rule"] == "everybody"
        for task in gone:
            task.cancel()
        given_back = {"reason": "client_gone", "outcome": "done"}
        await asyncio.to_thread(eventually, lambda: sidecar.metric("weir_refunds_total", **given_back) >= 3, 10)
    finally:
        store.resume()
    assert [(await envoy.key(f"client-{number}")).allowed for number in range(4)] == [True, True, True, False]
    await envoy.channel.close()


async def test_all_rules_are_shown_wherever_they_are_counted(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(document(policy(rule(limit=limit(9, period_s=HOUR_S)), own(6))))
    answer = await envoy.key("k")
    assert answer.headers["ratelimit-policy"] == '"burst";q=9;w=3600, "own";q=6;w=3600'
    assert answer.headers["ratelimit"] == '"burst";r=8;t=400, "own";r=5;t=600'
