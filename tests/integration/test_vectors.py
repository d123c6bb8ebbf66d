# SPDX-License-Identifier: Apache-2.0
"""The conformance vectors once more, through everything: document, matching, keys, a store with its own clock, headers.

The store's clock is set by the test, as Envoy's requests come in. It still moves on by some milliseconds, and headers
count seconds; so of all vectors those are taken whose outcome, by the model, is the same a little later.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import reading
from lab.store import Flavour, Store, start_store
from lab.waiting import eventually
from rig.envoy import Envoy
from rig.fake_clock import FakeClock
from rig.replay import HOST, as_document, by_model, seen, subset
from rig.sidecar import in_process
from vector import load_all
from weir_limiter import _core

AT_LEAST = 120


SUBSET = list(subset())


def test_there_are_enough_of_them() -> None:
    assert len(SUBSET) >= AT_LEAST
    assert {case.path.parent for case, _ in SUBSET} == {case.path.parent for case in load_all()}


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> FakeClock:
    clock = FakeClock(tmp_path_factory.mktemp("clock") / "now")
    clock.stand_at(reading.START_US)
    return clock


@pytest.fixture(scope="module")
def timed_store(clock: FakeClock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that lives by the test's clock: that of a wheel, since installed ones have an allocator that asks for the
    time before the library is ready for it, and hang."""
    folder = tmp_path_factory.mktemp("store")
    within = ("env", *(f"{name}={value}" for name, value in clock.env.items()))
    store = start_store(folder, name="timed", flavour=Flavour.NEWEST_REDIS, extra=["hz 500"], within=within)
    yield store
    store.stop()


@pytest.fixture(scope="module")
def limiter(timed_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[_core.Server, Path]]:
    """A limiter and its socket. It remembers no refusals: their end is a matter of its own clock, which goes on."""
    socket = tmp_path_factory.mktemp("limiter") / "limiter.sock"
    settings = in_process(socket, timed_store.url, store_deadline="5s", deny_cache="0")
    server = _core.Server(settings)
    server.start()
    eventually(lambda: server.stats().store_up, 20)
    yield server, socket
    server.stop(1.0)


@pytest.mark.parametrize("place", range(len(SUBSET)), ids=[case.name for case, _ in SUBSET])
async def test_a_running_limiter_answers_as_the_vector_says(
    place: int, limiter: tuple[_core.Server, Path], timed_store: Store, clock: FakeClock
) -> None:
    (case, requests), (server, socket) = SUBSET[place], limiter
    headers = {f"x-{entry.get('key', 'subject')}": case.name for each in requests for entry in each.rules.values()}
    rules, now_us = None, -1
    with timed_store.client() as client:
        client.flushall()
        async with Envoy.beside(socket) as envoy:
            for number, (request, expected) in enumerate(zip(requests, by_model(requests, 0), strict=True), start=1):
                if request.rules != rules:
                    rules = request.rules
                    costs = list(dict.fromkeys(each.costs for each in requests if each.rules == rules))
                    server.apply(as_document(rules, costs))
                if request.at_us != now_us:
                    now_us = request.at_us
                    clock.stand_in(client, now_us)
                answer = await envoy.get(f"/{costs.index(request.costs)}", headers, host=HOST)
                assert seen(answer) == expected, f"request {number}: {case.content['behaviour']}"
