# SPDX-License-Identifier: Apache-2.0
"""Our own pipelining before real servers: each asker gets the answer to his question, however the stream is cut."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable

import pytest

from lab.store import Store
from rig.documents import limit, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.stores import EVERY_SERVER
from rig.toxiproxy import Toxiproxy

pytestmark = EVERY_SERVER

BURST = 100
SUBJECTS = 20
ROUNDS = 3


@pytest.mark.requirement("R21")
async def test_of_many_at_once_each_gets_the_answer_about_itself_however_the_stream_is_cut(
    store: Store, toxiproxy: Toxiproxy, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D38: the n-th client asks n times a round, so that an answer which went astray would repeat another's count.

    The answers come in pieces of a few bytes, and between the rounds the server forgets the script: its refusals stand
    between the answers, and the questions are asked again behind those of others.
    """
    proxy = toxiproxy.to(store.port)
    sidecar = start_sidecar(proxy.url)
    sidecar.publish(single(limit=limit(BURST, period_s=86_400)))
    sidecar.wait_store("Up")
    left: dict[int, list[int]] = {number: [] for number in range(1, SUBJECTS + 1)}
    async with Envoy.beside(sidecar.socket) as envoy:

        async def ask(number: int) -> None:
            left[number].append(remaining((await envoy.key(f"client-{number}")).headers["ratelimit"]))

        with proxy.toxic("slicer", average_size=6, size_variation=5, delay=0):
            for _ in range(ROUNDS):
                store.run("SCRIPT", "FLUSH")
                turns = [number for number in left for _ in range(number)]
                random.Random(7).shuffle(turns)
                await asyncio.gather(*map(ask, turns))
    expected = {number: list(range(BURST - 1, BURST - 1 - ROUNDS * number, -1)) for number in left}
    assert {number: sorted(found, reverse=True) for number, found in left.items()} == expected
    for reason in ("protocol", "other", "connection"):
        assert sidecar.metric("weir_store_failures_total", reason=reason) == 0


def remaining(field: str) -> int:
    """The `r` of a RateLimit field with one item."""
    (left,) = re.findall(r";r=(\d+)", field)
    return int(left)
