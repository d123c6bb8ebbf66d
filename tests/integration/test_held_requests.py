# SPDX-License-Identifier: Apache-2.0
"""Leaky buckets let requests leave evenly: who waits, in which order, who is refused, and who gets a charge back.

Beside the leaky bucket, the rulesets here have a limit `count` that never refuses and gets a token back only each day.
What it has left after a request is the store's own count of what was charged.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, leaky, limit, policy, rule
from rig.envoy import Answer, Envoy
from rig.sidecar import Sidecar

COUNTED = 5_000  # requests that `count` has at the start
PATIENT_S = 300.0  # longer than any hold here


def queued(requests: int, period_s: float, *, queue: int, max_delay_s: float = 250, **members: Any) -> bytes:
    """A document with a leaky bucket `even` and the limit `count`, both by x-api-key."""
    even = rule("even", limit=leaky(requests, period_s, queue=queue, max_delay_s=max_delay_s), **members)
    return document(policy(even, rule("count", limit=limit(COUNTED, period_s=COUNTED * 86_400))))


def charged(answer: Answer) -> int:
    """How many requests of its subject the store has charged, this one included."""
    left = re.search(r'"count";r=(\d+)', answer.headers["ratelimit"])
    assert left
    return COUNTED - int(left[1])


@asynccontextmanager
async def asking(sidecar: Sidecar) -> AsyncIterator[Envoy]:
    async with Envoy.beside(sidecar.socket, within_s=PATIENT_S) as envoy:
        yield envoy


async def wait_held(sidecar: Sidecar, count: int) -> None:
    """Return when the sidecar holds exactly so many requests."""
    await asyncio.to_thread(
        eventually, lambda: sidecar.metric("weir_held_requests") == count, 30, what=f"{count} are held"
    )


async def hold(envoy: Envoy, sidecar: Sidecar, key: str, held: int) -> asyncio.Task[Answer]:
    """Ask, and return when the sidecar holds as many requests as `held`."""
    task = asyncio.ensure_future(envoy.key(key))
    await wait_held(sidecar, held)
    assert not task.done()
    return task


async def refunded(sidecar: Sidecar, reason: str, count: int = 1) -> None:
    """Return when the store has taken back so many charges."""
    labels = {"reason": reason, "outcome": "done"}
    await asyncio.to_thread(
        eventually, lambda: sidecar.metric("weir_refunds_total", **labels) == count, 10, what=f"{count} {reason}"
    )


@pytest.mark.requirement("R10")
@pytest.mark.parametrize("scope", ["Region", "Instance"])
async def test_requests_leave_in_their_order_and_never_before_their_time(sidecar: Sidecar, scope: str) -> None:
    interval_s, requests = 0.02, 60
    sidecar.publish(queued(50, 1, queue=requests, scope=scope))
    left: list[tuple[int, float]] = []
    async with asking(sidecar) as envoy:

        async def one() -> None:
            answer = await envoy.key("client")
            assert answer.allowed
            left.append((charged(answer), time.monotonic() - begun))

        begun = time.monotonic()
        await asyncio.gather(*(one() for _ in range(requests)))
    assert [place for place, _ in left] == list(range(1, requests + 1))
    early = [(place, after) for place, after in left if after < (place - 1) * interval_s]
    assert early == []
    assert sidecar.rule("even")["held"] == sidecar.metric("weir_hold_seconds_count") > 0
    assert sidecar.metric("weir_held_requests") == 0


async def test_a_held_answer_has_the_usual_fields(sidecar: Sidecar) -> None:
    sidecar.publish(queued(1, 0.5, queue=3))
    async with asking(sidecar) as envoy:
        first, second = await asyncio.gather(envoy.key("client"), envoy.key("client"))
    for answer in (first, second):
        assert answer.allowed
        quotas = re.findall(r'"(\w+)";q=(\d+)', answer.headers["ratelimit-policy"])
        assert quotas == [("even", "4"), ("count", str(COUNTED))]
        assert "retry-after" not in answer.headers


async def test_a_request_beyond_the_queue_is_refused_and_told_when_there_is_room(sidecar: Sidecar) -> None:
    sidecar.publish(queued(1, 60, queue=1))
    async with asking(sidecar) as envoy:
        assert (await envoy.key("client")).allowed
        held = await hold(envoy, sidecar, "client", 1)
        refused = await envoy.key("client")
        assert (refused.allowed, refused.status, refused.problem["rule"]) == (False, 429, "even")
        assert 30 <= int(refused.headers["retry-after"]) <= 60
        held.cancel()


async def test_a_request_that_would_wait_longer_than_max_delay_is_refused(sidecar: Sidecar) -> None:
    sidecar.publish(queued(1, 60, queue=100, max_delay_s=90))
    async with asking(sidecar) as envoy:
        assert (await envoy.key("client")).allowed
        held = await hold(envoy, sidecar, "client", 1)
        refused = await envoy.key("client")
        assert (refused.allowed, refused.status) == (False, 429)
        assert 1 <= int(refused.headers["retry-after"]) <= 30  # 120 s from the start, of which it may wait 90
        held.cancel()


async def test_without_a_queue_whoever_comes_too_early_is_refused(sidecar: Sidecar) -> None:
    sidecar.publish(queued(1, 60, queue=0, max_delay_s=0))
    async with asking(sidecar) as envoy:
        assert (await envoy.key("client")).allowed
        assert (await envoy.key("client")).status == 429
    assert sidecar.rule("even")["held"] == 0


@pytest.mark.parametrize("scope", ["Region", "Instance"])
async def test_a_client_that_goes_away_is_refunded_and_the_next_one_takes_its_turn(
    sidecar: Sidecar, scope: str
) -> None:
    sidecar.publish(queued(1, 60, queue=1, scope=scope))
    async with asking(sidecar) as envoy:
        assert (await envoy.key("client")).allowed
        gone = await hold(envoy, sidecar, "client", 1)
        assert (await envoy.key("client")).status == 429
        gone.cancel()
        await refunded(sidecar, "client_gone")
        assert sidecar.metric("weir_held_requests") == 0
        next_one = await hold(envoy, sidecar, "client", 1)
        refused = await envoy.key("client")
        assert refused.status == 429
        if scope == "Region":  # else the store was not asked about the refused one
            assert charged(refused) == 2, "the rules beside the leaky bucket have their charge back too"
        next_one.cancel()


async def test_a_connection_that_breaks_gives_back_every_charge_it_held(sidecar: Sidecar) -> None:
    sidecar.publish(queued(1, 60, queue=1000, max_delay_s=250))
    async with asking(sidecar) as other:
        async with asking(sidecar) as envoy:
            assert charged(await envoy.key("client")) == 1
            held = [await hold(envoy, sidecar, "client", number) for number in (1, 2, 3)]
        await refunded(sidecar, "client_gone", 3)
        next_one = await hold(other, sidecar, "client", 1)
        await asyncio.wait([*held], timeout=10)
        next_one.cancel()
        await refunded(sidecar, "client_gone", 4)


async def test_no_more_are_held_than_may_be_and_the_others_are_refused_and_refunded(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    sidecar = start_sidecar(store.url, flags=("--max-held", "2"))
    sidecar.wait_store("Up")
    sidecar.publish(queued(1, 60, queue=1000))
    async with asking(sidecar) as envoy:
        assert charged(await envoy.key("client")) == 1
        held = [await hold(envoy, sidecar, "client", number) for number in (1, 2)]
        for refusals in (1, 2):
            refused = await envoy.key("client")
            assert (refused.status, refused.problem["rule"], refused.problem["code"]) == (429, "even", "rate_limited")
            assert 150 <= int(refused.headers["retry-after"]) <= 180  # behind the two that wait, each time
            await refunded(sidecar, "held_full", refusals)
        assert sidecar.metric("weir_held_requests") == 2
        assert sidecar.rule("even")["rejected"] == 2
        assert (await envoy.key("somebody-else")).allowed
        for task in held:
            task.cancel()


async def test_nobody_is_held_longer_than_envoy_waits(sidecar: Sidecar) -> None:
    """Envoy would pass the request on by itself when its time is over."""
    sidecar.publish(queued(1, 60, queue=10))
    async with Envoy.beside(sidecar.socket, within_s=30) as envoy:
        assert (await envoy.key("client")).allowed
        refused = await envoy.key("client")
        assert (refused.allowed, refused.status) == (False, 429)
        assert 30 <= int(refused.headers["retry-after"]) <= 60
    await refunded(sidecar, "impatient")


async def test_a_rule_in_shadow_holds_nobody_and_counts_whom_it_would_hold(sidecar: Sidecar) -> None:
    sidecar.publish(queued(1, 60, queue=10, mode="Shadow"))
    async with asking(sidecar) as envoy:
        assert all([(await envoy.key("client")).allowed for _ in range(4)])
    evidence = sidecar.rule("even")
    assert (evidence["wouldHold"], evidence["held"], evidence["wouldReject"]) == (3, 0, 0)
    labels = {"policy": "team-orders/orders-api", "rule": "even", "outcome": "would_hold"}
    assert sidecar.metric("weir_rule_decisions_total", **labels) == 3


async def test_others_are_decided_while_thousands_are_held(sidecar: Sidecar) -> None:
    """R21: a held request is a timer. None of the held ones has left when all the others have their answers."""
    thousands = 3_000
    sidecar.publish(queued(1, 60, queue=10_000, max_delay_s=1_000_000))
    async with Envoy.beside(sidecar.socket, within_s=1_000_000) as crowd, asking(sidecar) as other:
        assert (await crowd.key("crowd")).allowed
        held: list[asyncio.Task[Answer]] = []
        for wave in range(250, thousands + 1, 250):  # so that not even a slow machine misses the store's deadline
            held += [asyncio.ensure_future(crowd.key("crowd")) for _ in range(250)]
            await wait_held(sidecar, wave)
        answers = [await other.key(f"client-{number}") for number in range(300)]
        assert all(answer.allowed and "x-ratelimit-mode" not in answer.headers for answer in answers)
        assert sidecar.metric("weir_held_requests") == thousands
        for task in held:
            task.cancel()
        await refunded(sidecar, "client_gone", thousands)


async def test_the_drain_answers_whoever_can_leave_in_time_and_turns_the_others_away(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """With a drain of 2 s: the first of the queue leaves, the last is told to come back, and nobody gets an error."""
    sidecar, heir = start_sidecar(store.url), start_sidecar(store.url)
    document = queued(1, 1.5, queue=10)
    for one in (sidecar, heir):
        one.wait_store("Up")
        one.publish(document)
    async with asking(sidecar) as envoy, asking(heir) as other:
        assert (await envoy.key("client")).allowed
        held = [asyncio.ensure_future(envoy.key("client")) for _ in range(4)]
        await asyncio.to_thread(eventually, lambda: sidecar.metric("weir_held_requests") >= 3, 10, what="they are held")
        sidecar.part.signal(signal.SIGTERM)
        answers = await asyncio.gather(*held)
        allowed = [answer for answer in answers if answer.allowed]
        refused = [answer for answer in answers if not answer.allowed]
        assert allowed
        assert refused
        assert {answer.status for answer in refused} == {429}
        assert all(int(answer.headers["retry-after"]) >= 2 for answer in refused)
        eventually(lambda: not sidecar.part.alive, 10)
        after = await other.key("client")
        assert charged(after) == 1 + len(allowed) + 1, "what was turned away is not charged"
