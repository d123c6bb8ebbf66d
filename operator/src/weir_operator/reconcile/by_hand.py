# SPDX-License-Identifier: Apache-2.0
"""What one gateway's turn does about what people said by hand: fold it in, tell of it, tidy up after it.

Owns the order of the three and the restraint of the last: an entry is removed a day after its end, with one try an hour
if the API server refuses. Must not decide what a switch does to a rule.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from weir_operator.domain.compiler import Compiled
from weir_operator.domain.specs import PolicyInput
from weir_operator.metrics import Metrics
from weir_operator.reconcile.ports import POLICIES, Clock, Cluster, Events, Missing, Object, Stalled, Waiting
from weir_operator.reconcile.store import Store
from weir_operator.reconcile.switch_news import SwitchNews
from weir_operator.reconcile.switchboard import Switchboard

KEPT_AFTER_END_S = 24 * 3600  # so that whoever looks the next day still sees who, why and until when
TIDY_AGAIN_S = 3600.0  # arbitrary: nothing depends on it

logger = logging.getLogger(__name__)


class ByHand:
    """The interventions in one gateway's policies."""

    def __init__(self, gateway: str, store: Store, clock: Clock, events: Events, metrics: Metrics) -> None:
        self._store = store
        self._clock = clock
        self._board = Switchboard()
        self._news = SwitchNews(gateway, events, metrics)
        self._objects: Mapping[str, Object] = {}
        self._tidied: dict[str, float] = {}  # when a policy was last tried

    def fold(self, compiled: Compiled, policies: Iterable[PolicyInput]) -> Compiled:
        """Return what was compiled from these policies with what people said of them."""
        live = ((policy.meta.id, self._store.current(POLICIES, policy.meta)) for policy in policies)
        self._objects = {policy_id: obj for policy_id, obj in live if obj is not None}
        return self._board.fold(compiled, self._objects, self._now_s())

    def digest_of(self, policy_id: str) -> str:
        """Return what names the content that was folded; "" if there was none."""
        return self._board.of(policy_id).digest

    def is_due(self) -> bool:
        """Whether a switch has ended by itself since it was folded in."""
        return self._board.is_due(self._now_s())

    def due_in_s(self) -> float:
        """Return in how many seconds that will be the case."""
        return self._board.due_in_s(self._now_s())

    async def follow(self, cluster: Cluster) -> None:
        """Tell what was folded in and is published now, and remove what ended long ago."""
        self._news.tell(self._board, self._objects, self._clock.now())
        now_s = self._clock.monotonic()
        self._tidied = {each: at_s for each, at_s in self._tidied.items() if now_s - at_s < TIDY_AGAIN_S}
        for policy_id, obj in self._objects.items():
            names = self._long_ended(policy_id)
            if names and policy_id not in self._tidied:
                self._tidied[policy_id] = now_s
                await self._remove(cluster, obj, names)

    async def _remove(self, cluster: Cluster, obj: Object, names: list[str]) -> None:
        try:
            self._store.wrote(POLICIES, await cluster.end_switches(obj, names))
        except (Missing, Stalled, Waiting) as error:
            logger.info("ended kill switches stay listed: %s", error)

    def _long_ended(self, policy_id: str) -> list[str]:
        found = self._board.of(policy_id).interventions.kill_switches
        before_s = self._now_s() - KEPT_AFTER_END_S
        return [name for name, each in found.items() if each.not_after is not None and each.not_after < before_s]

    def _now_s(self) -> float:
        return self._clock.now().timestamp()
