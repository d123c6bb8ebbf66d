# SPDX-License-Identifier: Apache-2.0
"""The running operator: a full list, the watch, a place in the election, and work while it leads.

Owns the order of start and stop, so that nothing is written before everything was seen, nor after the lease was given
back; and whether all parts are alive. Must not decide about objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from weir_operator.clock import SystemClock
from weir_operator.endpoints import Hook
from weir_operator.handlers.admission import admission_routes
from weir_operator.handlers.watch import Watch
from weir_operator.kube.cluster import ApiCluster
from weir_operator.kube.credentials import load_configuration
from weir_operator.kube.events import EventRecorder
from weir_operator.kube.lease import ApiLease
from weir_operator.kube.transport import USER_AGENT, Transport
from weir_operator.metrics import Metrics
from weir_operator.reconcile.election import Election
from weir_operator.reconcile.fence import FencedCluster
from weir_operator.reconcile.lease import Identity
from weir_operator.reconcile.ports import CONFIG_MAPS, Cluster, Object, Resource, Stalled, Waiting
from weir_operator.reconcile.rehearsal import Rehearsal
from weir_operator.reconcile.store import Store
from weir_operator.reconcile.turn import Tools
from weir_operator.render.names import SELECTOR
from weir_operator.settings import Settings
from weir_operator.term import Term

if TYPE_CHECKING:
    from weir_operator.webhook import Webhook

RELIST_EVERY_S = 60.0  # how long a change that the watch missed can stay unknown
RELIST_AFTER_START_S = 3.0  # the watch begins with a list of its own: what went between ours and its has no event
RELIST_AGAIN_S = 5.0  # after an outage the watch may sit on a dead connection for another minute
LIST_AGAIN_S = 2.0  # at the start, while the API server is not there or refuses
CONTACT_MAX_AGE_S = 300.0  # five lists in a row got no answer: perhaps a new process has more luck
RELEASE_WITHIN_S = 1.0  # the process has 3 s for all of its end

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """How this replica stands for election."""

    namespace: str
    """Where the lease is."""
    lease: str
    identity: Identity


class Operator:
    """All parts of the operator, wired. Run it once. Without a candidate it takes itself for the only replica."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        session: aiohttp.ClientSession,
        candidate: Candidate | None,
        hook: Hook | None,
    ) -> None:
        self._settings = settings
        self._session = session
        self._clock = SystemClock()
        self._metrics = metrics
        # So that the API server's audit log tells which replica wrote.
        user_agent = f"{USER_AGENT}/{candidate.identity.holder}" if candidate is not None else USER_AGENT
        self._transport = Transport(load_configuration, self._on_answer, user_agent)
        self._cluster = ApiCluster(self._transport)
        instance = candidate.identity.holder if candidate is not None else USER_AGENT
        self._events = EventRecorder(self._transport, instance, self._clock, metrics)
        self._store = Store(settings.gateways, self._mark)
        self._watch = Watch(self._on_event, (gateway.namespace for gateway in settings.gateways), SELECTOR)
        self._election: Election | None = None
        if candidate is not None:
            lease = ApiLease(self._transport, candidate.namespace, candidate.lease)
            self._election = Election(lease, candidate.identity, self._clock, metrics)
        self._webhook = self._review(hook) if hook is not None else None
        self._term: Term | None = None
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._contact_s = self._clock.monotonic()
        self._listed = False

    async def run(self) -> None:
        """Run until cancelled; returns only by an exception."""
        self._event_loop = asyncio.get_running_loop()
        try:
            await self._patiently(self._list_all, "not started yet")
            self._listed = True
            logger.info("started", extra={"gateways": sorted(gateway.name for gateway in self._settings.gateways)})
            self._watch.start()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._relist_for_ever(), name="relist")
                tasks.create_task(self._events.run(), name="events")
                if self._webhook is not None:
                    tasks.create_task(self._webhook.run(), name="webhook")
                if self._election is None:
                    tasks.create_task(self._work(self._cluster), name="work")
                else:
                    tasks.create_task(self._election.run(), name="election")
                    fenced = FencedCluster(self._cluster, self._election.writes_for_s)
                    tasks.create_task(self._election.whenever_won(lambda: self._work(fenced)), name="work")
        finally:
            await self._leave()

    def complaints(self) -> list[str]:
        """Return what only a restart could cure; empty = alive."""
        wrong = []
        age_s = self._clock.monotonic() - self._contact_s
        if age_s > CONTACT_MAX_AGE_S:
            wrong.append(f"no answer from the API server for {age_s:.0f} s")
        if self._listed and not self._watch.alive:
            wrong.append("the watch has ended")
        return wrong + (self._term.complaints() if self._term is not None else [])

    def unready(self) -> list[str]:
        """Return why nothing can be expected yet; empty = ready. A replica that stands by is ready to take over."""
        return [] if self._listed else ["the first list of all objects is not complete"]

    def role(self) -> str:
        """Return this replica's part, for a person who asks whether it is ready."""
        if self._election is None or self._writes_for_s() > 0:
            return "leads"
        return f"stands by; {self._election.holder or 'nobody'} leads"

    def _writes_for_s(self) -> float:
        return self._election.writes_for_s() if self._election is not None else float("inf")

    def _review(self, hook: Hook) -> Webhook:
        # A replica that serves no webhook needs no X.509 library, which takes 10 MB.
        from weir_operator.kube.webhook import WebhookObjects  # noqa: PLC0415
        from weir_operator.webhook import Webhook  # noqa: PLC0415

        routes = admission_routes(Rehearsal(self._store, self._settings.gateways), self._metrics)
        objects = WebhookObjects(self._transport, hook.namespace, hook.secret)
        return Webhook(hook, objects, routes, self._clock, self._writes_for_s)

    async def _work(self, cluster: Cluster) -> None:
        tools = Tools(cluster, self._store, self._clock, self._metrics, self._events)
        self._term = Term(self._settings, tools, self._session)
        try:
            await self._term.run(lambda: self._patiently(self._list_all, "not working yet"))
        finally:
            self._term = None

    async def _leave(self) -> None:
        """After the last write: let the next replica in, close what is open."""
        if self._election is not None:
            try:
                async with asyncio.timeout(RELEASE_WITHIN_S):
                    await self._election.release()
            except TimeoutError:
                logger.warning("the lease is not given back: no answer from the API server")
        await self._transport.close()
        await asyncio.to_thread(self._watch.stop)

    async def _patiently(self, attempt: Callable[[], Awaitable[object]], what: str) -> None:
        while True:
            try:
                await attempt()
            except (Waiting, Stalled) as error:
                logger.warning("%s: %s", what, error)
                await asyncio.sleep(LIST_AGAIN_S)
            else:
                return

    async def _relist_for_ever(self) -> None:
        next_in_s = RELIST_AFTER_START_S
        while True:
            await asyncio.sleep(next_in_s)
            try:
                missed = await self._list_all()
            except (Waiting, Stalled) as error:
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
        if self._term is not None:
            self._term.mark(name)

    def _on_answer(self, verb: str, status: int) -> None:
        self._metrics.api_answers.labels(verb, str(status)).inc()
        if status:
            self._contact_s = self._clock.monotonic()

    def _on_event(self, resource: Resource, obj: Object, deleted: bool) -> None:  # noqa: FBT001  the watch's Sink
        """Take an event in the watch's thread and hand it over to ours."""
        loop = self._event_loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: self._store.observe(resource, obj, deleted=deleted))
