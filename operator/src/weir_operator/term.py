# SPDX-License-Identifier: Apache-2.0
"""One leadership from its beginning to its end: the loops of all gateways, made afresh each time.

Owns what only a leader has: turns and what they remember, pollers, loops. Nothing of it outlives the term, because
another replica may have written in between. Must not know how leaders are found.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import aiohttp

from weir_operator.limiters.poll import LimiterPoller
from weir_operator.reconcile.loop import Loop
from weir_operator.reconcile.store import ORPHANS
from weir_operator.reconcile.turn import GatewayTurn, OrphansTurn, Tools
from weir_operator.settings import Settings

LOOP_SILENT_MAX_S = 180.0  # three times the longest wait of any loop

logger = logging.getLogger(__name__)


class Term:
    """The work of a leader. Run it once; it ends when it is cancelled."""

    def __init__(self, settings: Settings, tools: Tools, session: aiohttp.ClientSession) -> None:
        self._metrics = tools.metrics
        self._turns = {
            gateway.name: GatewayTurn(gateway, LimiterPoller(gateway.name, gateway.limiters, session), tools)
            for gateway in settings.gateways
        }
        self._loops = {name: Loop(name, turn, tools.clock, tools.metrics) for name, turn in self._turns.items()}
        self._loops[ORPHANS] = Loop(ORPHANS, OrphansTurn(tools), tools.clock, tools.metrics)
        self._working = False

    async def run(self, list_all: Callable[[], Awaitable[object]]) -> None:
        """Look at everything, then work; returns only by an exception.

        The look is not to be spared: the caches of a replica whose watch hangs are old, and rules that were compiled
        from old objects would replace those of the leader before under a newer revision.
        """
        await list_all()
        for turn in self._turns.values():
            turn.recall()
        self._working = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for loop in self._loops.values():
                    tasks.create_task(loop.run(), name=f"loop {loop.name}")
        finally:
            self._working = False
            self._metrics.forget_gateways()

    def mark(self, name: str) -> None:
        """There is news for a gateway, or for the objects without one."""
        self._loops[name].mark()

    def complaints(self) -> list[str]:
        """Return which loops hang; empty = none."""
        if not self._working:
            return []
        return [
            f"the loop of gateway {loop.name} is silent for {loop.silent_for_s():.0f} s"
            for loop in self._loops.values()
            if loop.silent_for_s() > LOOP_SILENT_MAX_S
        ]
