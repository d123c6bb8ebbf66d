# SPDX-License-Identifier: Apache-2.0
"""A cluster as the store that fails over and is resharded while requests come steadily over two limiters."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from itertools import chain

import pytest

from lab.store import Flavour, Store, StoreCluster
from lab.waiting import eventually
from rig.judge import judge, judge_recovery, judge_waits
from rig.modes import UNDECIDED
from rig.sidecar import Sidecar
from rig.traffic import Running, Traffic

pytestmark = pytest.mark.parametrize("session_cluster", [Flavour.VALKEY], indirect=True, scope="session")
_WITHIN_S = 30.0  # never the measure of a test; the lab's node timeout is 2 s


def slots(cluster: StoreCluster) -> Iterator[int]:
    """The slots of all counters that there are."""
    for node in cluster.primaries():
        for key in node.run("KEYS", "weir:*"):
            yield int(node.run("CLUSTER KEYSLOT", key))


def in_use(cluster: StoreCluster, besides: Collection[int] = ()) -> tuple[int, Store, Store]:
    """A slot that is in use, its primary, and the replica of that."""
    slot = next(slot for slot in slots(cluster) if slot not in besides)
    primary = cluster.primary_of(slot)
    return slot, primary, cluster.replica_of(primary)


async def lost(traffic: Traffic, count: int) -> None:
    """Return once so many requests were left to their failure mode: those of one node's subjects, in whatever mode."""
    phase = traffic.phase
    await traffic.until(
        lambda: phase.count(*chain(*UNDECIDED.values())) >= count, f"{count} requests are left undecided"
    )


@pytest.mark.requirement("R24")
async def test_a_primary_that_dies_and_its_replica_that_takes_over(
    cluster: StoreCluster, pair: list[Sidecar], running: Running
) -> None:
    """The subjects of the dead node get their failure mode until then; what was charged before is not forgotten."""
    async with running(*pair) as traffic:
        earlier = await asyncio.to_thread(lambda: set(slots(cluster)))
        during = await traffic.begin("during")
        # What a primary has not yet told its replica dies with it: the traffic's own subjects are spent by then.
        await traffic.limited()
        # The phase's own subject is asked for until its end, unlike that of the phase before.
        slot, dead, successor = await asyncio.to_thread(in_use, cluster, earlier)
        await asyncio.to_thread(dead.kill)
        await lost(traffic, 20)
        await asyncio.to_thread(eventually, lambda: cluster.primary_of(slot) is successor, _WITHIN_S)
        await asyncio.to_thread(cluster.restart)
        after = await traffic.begin("after")
        await traffic.limited()
    judge_waits(during)
    judge_recovery(after)
    await judge(traffic)


@pytest.mark.requirement("R24")
async def test_a_failover_that_is_asked_for(cluster: StoreCluster, pair: list[Sidecar], running: Running) -> None:
    """It waits for the replica, so no charge is lost, and takes so short that a request at most misses its deadline."""
    async with running(*pair) as traffic:
        slot, _home, successor = await asyncio.to_thread(in_use, cluster)
        during = await traffic.begin("during")
        await asyncio.to_thread(successor.run, "CLUSTER FAILOVER")
        await asyncio.to_thread(eventually, lambda: cluster.primary_of(slot) is successor, _WITHIN_S)
        await traffic.limited()
        after = await traffic.begin("after")
        await traffic.limited()
    judge_waits(during)
    judge_recovery(during)
    judge_recovery(after)
    await judge(traffic)


@pytest.mark.requirement("R10")
async def test_slots_that_move_there_and_back(cluster: StoreCluster, pair: list[Sidecar], running: Running) -> None:
    """MOVED, ASK and TRYAGAIN: every counter goes to another node and home again while it is in use."""
    async with running(*pair) as traffic:
        during = await traffic.begin("during")
        await traffic.answers(8)
        for slot in await asyncio.to_thread(lambda: set(slots(cluster))):
            home = await asyncio.to_thread(cluster.primary_of, slot)
            away = next(node for node in await asyncio.to_thread(cluster.primaries) if node is not home)
            for target in (away, home):
                steps = cluster.moving_slot(slot, target)
                while await asyncio.to_thread(next, steps, None):
                    await traffic.answers(4)
        await traffic.limited()
    judge_waits(during)
    judge_recovery(during)
    await judge(traffic)
