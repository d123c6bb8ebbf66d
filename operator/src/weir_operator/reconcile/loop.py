# SPDX-License-Identifier: Apache-2.0
"""Repeats one turn for ever: the only place that handles what the world refused.

Owns the translation of Waiting and Stalled into waiting, and the edge at which a fault of ours becomes a log line
instead of the end of every gateway. Must not know what a turn does.
"""

from __future__ import annotations

import logging
from typing import Protocol

from weir_operator.metrics import Metrics
from weir_operator.reconcile.pacing import STALLED_S, Pacer
from weir_operator.reconcile.ports import Clock, Stalled, Waiting

logger = logging.getLogger(__name__)


class Turn(Protocol):
    """What a loop repeats."""

    async def take(self, *, news: bool) -> float:
        """Do what is due; return in how many seconds to come again without news. May raise Waiting or Stalled."""


class Loop:
    """One turn, repeated. `name` is the gateway's, or empty for the objects without one."""

    def __init__(self, name: str, turn: Turn, clock: Clock, metrics: Metrics) -> None:
        self.name = name or "(none)"
        self._turn = turn
        self._clock = clock
        self._metrics = metrics
        self._pacer = Pacer(clock)
        self._awake_s = clock.monotonic()

    def mark(self) -> None:
        """There is news."""
        self._pacer.mark()

    def silent_for_s(self) -> float:
        """Return how long ago the loop last showed that it is alive."""
        return self._clock.monotonic() - self._awake_s

    async def run(self) -> None:
        """Take turns until cancelled."""
        self.mark()
        while True:
            news = await self._pacer.turn()
            self._awake_s = self._clock.monotonic()
            await self._take(news=news)
            self._awake_s = self._clock.monotonic()

    async def _take(self, *, news: bool) -> None:
        try:
            next_in_s = await self._turn.take(news=news)
        except Waiting as error:
            self._repeat("waiting", error, retry_after_s=error.retry_after_s)
        except Stalled as error:
            self._repeat("stalled", error, retry_after_s=STALLED_S)
        except Exception as error:  # noqa: BLE001  the edge: one gateway's fault must not end the others
            self._repeat("failed", error, retry_after_s=0.0)
        else:
            self._metrics.reconciles.labels(self.name, "done").inc()
            self._pacer.succeeded(next_in_s=next_in_s)

    def _repeat(self, outcome: str, error: Exception, *, retry_after_s: float) -> None:
        self._metrics.reconciles.labels(self.name, outcome).inc()
        delay_s = self._pacer.failed(retry_after_s=retry_after_s)
        fault = error if outcome == "failed" else None
        logger.log(
            logging.ERROR if fault is not None else logging.WARNING,
            "%s: %s",
            outcome,
            error,
            exc_info=fault,
            extra={"gateway": self.name, "again_in_s": round(delay_s, 1)},
        )
