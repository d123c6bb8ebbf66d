# SPDX-License-Identifier: Apache-2.0
"""Writes down what a rollout decided before the limiters are told, and tells people after.

Owns the order: a process that dies in between finds the decision in the status and carries it out, so that nobody is
taken out of a stage that he was in. A status that cannot be written holds nothing up: what was decided is remembered.
"""

from __future__ import annotations

import logging
from typing import Protocol

from weir_operator.reconcile.ports import (
    POLICIES,
    Announcement,
    Clock,
    Cluster,
    Events,
    Missing,
    Stalled,
    Waiting,
)
from weir_operator.reconcile.rollout_report import rule_members
from weir_operator.reconcile.rollouts import Rollouts
from weir_operator.reconcile.status import our_members
from weir_operator.reconcile.store import Store

logger = logging.getLogger(__name__)


class Tools(Protocol):
    """What it works with."""

    @property
    def cluster(self) -> Cluster:
        """The API server."""

    @property
    def store(self) -> Store:
        """What is known of it."""

    @property
    def clock(self) -> Clock:
        """The time."""

    @property
    def events(self) -> Events:
        """Where Events go."""


class Diary:
    """The diary of one gateway's rollouts."""

    def __init__(self, gateway: str, rollouts: Rollouts, tools: Tools) -> None:
        self._gateway = gateway
        self._rollouts = rollouts
        self._tools = tools

    async def write_down(self) -> None:
        """Write the statuses of the policies that were just decided about, and no others."""
        for policy_id in self._rollouts.unwritten():
            standing = self._rollouts.of(policy_id)
            if standing is None:
                continue
            rules = rule_members(policy_id, self._rollouts, self._tools.clock.now().timestamp())
            wanted = {**our_members(standing.obj.get("status")), **rules}
            try:
                stored = await self._tools.cluster.apply_status(standing.obj, wanted)
            except (Missing, Stalled, Waiting) as error:
                logger.warning("rollout not written down: %s", error, extra={"policy": policy_id})
                continue
            self._tools.store.wrote(POLICIES, stored)

    def tell(self) -> None:
        """Tell of what was decided and is published now: an Event, a log line."""
        for obj, rule, note in self._rollouts.take_notes():
            metadata = obj["metadata"]
            text = f"rule {rule}: {note.message}"
            key = f"{metadata['generation']} {text}" if note.warning else ""
            self._tools.events.announce(Announcement(obj, note.reason, "RollOut", text, warning=note.warning, key=key))
            said = {"gateway": self._gateway, "policy": f"{metadata['namespace']}/{metadata['name']}", "rule": rule}
            level = logging.WARNING if note.warning else logging.INFO
            logger.log(level, "%s: %s", note.reason, text, extra=said)
