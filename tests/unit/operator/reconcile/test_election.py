# SPDX-License-Identifier: Apache-2.0
"""A leader's work begins with the lease and ends with it, and nothing is written outside that time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from weir_operator.metrics import Metrics
from weir_operator.reconcile import lease as rule
from weir_operator.reconcile.election import Election
from weir_operator.reconcile.fence import FencedCluster
from weir_operator.reconcile.lease import Identity, Record
from weir_operator.reconcile.ports import CONFIG_MAPS, Ref, Waiting

REF = Ref(CONFIG_MAPS, "weir-system", "edge-rules-0")
NEVER_S = 1e9


class LoopClock:
    """The event loop's clock."""

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class MemoryLease:
    """One record with a compare-and-swap; away while `away` is set."""

    def __init__(self) -> None:
        self.record: Record | None = None
        self.away = False
        self.writes = 0

    async def read(self) -> Record | None:
        if self.away:
            raise Waiting("no answer", 1.0)
        return self.record

    async def write(self, record: Record, now: datetime) -> Record | None:
        assert now.tzinfo is UTC
        if record.version != (self.record.version if self.record is not None else ""):
            return None
        self.writes += 1
        self.record = replace(record, version=str(self.writes))
        return self.record


class Work:
    """A leader's work: how often it began, and whether it goes on."""

    def __init__(self) -> None:
        self.begun = 0
        self.going = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self) -> None:
        self.begun += 1
        self.going.set()
        self.ended.clear()
        try:
            await asyncio.Event().wait()
        finally:
            self.going.clear()
            self.ended.set()


@asynccontextmanager
async def replica(election: Election, work: Work) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(election.run()), asyncio.create_task(election.whenever_won(work))]
    try:
        async with asyncio.timeout(5):
            yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
def lease() -> MemoryLease:
    return MemoryLease()


async def test_the_work_begins_with_the_lease_and_the_metric_says_so(lease: MemoryLease) -> None:
    metrics, work = Metrics(), Work()
    async with replica(Election(lease, Identity("a", "1"), LoopClock(), metrics), work):
        await work.going.wait()
    assert lease.record is not None
    assert lease.record.holder == "a_1"
    assert b"weir_operator_leading 1.0" in metrics.expose()
    assert b'weir_operator_lease_requests_total{outcome="granted"} 1.0' in metrics.expose()


async def test_a_second_replica_waits_and_takes_what_is_given_back(lease: MemoryLease) -> None:
    first, second = (Election(lease, Identity(name, "1"), LoopClock(), Metrics()) for name in "ab")
    work, other = Work(), Work()
    async with replica(first, work):
        await work.going.wait()
        async with replica(second, other):
            while second.holder != "a_1":  # noqa: ASYNC110  nothing tells of a look that changed nothing
                await asyncio.sleep(0)
            assert second.writes_for_s() <= 0
    await first.release()
    assert lease.record is not None
    assert lease.record.holder == ""
    async with replica(second, other):
        await other.going.wait()
    assert lease.record.transitions == 1


async def test_only_the_holder_gives_the_lease_back(lease: MemoryLease) -> None:
    lease.record = Record("b_1", 10.0, "1")
    election = Election(lease, Identity("a", "1"), LoopClock(), Metrics())
    async with replica(election, Work()):
        while not election.holder:  # noqa: ASYNC110  nothing tells of a look that changed nothing
            await asyncio.sleep(0)
    await election.release()
    assert lease.record.holder == "b_1"


async def test_work_ends_when_the_lease_cannot_be_renewed_and_begins_again(
    lease: MemoryLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule.Candidacy, "wait_s", lambda _, __: 0.01)
    monkeypatch.setattr(rule, "WRITE_FOR_S", 0.1)
    work = Work()
    async with replica(Election(lease, Identity("a", "1"), LoopClock(), Metrics()), work):
        await work.going.wait()
        lease.away = True
        await work.ended.wait()
        lease.away = False
        await work.going.wait()
    assert work.begun == 2


class Recorder:
    """A cluster that remembers what reached it, and answers when it is told to."""

    def __init__(self) -> None:
        self.deleted: list[Ref] = []
        self.answer = asyncio.Event()

    async def delete(self, ref: Ref) -> None:
        self.deleted.append(ref)
        await self.answer.wait()


async def test_a_write_after_the_end_of_leadership_never_reaches_the_cluster() -> None:
    """SIGSTOP and return: no task ran in between, and no timer either."""
    cluster = Recorder()
    fenced = FencedCluster(cluster, lambda: -1.0)  # type: ignore[arg-type]
    with pytest.raises(Waiting, match="does not lead"):
        await fenced.delete(REF)
    assert cluster.deleted == []


async def test_a_write_that_hangs_is_abandoned_when_leadership_ends() -> None:
    cluster = Recorder()
    fenced = FencedCluster(cluster, lambda: 0.01)  # type: ignore[arg-type]
    with pytest.raises(Waiting, match="abandoned"):
        await fenced.delete(REF)
    cluster.answer.set()
    await FencedCluster(cluster, lambda: NEVER_S).delete(REF)  # type: ignore[arg-type]
    assert cluster.deleted == [REF, REF]
