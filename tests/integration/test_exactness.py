# SPDX-License-Identifier: Apache-2.0
"""Not one request too many, and none too few: many clients, two sidecars, one store and its clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction
from itertools import cycle

import pytest

from lab.store import Store
from rig.documents import limit, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.stores import EVERY_SERVER

CLIENTS = 64
REPETITIONS = 20
WAVES = 6  # at least; more until one of them is refused something


@pytest.fixture
def pair(store: Store, start_sidecar: Callable[..., Sidecar]) -> list[Sidecar]:
    sidecars = [start_sidecar(store.url), start_sidecar(store.url)]
    for sidecar in sidecars:
        sidecar.wait_store("Up")
    return sidecars


def now_us(store: Store) -> int:
    with store.client() as client:
        seconds, microseconds = client.time()
    return int(seconds) * 1_000_000 + int(microseconds)


async def wave(envoys: list[Envoy], key: str) -> int:
    """One request of each client at once, spread over the sidecars; how many passed."""
    answers = await asyncio.gather(*(envoy.key(key) for _, envoy in zip(range(CLIENTS), cycle(envoys), strict=False)))
    assert all("x-ratelimit-mode" not in answer.headers for answer in answers), "the store was not asked for all"
    return sum(answer.allowed for answer in answers)


@pytest.mark.requirement("R01", "R03", "R07", "R10")
@pytest.mark.parametrize(("requests", "burst"), [(7, 7), (333, 333), (5, 50)])
async def test_two_sidecars_admit_exactly_what_one_bucket_holds(
    store: Store, pair: list[Sidecar], requests: int, burst: int
) -> None:
    """D01, D07, D12: 64 clients over 2 sidecars, 20 times; rates whose token interval is no whole microsecond too."""
    document = single(limit=limit(requests, burst=burst), onStoreFailure="Open")
    for sidecar in pair:
        sidecar.publish(document)
    envoys = [Envoy.beside(sidecar.socket) for sidecar in pair]
    for repetition in range(REPETITIONS):
        key = f"client-{repetition}"
        before_first = now_us(store)
        admitted = await wave(envoys, key)
        after_first = now_us(store)
        for _ in range(WAVES - 2):
            admitted += await wave(envoys, key)
        passed = CLIENTS
        while passed == CLIENTS:
            before_last = now_us(store)
            passed = await wave(envoys, key)
            admitted += passed
        after_last = now_us(store)
        most = burst + Fraction(requests * (after_last - before_first), 1_000_000)
        # The last wave met an empty bucket, and it was never full again: that would have taken a second or more.
        least = burst + Fraction(requests * (before_last - after_first), 1_000_000) - 1
        assert least <= admitted <= most, f"repetition {repetition}"
    for envoy in envoys:
        await envoy.channel.close()


@EVERY_SERVER
@pytest.mark.requirement("R03")
async def test_the_1001st_request_of_the_second_is_refused(store: Store, pair: list[Sidecar]) -> None:
    """D07: a slow refill, so that the time that the test takes gives nothing back."""
    document = single(limit=limit(1000, period_s=86_400))
    for sidecar in pair:
        sidecar.publish(document)
    envoys = [Envoy.beside(sidecar.socket) for sidecar in pair]
    admitted = 0
    for _ in range(17):  # 1,088 requests
        admitted += await wave(envoys, "one-client")
    assert admitted == 1000
    assert pair[0].rule()["rejected"] + pair[1].rule()["rejected"] == 17 * CLIENTS - 1000
    for envoy in envoys:
        await envoy.channel.close()


@pytest.mark.requirement("R10")
async def test_steady_traffic_below_the_limit_is_never_refused(store: Store, pair: list[Sidecar]) -> None:
    """D40: keys expire and come back between two requests, and nobody is refused for it."""
    document = single(limit=limit(3000, burst=3000))
    for sidecar in pair:
        sidecar.publish(document)
    envoys = [Envoy.beside(sidecar.socket) for sidecar in pair]
    for _ in range(20):
        assert await wave(envoys, "steady") == CLIENTS
    for envoy in envoys:
        await envoy.channel.close()
