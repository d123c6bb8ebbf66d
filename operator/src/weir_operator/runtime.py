# SPDX-License-Identifier: Apache-2.0
"""The running operator: first a full list, then loops, then the watch; and whether all of them are alive.

Owns the order of start and stop, so that nothing is written before everything was seen. Must not decide about objects.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime

import aiohttp

from weir_operator.handlers.watch import Watch
from weir_operator.kube.cluster import ApiCluster
from weir_operator.kube.credentials import NoCredentials, load_configuration
from weir_operator.limiters.poll import LimiterPoller
from weir_operator.metrics import Metrics
from weir_operator.reconcile.loop import Loop
from weir_operator.reconcile.ports import CONFIG_MAPS, Object, Resource, Stalled, Waiting
from weir_operator.reconcile.store import ORPHANS, Store
from weir_operator.reconcile.turn import GatewayTurn, OrphansTurn, Tools
from weir_operator.render.names import SELECTOR
from weir_operator.settings import Settings

RELIST_EVERY_S = 60.0  # how long a change that the watch missed can stay unknown
RELIST_AFTER_START_S = 3.0  # the watch begins with a list of its own: what went between ours and its has no event
RELIST_AGAIN_S = 5.0  # after an outage the watch may sit on a dead connection for another minute
LIST_AGAIN_S = 2.0  # at the start, while the API server is not there or refuses
CONTACT_MAX_AGE_S = 300.0  # five lists in a row got no answer: perhaps a new process has more luck
LOOP_SILENT_MAX_S = 180.0  # three times the longest wait of any loop

logger = logging.getLogger(__name__)


class SystemClock:
    """Both clocks of this machine."""

    def now(self) -> datetime:
        """Return the wall clock, in UTC."""
        return datetime.now(UTC)  # noqa: TID251  this is the Clock that everybody else takes

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()


class Operator:
    """All parts of the operator, wired. Run it once."""

    def __init__(self, settings: Settings, metrics: Metrics, session: aiohttp.ClientSession) -> None:
        self._clock = clock = SystemClock()
        self._metrics = metrics
        self._cluster = ApiCluster(load_configuration, self._on_answer)
        self._store = Store(settings.gateways, self._mark)
        tools = Tools(self._cluster, self._store, clock, metrics)
        self._turns = {
            gateway.name: GatewayTurn(gateway, LimiterPoller(gateway.name, gateway.limiters, session), tools)
            for gateway in settings.gateways
        }
        self._loops = {name: Loop(name, turn, clock, metrics) for name, turn in self._turns.items()}
        self._loops[ORPHANS] = Loop(ORPHANS, OrphansTurn(tools), clock, metrics)
        self._watch = Watch(self._on_event, (gateway.namespace for gateway in settings.gateways), SELECTOR)
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._contact_s = clock.monotonic()
        self._listed = False

    async def run(self) -> None:
        """Run until cancelled; returns only by an exception."""
        self._event_loop = asyncio.get_running_loop()
        try:
            await self._list_until_whole()
            for turn in self._turns.values():
                turn.recall()
            self._watch.start()
            async with asyncio.TaskGroup() as tasks:
                for loop in self._loops.values():
                    tasks.create_task(loop.run(), name=f"loop {loop.name}")
                tasks.create_task(self._relist_for_ever(), name="relist")
        finally:
            await self._cluster.close()
            await asyncio.to_thread(self._watch.stop)

    def complaints(self) -> list[str]:
        """Return what only a restart could cure; empty = alive."""
        wrong = []
        age_s = self._clock.monotonic() - self._contact_s
        if age_s > CONTACT_MAX_AGE_S:
            wrong.append(f"no answer from the API server for {age_s:.0f} s")
        if not self._listed:
            return wrong
        if not self._watch.alive:
            wrong.append("the watch has ended")
        wrong.extend(
            f"the loop of gateway {loop.name} is silent for {loop.silent_for_s():.0f} s"
            for loop in self._loops.values()
            if loop.silent_for_s() > LOOP_SILENT_MAX_S
        )
        return wrong

    def unready(self) -> list[str]:
        """Return why nothing can be expected yet; empty = ready."""
        return [] if self._listed else ["the first list of all objects is not complete"]

    async def _list_until_whole(self) -> None:
        while not self._listed:
            try:
                await self._list_all()
            except (Waiting, Stalled, NoCredentials) as error:
                logger.warning("not started yet: %s", error)
                await asyncio.sleep(LIST_AGAIN_S)
            else:
                self._listed = True
                logger.info("started", extra={"gateways": sorted(self._turns)})

    async def _relist_for_ever(self) -> None:
        next_in_s = RELIST_AFTER_START_S
        while True:
            await asyncio.sleep(next_in_s)
            try:
                missed = await self._list_all()
            except (Waiting, Stalled, NoCredentials) as error:
                logger.warning("the regular list failed: %s", error)
                next_in_s = RELIST_AGAIN_S
                continue
            next_in_s = RELIST_EVERY_S
            if missed:
                self._metrics.missed_events.inc(missed)
                logger.info("a full list showed changes that no event had", extra={"changes": missed})

    async def _list_all(self) -> int:
        missed = 0
        for resource, namespace in self._store.scopes():
            selector = SELECTOR if resource == CONFIG_MAPS else ""
            asked_at = self._store.newest((resource, namespace))
            listing = await self._cluster.list(resource, namespace=namespace, label_selector=selector)
            missed += self._store.relist((resource, namespace), listing, asked_at=asked_at)
        return missed

    def _mark(self, name: str) -> None:
        self._loops[name].mark()

    def _on_answer(self, verb: str, status: int) -> None:
        self._metrics.api_answers.labels(verb, str(status)).inc()
        if status:
            self._contact_s = self._clock.monotonic()

    def _on_event(self, resource: Resource, obj: Object, deleted: bool) -> None:  # noqa: FBT001  the watch's Sink
        """Take an event in the watch's thread and hand it over to ours."""
        loop = self._event_loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: self._store.observe(resource, obj, deleted=deleted))
