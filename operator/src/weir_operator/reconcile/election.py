# SPDX-License-Identifier: Apache-2.0
"""Keeps a replica's place in the election: asks for the lease, renews it, gives it back.

Owns the timetable, the log lines and the right to write that follows from `lease`. Must not know what a leader does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from weir_operator.domain.times import micro_time_text
from weir_operator.metrics import Metrics
from weir_operator.reconcile.lease import DURATION_S, Candidacy, Identity, Record, Step
from weir_operator.reconcile.ports import Clock, Leases, Stalled, Waiting

logger = logging.getLogger(__name__)


class Election:
    """One replica's part. `writes_for_s` is true to the moment, whatever became of the tasks of this process."""

    def __init__(self, leases: Leases, identity: Identity, clock: Clock, metrics: Metrics) -> None:
        self._leases = leases
        self._clock = clock
        self._metrics = metrics
        self._candidacy = Candidacy(identity)
        self._elected = asyncio.Event()
        self._trouble = ""

    def writes_for_s(self) -> float:
        """Return for how long this replica may still write; not above 0 = not at all."""
        return self._candidacy.writes_for_s(self._clock.monotonic())

    @property
    def holder(self) -> str:
        """Who holds the lease as far as is known; empty = nobody."""
        seen = self._candidacy.seen
        return seen.holder if seen is not None else ""

    async def run(self) -> None:
        """Ask for the lease for ever."""
        while True:
            await self._ask()
            await asyncio.sleep(self._candidacy.wait_s(self._clock.monotonic()))

    async def whenever_won(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work while this replica leads, for ever; returns only by an exception of the work."""
        while True:
            await self._won()
            working = asyncio.create_task(work(), name="leader's work")
            lost = asyncio.create_task(self._lost(), name="leadership lost")
            try:
                await asyncio.wait({working, lost}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                working.cancel()
                lost.cancel()
                outcome, _ = await asyncio.gather(working, lost, return_exceptions=True)
            if isinstance(outcome, Exception):
                raise outcome
            logger.warning("leads no longer: the lease was not renewed in time", extra={"holder": self.holder})

    async def release(self) -> None:
        """Give the lease back, so that the next replica need not wait. Only after the last write."""
        candidacy, self._candidacy = self._candidacy, Candidacy(self._candidacy.me)
        self._metrics.leading.set(0)
        seen = candidacy.seen
        if seen is None or candidacy.step(self._clock.monotonic()) is not Step.RENEW:
            return
        try:
            await self._leases.write(replace(seen, holder="", duration_s=1.0), self._clock.now())
        except (Waiting, Stalled) as error:
            logger.warning("the lease is not given back: %s", error)
        else:
            logger.info("gave the lease back", extra={"holder": candidacy.me.holder})

    async def _won(self) -> None:
        while self.writes_for_s() <= 0:
            self._elected.clear()
            await self._elected.wait()

    async def _lost(self) -> None:
        while (left_s := self.writes_for_s()) > 0:  # noqa: ASYNC110  a moment that each renewal moves, no event
            await asyncio.sleep(left_s)
        self._metrics.leading.set(0)

    async def _ask(self) -> None:
        try:
            outcome = await self._look_and_act()
        except (Waiting, Stalled) as error:
            outcome = "failed"
            self._complain(str(error))
        else:
            self._complain("")
        self._metrics.lease_requests.labels(outcome).inc()
        self._metrics.leading.set(self.writes_for_s() > 0)

    async def _look_and_act(self) -> str:
        shown = await self._leases.read()
        self._candidacy = self._candidacy.see(shown, self._clock.monotonic())
        step = self._candidacy.step(self._clock.monotonic())
        if step is Step.WAIT:
            return "held_by_another"
        begun_s = self._clock.monotonic()
        stored = await self._leases.write(self._wanted(step), self._clock.now())
        if stored is None:
            return "lost"
        self._candidacy = self._candidacy.granted(stored, begun_s, self._clock.monotonic())
        if step is Step.TAKE:
            before = shown.holder if shown is not None else ""
            logger.info("leads", extra={"holder": stored.holder, "before": before, "transitions": stored.transitions})
        self._elected.set()
        return "granted"

    def _wanted(self, step: Step) -> Record:
        me, seen = self._candidacy.me.holder, self._candidacy.seen
        if seen is None:
            return Record(me, DURATION_S, "", 0, self._now_text())
        if step is Step.RENEW:
            return replace(seen, duration_s=DURATION_S)
        return Record(me, DURATION_S, seen.version, seen.transitions + 1, self._now_text())

    def _complain(self, trouble: str) -> None:
        """Log the beginning of a trouble, not each of its repetitions."""
        if trouble and not self._trouble:
            logger.warning("the lease cannot be had: %s", trouble)
        self._trouble = trouble

    def _now_text(self) -> str:
        return micro_time_text(self._clock.now())
