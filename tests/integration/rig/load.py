# SPDX-License-Identifier: Apache-2.0
"""Clients that ask without a pause, so that something is always under way when a test does its mischief."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle

from rig.envoy import Answer, Envoy
from rig.sidecar import Sidecar

CLIENTS = 32
_WITHIN_S = 15.0  # a failover of the lab's cluster takes 3 s; the rest is for a machine that is busy building something


@dataclass(slots=True)
class Load:
    """What became of the requests so far."""

    admitted: int = 0
    refused: int = 0
    undecided: int = 0
    _decided: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, answer: Answer) -> None:
        """Note an answer."""
        if "x-ratelimit-mode" in answer.headers or answer.status == 503:
            self.undecided += 1
            return
        self._decided.set()
        self.admitted += answer.allowed
        self.refused += not answer.allowed

    async def decisions(self, more: int) -> None:
        """Return after so many further decisions."""
        before = self.admitted + self.refused
        async with asyncio.timeout(_WITHIN_S):
            while self.admitted + self.refused < before + more:
                self._decided.clear()
                await self._decided.wait()

    async def until_spent(self) -> None:
        """Return when somebody was refused, and fifty further decisions have shown what that does to the rest."""
        while self.refused == 0:
            await self.decisions(50)
        await self.decisions(50)


@asynccontextmanager
async def load(sidecars: list[Sidecar], key: str, **headers: str) -> AsyncIterator[Load]:
    """Ask with one key over all sidecars while the body runs; `headers` are further ones."""
    envoys = [Envoy.beside(sidecar.socket) for sidecar in sidecars]
    counts = Load()

    async def ask(envoy: Envoy) -> None:
        while True:
            counts.count(await envoy.key(key, **headers))
            await asyncio.sleep(0.002)  # leaves the processor to the servers, which share it with these clients

    asking = [asyncio.create_task(ask(envoy)) for _, envoy in zip(range(CLIENTS), cycle(envoys), strict=False)]
    try:
        yield counts
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        for envoy in envoys:
            await envoy.channel.close()
