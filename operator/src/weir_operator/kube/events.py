# SPDX-License-Identifier: Apache-2.0
"""Events on users' objects, behind `reconcile.ports.Events`.

Owns their form, their rate and their queue: who announces never waits, and an API server that is away costs Events, and
no turn its time. An Event bears a name made from what it says: it exists once, whoever repeats it after a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from weir_operator.domain.times import micro_time_text
from weir_operator.kube.errors import Attempt
from weir_operator.kube.transport import JSON, Transport
from weir_operator.metrics import Metrics
from weir_operator.reconcile.ports import EVENTS, Announcement, Clock, Missing, Object, Stalled, Waiting

CONTROLLER = "weir.dev/operator"
NOTE_MAX_CHARS = 1024  # the API's own bound
QUEUE = 256  # arbitrary: a burst of that many interventions has an incident of its own
BURST = 10  # Events on one object at once ...
REFILL_S = 30.0  # ... and one more after each of these: arbitrary, people act more seldom
OBJECTS = 4096  # whose rate is remembered
ATTEMPTS = 3

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Queued:
    announcement: Announcement
    at: datetime


class EventRecorder:
    """Takes announcements and writes them while `run` does."""

    def __init__(self, transport: Transport, instance: str, clock: Clock, metrics: Metrics) -> None:
        self._transport = transport
        self._instance = instance
        self._clock = clock
        self._metrics = metrics
        self._queue: asyncio.Queue[_Queued] = asyncio.Queue(QUEUE)
        self._rates: OrderedDict[str, _Rate] = OrderedDict()

    def announce(self, announcement: Announcement) -> None:
        """Queue an Event; what is too much is counted and dropped."""
        if self._queue.full() or not self._allows(announcement.target["metadata"]["uid"]):
            self._metrics.events.labels("dropped").inc()
            return
        self._queue.put_nowait(_Queued(announcement, self._clock.now()))

    async def run(self) -> None:
        """Write what is queued, for ever."""
        while True:
            queued = await self._queue.get()
            self._metrics.events.labels(await self._write(queued)).inc()

    def _allows(self, uid: str) -> bool:
        rate = self._rates.pop(uid, None) or _Rate(BURST, self._clock.monotonic())
        self._rates[uid] = rate
        if len(self._rates) > OBJECTS:
            self._rates.popitem(last=False)
        return rate.take(self._clock.monotonic())

    async def _write(self, queued: _Queued) -> str:
        """Create the Event; return what became of it."""
        manifest = self._manifest(queued)
        attempt = Attempt("create", EVENTS, namespace=manifest["metadata"]["namespace"])
        for _ in range(ATTEMPTS):
            try:
                await self._transport.request(attempt, "POST", body=manifest, content_type=JSON)
            except Waiting as error:
                if error.conflict:
                    return "known"
                logger.info("event not written yet: %s", error)
                await asyncio.sleep(error.retry_after_s)
            except (Stalled, Missing) as error:
                logger.warning("event not written: %s", error)
                return "refused"
            else:
                return "written"
        return "dropped"

    def _manifest(self, queued: _Queued) -> Object:
        said, metadata = queued.announcement, queued.announcement.target["metadata"]
        identity = "\0".join((metadata["uid"], said.reason, said.key or said.note))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            # a name has at most 253 characters
            "metadata": {"namespace": metadata["namespace"], "name": f"{metadata['name'][:200]}.{digest}"},
            "eventTime": micro_time_text(queued.at),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance[:128],
            "type": "Warning" if said.warning else "Normal",
            "reason": said.reason,
            "action": said.action,
            "note": said.note[:NOTE_MAX_CHARS],
            "regarding": {
                "apiVersion": said.target["apiVersion"],
                "kind": said.target["kind"],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        }


@dataclass(slots=True)
class _Rate:
    """A bucket of Events that an object may still have."""

    left: float
    at_s: float

    def take(self, now_s: float) -> bool:
        self.left = min(BURST, self.left + (now_s - self.at_s) / REFILL_S)
        self.at_s = now_s
        if self.left < 1:
            return False
        self.left -= 1
        return True
