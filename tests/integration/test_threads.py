# SPDX-License-Identifier: Apache-2.0
"""One limiter with several threads that decide: as exact as with one, and of one mind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from lab.processes import free_port
from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, leaky, limit, policy, rule, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar, in_process, prompt
from weir_limiter import _core

THREADS = 4
CONNECTIONS = 16
REQUESTS = 640


@pytest.fixture
def wide(store: Store, start_sidecar: Callable[..., Sidecar]) -> Sidecar:
    sidecar = start_sidecar(store.url, flags=("--threads", str(THREADS)))
    sidecar.wait_store("Up")
    return sidecar


@pytest_asyncio.fixture
async def envoys(wide: Sidecar) -> AsyncIterator[list[Envoy]]:
    """A connection for each worker of a big Envoy."""
    envoys = [Envoy.beside(wide.socket) for _ in range(CONNECTIONS)]
    yield envoys
    await asyncio.gather(*(envoy.channel.close() for envoy in envoys))


def spent_ns(sidecar: Sidecar) -> dict[str, int]:
    """The processor time of each thread that decides, by its name."""
    tasks = list(Path(f"/proc/{sidecar.part.pid}/task").iterdir())
    spent = {(task / "comm").read_text().strip(): int((task / "schedstat").read_text().split()[0]) for task in tasks}
    return {name: ns for name, ns in spent.items() if name.startswith("weir-data")}


async def flood(envoys: list[Envoy], key: str) -> Counter[int]:
    """Many requests of one client at once, over all connections; how many got which status."""
    asked = [envoys[number % len(envoys)].key(key) for number in range(REQUESTS)]
    return Counter(answer.status for answer in await asyncio.gather(*asked))


@pytest.mark.requirement("R01", "R07", "R10")
async def test_four_threads_admit_exactly_one_budget(wide: Sidecar, envoys: list[Envoy], store: Store) -> None:
    """D01: counted in the store; every thread decides, over a connection of its own."""
    wide.publish(single(limit=limit(300, period_s=86_400)))
    before = spent_ns(wide)
    assert await flood(envoys, "k") == {200: 300, 429: REQUESTS - 300}
    after = spent_ns(wide)
    assert len(after) == THREADS
    assert all(after[name] > before[name] for name in after), "each of them had some of the connections"
    with store.client() as client:
        linked = [entry for entry in client.client_list() if entry["cmd"] == "evalsha"]
    assert len(linked) == THREADS
    assert wide.rule()["requests"] == REQUESTS, "they count together"
    assert wide.metric("weir_rule_decisions_total", rule="burst", outcome="allowed") == 300


@pytest.mark.requirement("R01", "R22")
async def test_four_threads_count_in_one_memory(wide: Sidecar, envoys: list[Envoy]) -> None:
    """D41: a rule of this instance is no rule of each thread."""
    wide.publish(single(limit=limit(300, period_s=86_400), scope="Instance"))
    assert await flood(envoys, "k") == {200: 300, 429: REQUESTS - 300}
    assert wide.status()["memory"]["subjects"] == 1


@pytest.mark.requirement("R20")
async def test_what_one_thread_was_refused_all_remember(wide: Sidecar, envoys: list[Envoy], store: Store) -> None:
    wide.publish(single(limit=limit(1, period_s=86_400)))
    assert (await envoys[0].key("k")).allowed
    assert not (await envoys[0].key("k")).allowed
    await asyncio.gather(*(envoy.key("other") for envoy in envoys))  # every connection stands
    hits = wide.metric("weir_deny_cache_hits_total")
    answers = await asyncio.gather(*(envoy.key("k") for envoy in envoys))
    assert not any(answer.allowed for answer in answers)
    assert wide.metric("weir_deny_cache_hits_total") >= hits + CONNECTIONS - THREADS


@pytest.mark.requirement("R21", "R24")
async def test_a_stopped_store_is_noticed_by_all_threads_and_so_is_its_return(
    frail: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D31: one breaker for all, which one probe closes; nothing of one thread stays behind when it is over."""
    sidecar = prompt(start_sidecar)(frail.url, flags=("--threads", str(THREADS)))
    sidecar.wait_store("Up")
    sidecar.publish(document(policy(rule(limit=limit(100_000)))))
    envoys = [Envoy.beside(sidecar.socket) for _ in range(CONNECTIONS)]
    frail.pause()
    assert await flood(envoys, "k") == {200: REQUESTS}, "it fails open"
    assert sidecar.status()["store"]["state"] == "Down"
    assert [breaker["open"] for breaker in sidecar.status()["store"]["breakers"]] == [True]
    frail.resume()

    async def is_well() -> bool:
        await asyncio.gather(*(envoy.key("k") for envoy in envoys))
        store = sidecar.status()["store"]
        return store["state"] == "Up" and not store["breakers"][0]["open"]

    async with asyncio.timeout(60):
        while not await is_well():
            pass
    await asyncio.gather(*(envoy.channel.close() for envoy in envoys))


@pytest.mark.requirement("R24")
async def test_a_thread_that_nobody_asks_learns_by_itself_that_the_store_is_well(
    frail: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D35: full for a moment; those who met that have gone, and the others go on asking over their own thread."""
    sidecar = start_sidecar(frail.url, flags=("--threads", "2"))
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(100_000)))
    async with Envoy.beside(sidecar.socket) as stays:
        await stays.key("k")
        async with Envoy.beside(sidecar.socket) as goes:
            await goes.key("k")
            frail.run("CONFIG", "SET", "maxmemory", "1")
            await goes.key("k")
            assert sidecar.status()["store"]["state"] == "Down"
            frail.run("CONFIG", "SET", "maxmemory", "0")

        async with asyncio.timeout(60):
            while sidecar.status()["store"]["state"] != "Up":
                await stays.key("k")


async def test_draining_answers_what_is_under_way_on_every_thread(wide: Sidecar, envoys: list[Envoy]) -> None:
    """Requests that are held leave at their time, and then the process ends."""
    wide.publish(single(limit=leaky(1, 1.5, queue=10, max_delay_s=5)))
    await asyncio.gather(*(envoy.key(f"warm-{number}") for number, envoy in enumerate(envoys)))
    waiting = [asyncio.ensure_future(envoy.key(f"k-{n}")) for n, envoy in enumerate(envoys) for _ in range(2)]
    await asyncio.to_thread(eventually, lambda: wide.metric("weir_held_requests") == CONNECTIONS, 10)
    await asyncio.to_thread(wide.part.stop)
    assert [answer.status for answer in await asyncio.gather(*waiting)] == [200] * 2 * CONNECTIONS


@pytest.mark.parametrize("threads", ["0", "65", "two", "-1", "1.5"])
def test_a_number_of_threads_that_cannot_be_is_refused(threads: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--threads must be a whole number from 1 to 64"):
        in_process(tmp_path / "s.sock", f"redis://127.0.0.1:{free_port()}", threads=threads)


def test_the_server_itself_refuses_it_too(tmp_path: Path) -> None:
    settings = in_process(tmp_path / "s.sock", f"redis://127.0.0.1:{free_port()}", threads="64")
    object.__setattr__(settings, "threads", 65)
    with pytest.raises(_core.ConfigError, match="threads: must be 1 to 64"):
        _core.Server(settings)
