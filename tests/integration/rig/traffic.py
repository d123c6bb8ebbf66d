# SPDX-License-Identifier: Apache-2.0
"""Steady traffic for tests that break something: what became of each request, how long it waited, in phases.

Requests leave by a timetable and not when the one before was answered, so that a hang cannot hide behind its own queue.
Half of them have one subject for the whole run, which is spent early; the others have one that begins with each phase.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import Self

import grpc.aio

from rig.envoy import Envoy
from rig.modes import UNDECIDED, Mode, Outcome, outcome_of, rules
from rig.sidecar import Sidecar
from rig.waits import NOTHING, Waits

HOT = "hot"
_EVERY_S = 0.005
_WITHIN_S = 60.0  # never the measure of a test; only so that a hang ends

Running = Callable[..., AbstractAsyncContextManager["Traffic"]]
"""The fixture `running`: traffic over some sidecars, while the body runs."""


@dataclass(slots=True)
class Phase:
    """The requests that were sent while something was the case."""

    name: str
    limiter: Waits = NOTHING  # what the limiters measured in it; not before the next one begins
    seen: Counter[tuple[Mode, str, Outcome]] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)

    def count(self, *outcomes: Outcome, mode: Mode | None = None, subject: str | None = None) -> int:
        """How many requests had one of these outcomes; all modes and subjects unless they are named."""
        return sum(
            number
            for (its_mode, its_subject, outcome), number in self.seen.items()
            if outcome in outcomes and mode in (None, its_mode) and subject in (None, its_subject)
        )


class Traffic:
    """Requests to sidecars in turn, for each mode in turn. Use as an async context manager."""

    def __init__(self, sidecars: Sequence[Sidecar], targets: Sequence[str] = ()) -> None:
        self.sidecars = sidecars
        self.phases: list[Phase] = []
        self._measured = NOTHING
        self._envoys = [Envoy(target) for target in targets or [f"unix:{sidecar.socket}" for sidecar in sidecars]]
        self._answered = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._ending = False

    @property
    def phase(self) -> Phase:
        """The one that new requests belong to."""
        return self.phases[-1]

    async def __aenter__(self) -> Self:
        for sidecar in self.sidecars:
            await asyncio.to_thread(sidecar.publish, rules())
        await self.begin("before")
        self._sending = asyncio.create_task(self._send())
        await self.until(lambda: all(self._spent(mode, HOT) for mode in Mode), "the hot subject is spent")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ending = True
        await self._sending
        await asyncio.gather(*self._under_way)
        self.phases.append(Phase("over"))
        await self._measure()
        for envoy in self._envoys:
            await envoy.channel.close()

    async def begin(self, name: str) -> Phase:
        """Let requests from now on belong to a new phase, with a new subject of its name.

        Returns when those of the phase before have been answered, which what happens next must not touch.
        """
        self.phases.append(Phase(name))
        await asyncio.gather(*self._under_way)
        await self._measure()
        return self.phase

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Return once an answer has made it so."""
        try:
            async with asyncio.timeout(_WITHIN_S):
                while not holds():
                    self._answered.clear()
                    await self._answered.wait()
        except TimeoutError:
            raise AssertionError(f"still not after {_WITHIN_S:.0f} s: {what}; {dict(self.phase.seen)}") from None

    async def answers(self, more: int) -> None:
        """Return after so many further answers of the phase."""
        enough = len(self.phase.waits) + more
        await self.until(lambda: len(self.phase.waits) >= enough, f"{enough} answers")

    async def undecided(self, each: int) -> None:
        """Return once so many requests of each mode were answered without the store."""
        phase = self.phase
        await self.until(
            lambda: all(phase.count(*outcomes, mode=mode) >= each for mode, outcomes in UNDECIDED.items()),
            f"{each} requests of each mode are left to it",
        )

    async def unanswered(self, count: int) -> None:
        """Return once so many requests got no answer at all."""
        await self.until(lambda: self.phase.count(Outcome.UNANSWERED) >= count, f"{count} requests are lost")

    async def limited(self) -> None:
        """Return once the phase's own subject is refused, in each mode: the limits are enforced (again)."""
        await self.until(lambda: all(self._spent(mode, self.phase.name) for mode in Mode), "limits are enforced")

    def _spent(self, mode: Mode, subject: str) -> bool:
        return self.phase.count(Outcome.REFUSED, mode=mode, subject=subject) >= 5

    async def _measure(self) -> None:
        """Note what the limiters have measured, as belonging to the phase before the latest."""
        measured = await asyncio.to_thread(Waits.of, self.sidecars)
        if len(self.phases) > 1:
            self.phases[-2].limiter = measured - self._measured
        self._measured = measured

    async def _send(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        for envoy, own, mode in cycle(product(self._envoys, (False, True), Mode)):
            if self._ending:
                return
            subject = self.phase.name if own else HOT
            asking = asyncio.create_task(self._ask(envoy, mode, subject, due))
            self._under_way.add(asking)
            asking.add_done_callback(self._under_way.discard)
            due = max(due + _EVERY_S, clock())  # what this process could not send in time is not the limiter's wait
            await asyncio.sleep(due - clock())

    async def _ask(self, envoy: Envoy, mode: Mode, subject: str, due: float) -> None:
        phase = self.phase
        try:
            outcome = outcome_of(await envoy.key(subject, f"/{mode}/x"))
        except grpc.aio.AioRpcError:
            outcome = Outcome.UNANSWERED
        phase.waits.append(asyncio.get_running_loop().time() - due)
        phase.seen[mode, subject, outcome] += 1
        self._answered.set()
