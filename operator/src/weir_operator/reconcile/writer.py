# SPDX-License-Identifier: Apache-2.0
"""Writes statuses, and only those that change something.

Owns the restraint: no write without a difference, no second write of what the server would not keep, and a bound on the
rate of writes that only reword. Must not decide what a status says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weir_operator.metrics import Metrics
from weir_operator.reconcile.pacing import STALLED_S
from weir_operator.reconcile.ports import Clock, Cluster, Missing, Object, Resource, Stalled, Waiting
from weir_operator.reconcile.status import differs, is_transition
from weir_operator.reconcile.store import Store

REWORD_EVERY_S = 10.0  # per object; transitions are written at once
REWORDS_PER_S = 10.0  # over all objects: what only reads better may take its time with thousands of them
MAX_REWORDS = 100.0  # at once; arbitrary
BEFORE_NEWS = 64  # writes that are made although there is news, so that a noisy namespace cannot starve the others
MISSING_S = 1.0  # arbitrary: the watch's news of a deletion takes some ms
CONCURRENT_WRITES = 8  # arbitrary: 1,000 new objects in about a second, and no burden for the server

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One object and the status that it should have."""

    resource: Resource
    obj: Object
    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Written:
    status: Mapping[str, Any]
    resource_version: str
    at_s: float


class StatusWriter:
    """The status writes of one loop."""

    def __init__(self, cluster: Cluster, store: Store, clock: Clock, metrics: Metrics) -> None:
        self._cluster = cluster
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._written: dict[str, _Written] = {}
        self._refused: dict[str, float] = {}  # when to try again
        self._settled: dict[str, Wanted] = {}  # what the server was found to say already
        self._rewords = MAX_REWORDS
        self._rewords_s = clock.monotonic()

    async def write(self, statuses: Iterable[Wanted], has_news: Callable[[], bool] = lambda: False) -> float | None:
        """Write what differs; return in how many seconds a postponed write is due, if any.

        Gives way to news after a few writes: the statuses that remain are due again in the next turn. Who was written
        longest ago comes first. A write that the server refuses for good is one object's trouble: it is logged, and due
        again much later. Raises Waiting at once when the server is not there or asks for patience; what is not written
        then, is due still.
        """
        every = tuple(statuses)
        uids = {_uid(wanted.obj) for wanted in every}
        self._written = {uid: written for uid, written in self._written.items() if uid in uids}
        self._refused = {uid: again_s for uid, again_s in self._refused.items() if uid in uids}
        waits: list[float] = []
        due: list[Wanted] = []
        before, self._settled = self._settled, {}
        self._earn_rewords()
        for wanted in every:
            uid = _uid(wanted.obj)
            wait = None if before.get(uid) is wanted else self._wait_for(wanted)
            if wait is None:
                self._settled[uid] = wanted
                continue
            if wait == 0 and not is_transition(wanted.obj.get("status"), wanted.status):
                wait = self._spend_reword()
            if wait > 0:
                waits.append(wait)
            else:
                due.append(wanted)
        due.sort(key=self._written_s)
        if not await self._write_all(due, has_news):
            waits.append(0.0)
        waits.extend(self._patience_s(wanted) for wanted in due if _uid(wanted.obj) in self._refused)
        return min(waits, default=None)

    async def _write_all(self, due: Sequence[Wanted], has_news: Callable[[], bool]) -> bool:
        """Write in a few lanes, each of which ends at the first Waiting of any; return whether all were written."""
        queue = iter(enumerate(due))
        waiting: list[Waiting] = []
        left: list[Wanted] = []

        async def lane() -> None:
            for place, wanted in queue:
                if waiting or left or (place >= BEFORE_NEWS and has_news()):
                    left.append(wanted)
                    return
                try:
                    await self._write_one(wanted)
                except Waiting as error:
                    waiting.append(error)

        async with asyncio.TaskGroup() as lanes:
            for _ in range(CONCURRENT_WRITES):
                lanes.create_task(lane())
        if waiting:
            raise waiting[0]
        return not left

    def _earn_rewords(self) -> None:
        """Let writes that only reword be made again; what a quiet time saves up is bounded."""
        now_s = self._clock.monotonic()
        self._rewords = min(MAX_REWORDS, self._rewords + (now_s - self._rewords_s) * REWORDS_PER_S)
        self._rewords_s = now_s

    def _spend_reword(self) -> float:
        """Return how long a write that only rewords must wait; 0 = it is made now."""
        if self._rewords < 1:
            return 1.0
        self._rewords -= 1
        return 0.0

    def _written_s(self, wanted: Wanted) -> float:
        """Return when an object was written last, first of all those that never were."""
        written = self._written.get(_uid(wanted.obj))
        return written.at_s if written is not None else float("-inf")

    def _wait_for(self, wanted: Wanted) -> float | None:
        """Return how long this write must wait: 0 = now, None = there is nothing to write."""
        live = wanted.obj.get("status")
        if not differs(live, wanted.status):
            return None
        patience_s = self._patience_s(wanted)
        if patience_s > 0:
            return patience_s
        written = self._written.get(_uid(wanted.obj))
        if written is None or is_transition(live, wanted.status):
            return None if self._is_futile(wanted, written) else 0
        return max(0.0, written.at_s + REWORD_EVERY_S - self._clock.monotonic())

    def _patience_s(self, wanted: Wanted) -> float:
        """Return how long an object is left alone after a refusal; not above 0 = no longer."""
        return self._refused.get(_uid(wanted.obj), 0.0) - self._clock.monotonic()

    def _is_futile(self, wanted: Wanted, written: _Written | None) -> bool:
        """Whether the server has just shown what it makes of this very status, and nobody touched the object since."""
        if written is None:
            return False
        return written.status == wanted.status and written.resource_version == wanted.obj["metadata"]["resourceVersion"]

    async def _write_one(self, wanted: Wanted) -> None:
        uid = _uid(wanted.obj)
        self._refused.pop(uid, None)
        try:
            stored = await self._cluster.apply_status(wanted.obj, wanted.status)
        except Missing:  # deleted meanwhile, which the watch says too; if it does not, the object is there after all
            self._refused[uid] = self._clock.monotonic() + MISSING_S
            return
        except Stalled as error:
            self._refused[uid] = self._clock.monotonic() + STALLED_S
            logger.warning("status not written: %s", error)
            return
        version = stored["metadata"]["resourceVersion"]
        self._written[uid] = _Written(wanted.status, version, self._clock.monotonic())
        self._store.wrote(wanted.resource, stored)
        self._metrics.status_writes.labels(wanted.resource.plural).inc()


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])
