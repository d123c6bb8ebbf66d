# SPDX-License-Identifier: Apache-2.0
"""Not one request too many over three Envoys and three limiters, by every algorithm, on one store and on a cluster.

64 clients ask at once, again and again, until one budget is spent; what came through is compared with what the
algorithm promises for the time that the store's own clock says has passed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import aiohttp
import pytest

from lab.environment import Environment
from lab.layout import Layout, Patience, StoreKind
from lab.team import Team

CLIENTS = 64
REPETITIONS = 20
WAVES = 5
# What is judged is the counting, so no request may be late, however busy the machine.
PATIENT = Patience(store_ms=5_000, limiter_ms=10_000)
NAMESPACE, HOST = "exactness", "exactness.test"
HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """A limit, and how many may and must be admitted in so many microseconds that touch so many of its windows."""

    name: str
    limit: dict[str, Any]
    at_once: int  # admitted however fast the waves are
    per_us: Fraction = Fraction(0)
    window_us: int = 0  # 0 = no windows; a new one gives the budget anew

    def most(self, begun_us: int, ended_us: int) -> int:
        """The largest number that keeps the promise."""
        windows = ended_us // self.window_us - begun_us // self.window_us if self.window_us else 0
        return self.at_once * (1 + windows) + math.floor(self.per_us * (ended_us - begun_us))


CASES = [
    Case("token", {"algorithm": "TokenBucket", "requests": 7, "period": "1s", "burst": 100}, 100, Fraction(7, 10**6)),
    Case(
        "rational", {"algorithm": "TokenBucket", "requests": 333, "period": "1s", "burst": 33}, 33, Fraction(333, 10**6)
    ),
    Case("leaky", {"algorithm": "LeakyBucket", "requests": 50, "period": "1s"}, 1, Fraction(50, 10**6)),
    Case("fixed", {"algorithm": "FixedWindow", "requests": 200, "period": "1h"}, 200, window_us=HOUR_US),
    Case("month", {"algorithm": "FixedWindow", "requests": 200, "calendar": "Month", "timeZone": "Asia/Tokyo"}, 200),
    Case("counter", {"algorithm": "SlidingWindowCounter", "requests": 200, "period": "1h"}, 200, window_us=HOUR_US),
    Case("log", {"algorithm": "SlidingWindowLog", "requests": 200, "period": "1h"}, 200),
]


@pytest.fixture(scope="module", params=list(StoreKind))
def three(request: pytest.FixtureRequest) -> Iterator[Environment]:
    """An environment of its own: three Envoys with a limiter each, on one kind of store."""
    layout = Layout(pairs=3, store=request.param, patience=PATIENT, hosts={NAMESPACE: (HOST,)})
    lab = Environment(f"exactness-{request.param}", layout)
    lab.start()
    try:
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def team(three: Environment) -> Iterator[Team]:
    """The team with one policy that holds a rule for each case, told apart by the header that it is keyed on."""
    team = Team(three, NAMESPACE, HOST)
    rules = [{"name": case.name, "key": [{"header": f"x-{case.name}"}], "limit": case.limit} for case in CASES]
    team.apply_ready(team.policy(rules=rules))
    yield team
    team.leave()


@pytest.mark.requirement("R01", "R03", "R06", "R07", "R10", "R11", "R54")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_three_gateways_admit_exactly_one_budget(team: Team, case: Case) -> None:
    """D07, D12, D33, D36: never more than the promise, and the whole of it."""
    async with _clients() as session:
        for repetition in range(REPETITIONS):
            headers = {"host": HOST, f"x-{case.name}": f"client-{repetition}"}
            begun_us = _store_us(team)
            admitted = sum([await _wave(session, team, headers) for _ in range(WAVES)])
            ended_us = _store_us(team)
            assert case.at_once <= admitted <= case.most(begun_us, ended_us), f"repetition {repetition}"


@pytest.mark.requirement("R07")
async def test_a_thousand_requests_at_once_admit_one_budget(team: Team) -> None:
    """D07: released together over all gateways, against a limit that gives nothing back meanwhile."""
    headers = {"host": HOST, "x-log": "a-thousand"}
    async with _clients() as session:
        assert await _wave(session, team, headers, count=1000) == 200


@pytest.mark.requirement("R12", "R54")
async def test_several_subjects_of_one_request_are_charged_together_or_not_at_all(team: Team) -> None:
    """D08, D33: on a cluster the subjects lie in different slots; what a refused request has charged is given back."""
    both = {"host": HOST, "x-fixed": "narrow", "x-month": "wide"}
    async with _clients() as session:
        for _ in range(6):  # 384 requests, of which the first 200 spend both budgets of 200
            await _wave(session, team, both)
        assert await _wave(session, team, {"host": HOST, "x-fixed": "narrow"}) == 0
        assert await _wave(session, team, {"host": HOST, "x-month": "wide"}) == 0
        mixed = {"host": HOST, "x-fixed": "narrow", "x-month": "untouched"}
        assert await _wave(session, team, mixed) == 0
        whole = [await _wave(session, team, {"host": HOST, "x-month": "untouched"}) for _ in range(4)]
    assert sum(whole) == 200, "the refused requests have cost the other budget something"


def _clients() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=30))


async def _wave(session: aiohttp.ClientSession, team: Team, headers: dict[str, str], count: int = CLIENTS) -> int:
    """So many requests at once, over the gateways in turn; how many passed. All were decided by the store."""
    urls = team.environment.urls

    async def send(number: int) -> int:
        async with session.get(f"{urls[number % len(urls)]}/", headers=headers) as answer:
            assert "x-ratelimit-mode" not in answer.headers, "the store was not asked"
            return answer.status

    statuses = await asyncio.gather(*(send(number) for number in range(count)))
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


def _store_us(team: Team) -> int:
    with team.environment.store.client() as client:
        seconds, microseconds = client.time()
    return int(seconds) * 1_000_000 + int(microseconds)
