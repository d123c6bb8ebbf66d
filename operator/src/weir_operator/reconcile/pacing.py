# SPDX-License-Identifier: Apache-2.0
"""When a loop takes its next turn: at once for news, later after failures, in between for time itself.

Owns debounce and backoff. Must not know what a turn does.
"""

from __future__ import annotations

import asyncio
import random

from weir_operator.reconcile.ports import Clock

DEBOUNCE_S = 0.05  # news comes in bursts: `kubectl apply -f folder` is one change to us
BACKOFF_MAX_S = 30.0  # the longest that a healed API server waits for us
STALLED_S = 30.0  # a person has to act; looking again this often costs nothing
JITTER = 0.2


class Pacer:
    """The timing of one loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._news = asyncio.Event()
        self._due_s = clock.monotonic()
        self._not_before_s = clock.monotonic()
        self._failures = 0

    def mark(self) -> None:
        """There is news."""
        self._news.set()

    async def turn(self) -> bool:
        """Wait until a turn is due; return whether there is news."""
        await self._sleep_until(self._not_before_s)
        wait_s = max(0.0, self._due_s - self._clock.monotonic())
        try:
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(DEBOUNCE_S)
        self._news.clear()
        return True

    def succeeded(self, *, next_in_s: float) -> None:
        """The turn is done; another one is due after this time even without news."""
        self._failures = 0
        self._not_before_s = self._clock.monotonic()
        self._due_s = self._not_before_s + next_in_s

    def failed(self, *, retry_after_s: float = 0.0) -> float:
        """The turn must be repeated; return in how many seconds."""
        backoff_s = min(BACKOFF_MAX_S, 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        delay_s = max(retry_after_s, backoff_s * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311  spreads retries
        self._not_before_s = self._clock.monotonic() + delay_s
        self._news.set()
        return delay_s

    async def _sleep_until(self, time_s: float) -> None:
        delay_s = time_s - self._clock.monotonic()
        if delay_s > 0:
            await asyncio.sleep(delay_s)
