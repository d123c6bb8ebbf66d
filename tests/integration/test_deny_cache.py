# SPDX-License-Identifier: Apache-2.0
"""Who is refused is refused again without the store, and never where the store would admit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from lab.store import Store, StoreCluster
from rig.documents import document, leaky, limit, override, policy, rule, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar

HOUR_S = 3600
FLOOD = 200


def calls(store: Store) -> int:
    """How many decisions the store has made."""
    with store.client() as client:
        return int(client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])


async def refusals(envoy: Envoy, key: str, requests: int = FLOOD) -> int:
    answers = await asyncio.gather(*(envoy.key(key) for _ in range(requests)))
    return sum(not answer.allowed for answer in answers)


@pytest.mark.requirement("R20")
async def test_a_flood_of_refused_requests_hardly_asks_the_store(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """D36: one in a second asks, and the others get the same answer with the time that is left."""
    sidecar.publish(single(limit=limit(1, period_s=HOUR_S)))
    assert (await envoy.key("k")).allowed
    first = await envoy.key("k")
    before, hits = calls(store), sidecar.metric("weir_deny_cache_hits_total")
    again = await envoy.key("k")
    assert await refusals(envoy, "k") == FLOOD
    asked, answered = calls(store) - before, sidecar.metric("weir_deny_cache_hits_total") - hits
    assert asked + answered == FLOOD + 1
    assert answered > 0
    assert (again.status, again.headers["ratelimit-policy"]) == (first.status, first.headers["ratelimit-policy"])
    assert 0 < int(again.headers["retry-after"]) <= int(first.headers["retry-after"])
    assert sidecar.status()["denyCache"] | {"hits": 0} == {"most": 10000, "entries": 1, "hits": 0, "evictions": 0}
    assert sidecar.rule()["rejected"] == FLOOD + 2


@pytest.mark.requirement("R16", "R20")
async def test_a_raise_by_override_helps_at_once_who_is_remembered(sidecar: Sidecar, envoy: Envoy) -> None:
    """D36, D46: the other key goes on being refused."""
    rules = policy(rule(limit=limit(1, period_s=HOUR_S)))
    sidecar.publish(document(rules))
    for key in ("raised", "other"):
        assert (await envoy.key(key)).allowed
        assert await refusals(envoy, key, 3) == 3
    more = override("raised", action="Set", limit={"requests": 100, "burst": 100})
    sidecar.publish(document(rules, overrides=[more]))
    assert (await envoy.key("raised")).allowed
    assert await refusals(envoy, "other", 3) == 3


@pytest.mark.requirement("R20")
async def test_two_sidecars_admit_exactly_the_limit_with_either_cache_warm(
    store: Store, sidecar: Sidecar, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D36: ten in all, the tenth too, and a cost that still fits is not refused for one that does not."""
    other = start_sidecar(store.url)
    cost = [{"match": {"path": "/dear", "methods": []}, "cost": 8}]
    rules = single(limit=limit(10, period_s=HOUR_S), cost=cost)
    for each in (sidecar, other):
        each.wait_store("Up")
        each.publish(rules)
    async with Envoy.beside(sidecar.socket) as here, Envoy.beside(other.socket) as there:
        assert [(await there.key("k")).allowed for _ in range(9)] == [True] * 9
        assert [(await here.key("k", "/dear")).allowed for _ in range(3)] == [False] * 3
        assert (await here.key("k")).allowed, "the tenth"
        assert await refusals(here, "k", 5) + await refusals(there, "k", 5) == 10


@pytest.mark.requirement("R20")
async def test_a_store_that_starts_empty_admits_at_once(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """D31: what a lost link has said counts no more."""
    sidecar.publish(single(limit=limit(1, period_s=HOUR_S)))
    assert (await envoy.key("k")).allowed
    assert await refusals(envoy, "k", 3) == 3
    store.restart()
    await envoy.key("whoever notices that the link is broken")
    sidecar.wait_store("Up")
    assert (await envoy.key("k")).allowed


@pytest.mark.requirement("R20")
async def test_what_may_be_given_back_is_asked_about_each_time(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """A held request that goes away gives its charge back: another limiter's may, unseen from here."""
    even = rule("even", limit=leaky(1, period_s=HOUR_S, queue=0, max_delay_s=0))
    sidecar.publish(document(policy(rule(limit=limit(1, period_s=HOUR_S)), even)))
    assert (await envoy.key("k")).allowed
    before = calls(store)
    assert await refusals(envoy, "k", 5) == 5
    assert calls(store) - before == 5


@pytest.mark.requirement("R20")
async def test_it_can_be_switched_off(store: Store, start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(store.url, flags=("--deny-cache", "0"))
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(1, period_s=HOUR_S)))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert (await envoy.key("k")).allowed
        before = calls(store)
        assert await refusals(envoy, "k", 5) == 5
        assert calls(store) - before == 5


@pytest.mark.requirement("R20")
async def test_on_a_cluster_only_requests_of_one_subject_are_remembered(
    cluster: StoreCluster, start_sidecar: Callable[..., Sidecar]
) -> None:
    """What one slot has charged is given back when another refuses, so a refusal may end early there."""
    sidecar = start_sidecar(cluster.url)
    sidecar.wait_store("Up")
    one = rule(limit=limit(1, period_s=HOUR_S))
    for rules, remembered in (([one], True), ([one, rule("all", key=[], limit=limit(1000))], False)):
        sidecar.publish(document(policy(*rules)))
        hits = sidecar.metric("weir_deny_cache_hits_total")
        async with Envoy.beside(sidecar.socket) as envoy:
            assert await refusals(envoy, f"k{len(rules)}", 30) == 29
            assert await refusals(envoy, f"k{len(rules)}", 30) == 30
        assert (sidecar.metric("weir_deny_cache_hits_total") > hits) == remembered
