# SPDX-License-Identifier: Apache-2.0
"""The breaker before a server, and answers that come after the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.asking import ask_until
from rig.documents import leaky, limit, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar, prompt
from rig.toxiproxy import Proxy, Toxiproxy


@pytest.fixture
def start_sidecar(start_sidecar: Callable[..., Sidecar]) -> Callable[..., Sidecar]:
    """With the deadline that users get, which is what this module is about."""
    return prompt(start_sidecar)


@pytest.fixture
def proxy(toxiproxy: Toxiproxy, store: Store) -> Proxy:
    """The way to the store, to be made longer."""
    return toxiproxy.to(store.port)


@pytest.fixture
def sidecar(start_sidecar: Callable[..., Sidecar], proxy: Proxy) -> Sidecar:
    """A sidecar that asks through `proxy` and has no rules yet."""
    return start_sidecar(proxy.url)


@pytest.mark.requirement("R21")
async def test_nobody_waits_for_a_store_whose_breaker_is_open_and_one_probe_closes_it(
    proxy: Proxy, sidecar: Sidecar
) -> None:
    """D31, D39: pings are answered in time, decisions are not; of a thousand requests a handful finds that out."""
    sidecar.publish(single())
    async with Envoy.beside(sidecar.socket) as envoy:
        await ask_until(sidecar, envoy, "Up")
        with proxy.toxic("latency", latency=50):
            await open_breaker(sidecar, envoy)
            assert sidecar.metric("weir_store_breakers_open") == 1
            timeouts = sidecar.metric("weir_store_failures_total", reason="timeout")
            for _ in range(50):
                answers = await asyncio.gather(*(envoy.key(f"k{number}") for number in range(20)))
                assert all(answer.headers == {"x-ratelimit-mode": "open"} for answer in answers)
            late = sidecar.metric("weir_store_failures_total", reason="timeout") - timeouts
            turned_away = sidecar.metric("weir_store_failures_total", reason="breaker")
            assert late + turned_away >= 1_000
            # One probe in at least four seconds; a hundred seconds are more than any machine takes for the above.
            assert late <= 25
        await ask_until(sidecar, envoy, "Up")
        assert not breaker_is_open(sidecar)
        assert "ratelimit" in (await envoy.key("after")).headers


@pytest.mark.requirement("R21")
async def test_a_breaker_closes_by_itself_where_no_request_comes_that_could_probe(
    proxy: Proxy, sidecar: Sidecar
) -> None:
    """Else a gateway without traffic would be reported as down for ever."""
    sidecar.publish(single())
    async with Envoy.beside(sidecar.socket) as envoy:
        await ask_until(sidecar, envoy, "Up")
        with proxy.toxic("latency", latency=50):
            await open_breaker(sidecar, envoy)
    sidecar.wait_store("Up")
    assert not breaker_is_open(sidecar)


@pytest.mark.requirement("R21", "R24")
async def test_a_probe_that_meets_a_spoilt_key_closes_the_breaker_too(
    store: Store, proxy: Proxy, sidecar: Sidecar
) -> None:
    """D35: the server has answered. One key that nobody can count must not keep it from all others."""
    sidecar.publish(single())
    async with Envoy.beside(sidecar.socket) as envoy:
        await ask_until(sidecar, envoy, "Up")
        await envoy.key("spoilt")
        with store.client() as client:
            for key in client.keys("weir:*"):
                client.delete(key)
                client.hset(key, "somebody", "else")
        with proxy.toxic("latency", latency=50):
            await open_breaker(sidecar, envoy)
        async with asyncio.timeout(30):
            while breaker_is_open(sidecar):
                assert (await envoy.key("spoilt")).headers == {"x-ratelimit-mode": "open"}
        assert sidecar.metric("weir_store_failures_total", reason="wrongtype") > 0


@pytest.mark.requirement("R21")
async def test_an_answer_after_the_deadline_reaches_nobody_else_and_its_charge_stays(
    proxy: Proxy, sidecar: Sidecar
) -> None:
    """The late answers are those of a client that is soon refused; an answer that went astray would refuse others."""
    sidecar.publish(single(limit=limit(5, period_s=3600)))
    async with Envoy.beside(sidecar.socket) as envoy:
        await ask_until(sidecar, envoy, "Up")
        for number in range(8):  # too few to open the breaker
            with proxy.toxic("latency", latency=20):
                assert (await envoy.key("late")).headers == {"x-ratelimit-mode": "open"}
            for attempt in range(3):  # the first ones stand behind the late answer, and may be late as well
                fresh = await envoy.key(f"fresh-{number}-{attempt}")
                assert fresh.allowed
                assert fresh.headers.get("ratelimit", FULL) == FULL
        await ask_until(sidecar, envoy, "Up")
        late = await envoy.key("late")
        while late.headers == {"x-ratelimit-mode": "open"}:
            late = await envoy.key("late")
        assert late.status == 429, "what was decided too late is charged all the same"
    for reason in ("protocol", "other", "connection"):
        assert sidecar.metric("weir_store_failures_total", reason=reason) == 0


@pytest.mark.requirement("R21")
@pytest.mark.parametrize("spoilt", [False, True], ids=["done", "failed"])
async def test_what_is_given_back_passes_an_open_breaker_and_closes_none(
    proxy: Proxy, sidecar: Sidecar, store: Store, *, spoilt: bool
) -> None:
    """Nobody waits for a refund, so 50 ms are soon enough for it; for a decision they are not.

    The same when it fails at a key that holds something else: a decision would learn from it that the server is well.
    """
    sidecar.publish(single(limit=leaky(1, period_s=3600, queue=1, max_delay_s=7200)))
    async with Envoy.beside(sidecar.socket, within_s=100_000) as envoy:
        await ask_until(sidecar, envoy, "Up")
        held = []
        async with asyncio.timeout(20):
            while sidecar.metric("weir_held_requests") == 0:
                held.append(asyncio.ensure_future(envoy.key("gone")))
                await asyncio.wait(held, timeout=0.1)
        with proxy.toxic("latency", latency=50):
            await open_breaker(sidecar, envoy)
            if spoilt:
                spoil(store)
            for request in held:
                request.cancel()
            ended = "failed" if spoilt else "done"
            await asyncio.to_thread(
                eventually, lambda: given_back(sidecar, ended) > 0, 20, what="a charge is handed in"
            )
            assert breaker_is_open(sidecar)


FULL = '"burst";r=4;t=720'  # of a client's first request


def given_back(sidecar: Sidecar, ended: str) -> float:
    """How many charges of clients that went away the store has taken back, or has failed to."""
    return sidecar.metric("weir_refunds_total", reason="client_gone", outcome=ended)


def spoil(store: Store) -> None:
    """Put something else where the counters are."""
    with store.client() as client:
        for key in client.keys("weir:2:*"):
            client.delete(key)
            client.hset(key, "somebody", "else")


def breaker_is_open(sidecar: Sidecar) -> bool:
    """Whether the sidecar waits for its store no more, as it says itself."""
    (breaker,) = sidecar.status()["store"]["breakers"]
    return bool(breaker["open"])


async def open_breaker(sidecar: Sidecar, envoy: Envoy) -> None:
    """Ask until the sidecar waits no more."""
    async with asyncio.timeout(20):
        while not breaker_is_open(sidecar):
            await asyncio.gather(*(envoy.key(f"k{number}") for number in range(8)))
