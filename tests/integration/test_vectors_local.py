# SPDX-License-Identifier: Apache-2.0
"""The conformance vectors with the store away: a limiter's own share of a limit is counted as the store counts it all.

No store ever answers, so the limiter goes by its own clock, which the test sets. All vectors are policies of one
document, each for a host of its own; only what changes its limits half-way needs another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import reading
from lab.processes import free_port
from rig.documents import document
from rig.envoy import Envoy
from rig.fake_clock import FakeClock
from rig.replay import Call, as_policy, by_model, seen, subset
from rig.sidecar import Sidecar

SUBSET = list(subset())
WHOLE = {"onStoreFailure": "Local", "localFactorMilli": 1000}


def written(place: int, rules: Mapping[str, Any], costs: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    return as_policy(rules, costs, host(place), **WHOLE)


def host(place: int) -> str:
    return f"vector-{place:03}.example.com"


def costs_under(rules: Mapping[str, Any], requests: Sequence[Call]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(each.costs for each in requests if each.rules == rules))


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> FakeClock:
    clock = FakeClock(tmp_path_factory.mktemp("clock") / "now")
    clock.stand_at(reading.START_US)
    return clock


@pytest.fixture(scope="module")
def policies() -> list[dict[str, Any]]:
    """What each vector begins with."""
    first = ((requests[0].rules, requests) for _, requests in SUBSET)
    return [written(place, rules, costs_under(rules, all_of_it)) for place, (rules, all_of_it) in enumerate(first)]


@pytest.fixture(scope="module")
def alone(
    clock: FakeClock, policies: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sidecar]:
    """A limiter that never reaches a store."""
    folder: Path = tmp_path_factory.mktemp("alone")
    sidecar = Sidecar(folder, f"redis://127.0.0.1:{free_port()}", env=clock.env)
    sidecar.wait_up()
    sidecar.wait_store("Down")
    sidecar.publish(document(*policies))
    yield sidecar
    sidecar.part.stop()


@pytest.mark.requirement("R11", "R22")
@pytest.mark.parametrize("place", range(len(SUBSET)), ids=[case.name for case, _ in SUBSET])
async def test_a_limiter_by_itself_answers_as_the_vector_says(
    place: int, alone: Sidecar, clock: FakeClock, policies: list[dict[str, Any]]
) -> None:
    case, requests = SUBSET[place]
    headers = {f"x-{entry.get('key', 'subject')}": case.name for each in requests for entry in each.rules.values()}
    rules = requests[0].rules
    costs = costs_under(rules, requests)
    async with Envoy.beside(alone.socket) as envoy:
        for number, (request, expected) in enumerate(zip(requests, by_model(requests, 0), strict=True), start=1):
            if request.rules != rules:
                rules, costs = request.rules, costs_under(request.rules, requests)
                policies[place] = written(place, rules, costs)
                alone.publish(document(*policies))
            clock.stand_at(request.at_us)
            answer = await envoy.get(f"/{costs.index(request.costs)}", headers, host=host(place))
            # Where all rules are in shadow nothing holds, and nobody is told what does not.
            mode = "local" if expected.remaining else None
            assert seen(answer, mode=mode) == expected, f"request {number}: {case.content['behaviour']}"
