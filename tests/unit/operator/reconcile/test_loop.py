# SPDX-License-Identifier: Apache-2.0
"""A loop comes at once for news, backs off from refusals, and outlives every fault of a turn."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from weir_operator.clock import SystemClock
from weir_operator.metrics import Metrics
from weir_operator.reconcile.loop import Loop
from weir_operator.reconcile.pacing import BACKOFF_MAX_S, JITTER, Pacer
from weir_operator.reconcile.ports import Stalled, Waiting


class ScriptedTurn:
    """Does what a list of steps says, and remembers whether there was news."""

    def __init__(self, *steps: Exception | float) -> None:
        self.news: list[bool] = []
        self.done = asyncio.Event()
        self._steps = list(steps)

    async def take(self, *, news: bool) -> float:
        self.news.append(news)
        step = self._steps.pop(0)
        if not self._steps:
            self.done.set()
            self._steps = [3600.0]
        if isinstance(step, Exception):
            raise step
        return step


async def run(turn: ScriptedTurn, while_running: Callable[[Loop], None] = lambda _: None) -> Metrics:
    metrics = Metrics()
    loop = Loop("edge", turn, SystemClock(), metrics)
    running = asyncio.create_task(loop.run())
    while_running(loop)
    async with asyncio.timeout(5):
        await turn.done.wait()
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return metrics


def outcomes(metrics: Metrics) -> dict[str, float]:
    samples = next(iter(metrics.reconciles.collect())).samples
    return {sample.labels["outcome"]: sample.value for sample in samples if sample.name.endswith("_total")}


async def test_the_first_turn_needs_no_news_from_outside() -> None:
    turn = ScriptedTurn(0.0)
    assert outcomes(await run(turn)) == {"done": 1}
    assert turn.news == [True]


async def test_a_turn_says_when_to_come_again() -> None:
    turn = ScriptedTurn(0.01, 0.01, 3600.0)
    await run(turn)
    assert turn.news == [True, False, False]


async def test_a_burst_of_news_is_one_turn() -> None:
    turn = ScriptedTurn(0.2, 3600.0)
    await run(turn, lambda loop: [loop.mark() for _ in range(100)])
    assert turn.news == [True, False]


async def test_a_turn_that_must_wait_is_repeated_with_its_news(caplog: pytest.LogCaptureFixture) -> None:
    turn = ScriptedTurn(Waiting("no answer", 0.01), 3600.0)
    with caplog.at_level(logging.WARNING):
        assert outcomes(await run(turn)) == {"waiting": 1, "done": 1}
    assert turn.news == [True, True]
    assert "waiting: no answer" in caplog.text


async def test_a_fault_of_ours_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    turn = ScriptedTurn(KeyError("oops"), 3600.0)
    assert outcomes(await run(turn)) == {"failed": 1, "done": 1}
    assert "KeyError" in caplog.text


async def test_a_stalled_turn_waits_for_a_person(caplog: pytest.LogCaptureFixture) -> None:
    turn = ScriptedTurn(Stalled("the role lacks patch"))
    assert outcomes(await run(turn)) == {"stalled": 1}
    assert "the role lacks patch" in caplog.text


def test_failures_in_a_row_are_spaced_up_to_a_bound() -> None:
    pacer = Pacer(SystemClock())
    delays = [pacer.failed() for _ in range(20)]
    assert delays[0] <= 1 + JITTER
    assert all(delay <= BACKOFF_MAX_S * (1 + JITTER) for delay in delays)
    assert delays[-1] >= BACKOFF_MAX_S * (1 - JITTER)
    pacer.succeeded(next_in_s=0)
    assert pacer.failed() <= 1 + JITTER


def test_a_server_that_asks_for_patience_gets_it() -> None:
    assert Pacer(SystemClock()).failed(retry_after_s=60) == 60
