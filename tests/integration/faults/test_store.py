# SPDX-License-Identifier: Apache-2.0
"""A store that is away, late or unwilling while requests come steadily, and what they get until it is back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from lab.store import Store
from rig.judge import judge, judge_recovery, judge_waits
from rig.modes import SHARE, Outcome
from rig.sidecar import Sidecar
from rig.toxiproxy import Proxy
from rig.traffic import Running

Fault = Callable[[Store, Proxy], AbstractContextManager[None]]


@contextmanager
def refused(_store: Store, proxy: Proxy) -> Iterator[None]:
    """Nothing listens there any more."""
    proxy.refuse()
    yield
    proxy.accept()


@contextmanager
def hung(store: Store, _proxy: Proxy) -> Iterator[None]:
    """SIGSTOP: connections stay open, new ones are accepted by the kernel, nothing is answered."""
    store.pause()
    yield
    store.resume()


@contextmanager
def out_of_memory(store: Store, _proxy: Proxy) -> Iterator[None]:
    """Every command that writes is refused."""
    store.run("CONFIG SET", "maxmemory", 1)
    yield
    store.run("CONFIG SET", "maxmemory", 0)


@contextmanager
def read_only(store: Store, _proxy: Proxy) -> Iterator[None]:
    """Its role was given to another server: it answers READONLY."""
    store.run("REPLICAOF", "127.0.0.1", 1)
    yield
    store.run("REPLICAOF", "NO", "ONE")


def reset(_store: Store, proxy: Proxy) -> AbstractContextManager[None]:
    """Every connection is answered with RST."""
    return proxy.toxic("reset_peer", timeout=0)


def silent(_store: Store, proxy: Proxy) -> AbstractContextManager[None]:
    """Connections stand, and nothing comes through them."""
    return proxy.toxic("timeout", timeout=0)


def later_by(milliseconds: int) -> Fault:
    """Every answer comes so much later."""
    return lambda _store, proxy: proxy.toxic("latency", latency=milliseconds)


AWAY: dict[str, Fault] = {
    "refused": refused, "hung": hung, "out of memory": out_of_memory, "read-only": read_only, "reset": reset,
    "silent": silent, "later by 6 ms": later_by(6), "later by 50 ms": later_by(50),
}  # fmt: skip
CHARGING = ("later by 6 ms", "later by 50 ms")  # so that soon a subject is spent, and its late refusal is remembered
FEW = 5
IN_SIGHT = ("later by 6 ms",)  # a limiter that itself had to wait for the processor finds such an answer when it looks


@pytest.mark.requirement("R21", "R23", "R24")
@pytest.mark.parametrize("fault", AWAY)
async def test_no_request_is_decided_or_waits_while_the_store_is(
    fault: str, frail: Store, proxy: Proxy, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """D30, D31, D35: at once each rule's own failure mode, and the limits are back when the store is."""
    async with running(sidecar := start_sidecar(proxy.url)) as traffic:
        with AWAY[fault](frail, proxy):
            during = await traffic.begin("during")
            await traffic.undecided(each=15 if fault in CHARGING else 60)
            after = await traffic.begin("after")
        await traffic.limited()
    assert during.count(Outcome.ALLOWED) == 0 or fault in IN_SIGHT
    assert during.count(Outcome.LOCAL, subject="during") == SHARE
    assert sidecar.log().count("store is down") <= FEW, "its state changes, and is logged, with every other request"
    judge_waits(during)
    judge_recovery(after)
    await judge(traffic)


@pytest.mark.requirement("R23", "R24")
@pytest.mark.parametrize(
    ("milliseconds", "jitter"), [(1, 0), (4, 0), (5, 4)],
    ids=["later by 1 ms", "later by 4 ms", "later by 1 to 9 ms"],
)  # fmt: skip
async def test_a_store_that_is_a_little_late_still_decides(
    milliseconds: int, jitter: int, proxy: Proxy, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """Whoever is answered in time is decided by the store. An answer that comes too late is taken for nobody else's:

    else somebody without budget would get the answer of somebody who has one.
    """
    async with running(start_sidecar(proxy.url)) as traffic:
        with proxy.toxic("latency", latency=milliseconds, jitter=jitter):
            during = await traffic.begin("during")
            await traffic.limited()
            await traffic.begin("after")
        await traffic.limited()
    judge_recovery(during)
    judge_waits(during)
    await judge(traffic)


@pytest.mark.requirement("R24")
async def test_a_store_that_is_restarted_empty_is_used_again(
    frail: Store, proxy: Proxy, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """D30, D32: killed at runtime; the new server has neither counters nor scripts."""
    async with running(start_sidecar(proxy.url)) as traffic:
        await asyncio.to_thread(frail.kill)
        during = await traffic.begin("during")
        await traffic.undecided(each=60)
        after = await traffic.begin("after")
        await asyncio.to_thread(frail.restart)
        await traffic.limited()
    assert during.count(Outcome.ALLOWED) == 0
    judge_recovery(after)
    await judge(traffic, lives=2)


@pytest.mark.requirement("R10", "R24")
async def test_scripts_that_are_flushed_cost_no_decision(
    frail: Store, proxy: Proxy, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """D32: only the command that misses its script is sent again; nothing is counted twice or not at all."""
    async with running(sidecar := start_sidecar(proxy.url)) as traffic:
        during = await traffic.begin("during")
        for _ in range(10):
            await asyncio.to_thread(frail.run, "SCRIPT FLUSH")
            await traffic.answers(10)
        await traffic.limited()
    judge_recovery(during)
    await judge(traffic)
    for reason in ("script", "other", "protocol", "connection"):
        assert sidecar.metric("weir_store_failures_total", reason=reason) == 0


@pytest.mark.requirement("R24")
async def test_connections_that_break_in_the_middle_of_an_answer_are_never_misread(
    frail: Store, proxy: Proxy, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """Each connection ends after so many bytes, wherever that is: an answer is whole, or there was none."""
    async with running(start_sidecar(proxy.url)) as traffic:
        with proxy.toxic("limit_data", bytes=4000):
            await asyncio.to_thread(proxy.cut)
            during = await traffic.begin("during")
            await traffic.undecided(each=20)
            await traffic.begin("after")
        await traffic.limited()
    judge_waits(during)
    await judge(traffic)
