# SPDX-License-Identifier: Apache-2.0
"""A cluster as the store: decided as exactly as by one server, also while slots move and nodes come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count, cycle

import pytest

from lab.processes import free_port
from lab.store import Store, StoreCluster
from lab.waiting import eventually
from rig.documents import limit, single
from rig.envoy import Envoy
from rig.load import CLIENTS, load
from rig.sidecar import Sidecar
from rig.stores import documented_rights, set_user

DAY = 86_400
FAILOVER_S = 30.0  # so that a hang ends; the lab's node timeout is 2 s


async def wave(envoys: list[Envoy], key: str, count: int) -> int:
    """So many requests at once, spread over the sidecars; how many passed. All must have been decided."""
    answers = await asyncio.gather(*(envoy.key(key) for _, envoy in zip(range(count), cycle(envoys), strict=False)))
    assert all("x-ratelimit-mode" not in answer.headers for answer in answers), "the store was not asked for all"
    return sum(answer.allowed for answer in answers)


def slot_of_bucket(cluster: StoreCluster) -> int:
    """The slot of the only bucket that there is."""
    (key,) = [key for node in cluster.primaries() for key in node.run("KEYS", "weir:*")]
    return int(cluster.nodes[0].run("CLUSTER KEYSLOT", key))


def other_primary(cluster: StoreCluster, than: Store) -> Store:
    return next(node for node in cluster.primaries() if node is not than)


@pytest.mark.requirement("R01", "R07", "R10")
async def test_two_sidecars_admit_exactly_one_budget_for_each_subject(
    cluster: StoreCluster, pair: list[Sidecar]
) -> None:
    """D01, D33: subjects on all nodes, 250 requests at once for each, over two sidecars."""
    text = single(limit=limit(100, period_s=DAY))
    for sidecar in pair:
        sidecar.publish(text)
    envoys = [Envoy.beside(sidecar.socket) for sidecar in pair]
    for number in range(18):
        assert await wave(envoys, f"client-{number}", 250) == 100
    assert all(node.run("DBSIZE") > 0 for node in cluster.primaries()), "no node sat idle"
    for envoy in envoys:
        await envoy.channel.close()


@pytest.mark.requirement("R10")
async def test_a_slot_that_moves_under_load_admits_exactly_one_budget(
    cluster: StoreCluster, pair: list[Sidecar]
) -> None:
    """MOVED and ASK: there and back again, with the requests of one subject all the time."""
    text = single(limit=limit(2000, period_s=DAY), onStoreFailure="Closed")
    for sidecar in pair:
        sidecar.publish(text)
    async with load(pair, "k") as counts:
        await counts.decisions(20)
        slot = slot_of_bucket(cluster)
        home = cluster.primary_of(slot)
        away = other_primary(cluster, home)
        for target in (away, home, away, home):
            for _step in cluster.moving_slot(slot, target):
                await counts.decisions(50)
        await counts.until_spent()
    assert counts.admitted == 2000
    assert counts.undecided == 0
    assert {sidecar.status()["store"]["state"] for sidecar in pair} == {"Up"}


async def test_flushed_scripts_of_all_nodes_heal_without_an_error_or_a_miscount(
    cluster: StoreCluster, pair: list[Sidecar]
) -> None:
    """D32: each node learns the script again from the first command that misses it there."""
    text = single(limit=limit(30, period_s=DAY))
    for sidecar in pair:
        sidecar.publish(text)
    envoys = [Envoy.beside(sidecar.socket) for sidecar in pair]
    for _ in range(5):
        keys = [f"client-{number}" for number in range(12)]
        admitted = [asyncio.ensure_future(wave(envoys, key, 10)) for key in keys]
        for node in cluster.nodes:
            node.run("SCRIPT FLUSH")
        assert [await count for count in admitted] in ([10] * 12, [0] * 12)
    for sidecar in pair:
        for reason in ("script", "other", "protocol", "connection", "cluster"):
            assert sidecar.metric("weir_store_failures_total", reason=reason) == 0
    for envoy in envoys:
        await envoy.channel.close()


@pytest.mark.requirement("R24")
async def test_a_failover_that_is_asked_for_loses_no_charge(cluster: StoreCluster, pair: list[Sidecar]) -> None:
    text = single(limit=limit(3000, period_s=DAY), onStoreFailure="Closed")
    for sidecar in pair:
        sidecar.publish(text)
    async with load(pair, "k") as counts:
        await counts.decisions(200)
        slot = slot_of_bucket(cluster)
        successor = cluster.replica_of(cluster.primary_of(slot))
        successor.run("CLUSTER FAILOVER")
        await asyncio.to_thread(eventually, lambda: cluster.primary_of(slot) is successor, FAILOVER_S)
        await counts.decisions(200)
        await counts.until_spent()
    assert counts.admitted == 3000
    for sidecar in pair:
        await asyncio.to_thread(sidecar.wait_store, "Up")


@pytest.mark.requirement("R24")
async def test_a_primary_that_dies_under_load_is_replaced_by_its_replica(
    cluster: StoreCluster, pair: list[Sidecar]
) -> None:
    """At most the charges that were on their way to the replica are lost: those of the requests under way."""
    text = single(limit=limit(2000, period_s=DAY), onStoreFailure="Closed")
    for sidecar in pair:
        sidecar.publish(text)
    async with load(pair, "k") as counts:
        await counts.decisions(500)
        slot = slot_of_bucket(cluster)
        dead = cluster.primary_of(slot)
        successor = cluster.replica_of(dead)
        dead.kill()
        await asyncio.to_thread(pair[0].wait_store, "Down")
        assert str(dead.port) in (await asyncio.to_thread(pair[0].status))["store"]["error"], "the node is named"
        await asyncio.to_thread(eventually, lambda: cluster.primary_of(slot) is successor, FAILOVER_S)
        await counts.decisions(100)
        await counts.until_spent()
    assert 2000 <= counts.admitted <= 2000 + CLIENTS
    for sidecar in pair:
        await asyncio.to_thread(sidecar.wait_store, "Up")


@pytest.mark.requirement("R21", "R24")
async def test_a_frozen_node_costs_only_its_own_subjects_and_no_memory(
    cluster: StoreCluster, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D31: SIGSTOP of one primary; the subjects of the others are decided as before."""
    sidecar = start_sidecar(cluster.url, flags=("--store-deadline", "50ms"))
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(5, period_s=DAY)))
    frozen, keys = cluster.primaries()[0], [f"k{number}" for number in range(96)]
    for node in cluster.nodes:  # or all of them refuse everything while one has failed
        node.run("CONFIG SET", "cluster-require-full-coverage", "no")
    async with Envoy.beside(sidecar.socket) as envoy:
        successor = cluster.replica_of(frozen)
        successor.pause()  # or it would take over, and this test is about a node that stays away
        frozen.pause()
        try:
            while sidecar.status()["store"]["state"] == "Up":
                await asyncio.gather(*(envoy.key(key) for key in keys))
            assert str(frozen.port) in sidecar.status()["store"]["error"]
            before = sidecar.resident_bytes()
            rounds = [await asyncio.gather(*(envoy.key(key) for key in keys)) for _ in range(30)]
            decided = {
                key for row in rounds for key, answer in zip(keys, row, strict=True) if "ratelimit" in answer.headers
            }
            assert 45 < len(decided) < 80, "two thirds of the subjects, and never one of the others"
            assert sidecar.resident_bytes() - before < 2 << 20
        finally:
            frozen.resume()
            successor.resume()
            for node in cluster.nodes:
                node.run("CONFIG SET", "cluster-require-full-coverage", "yes")
        sidecar.wait_store("Up")


async def test_slots_that_nobody_serves_are_a_store_failure_until_somebody_does(
    cluster: StoreCluster, start_sidecar: Callable[..., Sidecar]
) -> None:
    """CLUSTERDOWN: the cluster refuses everything while one slot has no node."""
    sidecar = start_sidecar(cluster.url)
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(1, period_s=DAY), onStoreFailure="Closed"))
    owner = cluster.primary_of(0)
    async with Envoy.beside(sidecar.socket) as envoy:
        assert (await envoy.key("k")).allowed
        owner.run("CLUSTER DELSLOTS", 0)
        try:
            await asyncio.to_thread(eventually, lambda: b"state:fail" in state_of(owner), FAILOVER_S)
            answers = [await envoy.key(f"k{number}") for number in range(30)]
            closed = [answer for answer in answers if answer.status == 503]
            assert closed
            assert sidecar.metric("weir_store_failures_total", reason="cluster") == len(closed)
            await asyncio.to_thread(sidecar.wait_store, "Down")
        finally:
            owner.run("CLUSTER ADDSLOTS", 0)
        await asyncio.to_thread(cluster.wait_whole)
        await asyncio.to_thread(sidecar.wait_store, "Up")
        assert (await envoy.key("k")).status == 429, "the count has not been touched"


def state_of(node: Store) -> bytes:
    """What it says to CLUSTER INFO."""
    info = node.run("CLUSTER INFO")
    return f"state:{info['cluster_state']}".encode()


async def test_a_cluster_is_found_through_any_of_its_nodes(
    cluster: StoreCluster, start_sidecar: Callable[..., Sidecar]
) -> None:
    """The first named node is gone, the second is a replica."""
    replica = cluster.replica_of(cluster.primaries()[1])
    sidecar = start_sidecar(f"redis+cluster://127.0.0.1:{free_port()},127.0.0.1:{replica.port}")
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(1, period_s=DAY)))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).allowed for _ in range(2)] == [True, False]
    assert [finding["ok"] for finding in sidecar.status()["store"]["preflight"]] == [True] * 4


@pytest.mark.requirement("R49")
async def test_a_user_with_exactly_the_documented_rights_counts_through_a_resharding(
    cluster: StoreCluster, start_sidecar: Callable[..., Sidecar]
) -> None:
    for node in cluster.nodes:
        set_user(node, documented_rights(clustered=True))
    sidecar = start_sidecar(cluster.url.replace("://", "://limiter:pass@"))
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(3, period_s=DAY), onStoreFailure="Closed"))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert (await envoy.key("k")).allowed
        slot = slot_of_bucket(cluster)
        steps = cluster.moving_slot(slot, other_primary(cluster, cluster.primary_of(slot)))
        statuses = [(step, (await envoy.key("k")).status) for step in steps]
    assert statuses == [("opened", 200), ("moved", 200), ("closed", 429)]
    findings = sidecar.status()["store"]["preflight"]
    assert [finding["ok"] for finding in findings] == [True] * 4
    assert [finding["message"] for finding in findings] == [""] * 4


def test_a_server_that_is_no_node_of_a_cluster_is_reported_with_its_address(
    cluster: StoreCluster, store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    sidecar = start_sidecar(f"redis+cluster://127.0.0.1:{store.port}")
    eventually(lambda: "is no node of a cluster" in sidecar.status()["store"]["error"], 10)
    assert sidecar.status()["store"]["error"].startswith(f"127.0.0.1:{store.port}")


async def test_one_node_of_a_cluster_given_as_the_whole_store_says_what_to_write(
    cluster: StoreCluster, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D33: never a silent pass."""
    sidecar = start_sidecar(cluster.nodes[0].url)
    sidecar.wait_store("Up")
    sidecar.publish(single(onStoreFailure="Closed"))
    async with Envoy.beside(sidecar.socket) as envoy:
        statuses = {(await envoy.key(f"k{number}")).status for number in range(20)}
        assert 503 in statuses
        others = count()
        while sidecar.status()["store"]["state"] == "Up":
            await envoy.key(f"other-{next(others)}")
        assert "redis+cluster" in sidecar.status()["store"]["error"]


def open_breakers(sidecar: Sidecar) -> set[str]:
    """The nodes that the sidecar waits for no more."""
    return {breaker["node"] for breaker in sidecar.status()["store"]["breakers"] if breaker["open"]}


@pytest.mark.requirement("R21", "R54")
async def test_each_node_of_a_cluster_has_a_breaker_of_its_own(cluster: StoreCluster, pair: list[Sidecar]) -> None:
    """One primary is full: its subjects go without it, and all others are decided as before."""
    sidecar = pair[0]
    sidecar.publish(single(limit=limit(5, period_s=3600)))
    full = cluster.primaries()[0]
    name = f"127.0.0.1:{full.port}"
    full.run("CONFIG SET", "maxmemory", 1)
    try:
        async with Envoy.beside(sidecar.socket) as envoy, asyncio.timeout(30):
            number = 0
            while name not in open_breakers(sidecar):
                await asyncio.gather(*(envoy.key(f"k{number + more}") for more in range(30)))
                number += 30
            assert open_breakers(sidecar) == {name}
            answers = [await envoy.key(f"later{more}") for more in range(60)]
        decided = sum("ratelimit" in answer.headers for answer in answers)
        assert 0 < decided < len(answers)
        assert sidecar.metric("weir_store_breakers_open") == 1
        assert sidecar.metric("weir_store_failures_total", reason="breaker") > 0
    finally:
        full.run("CONFIG SET", "maxmemory", 0)
    sidecar.wait_store("Up")
    assert open_breakers(sidecar) == set()
