# SPDX-License-Identifier: Apache-2.0
"""Who switched what off, why and until when: an Event, a log line and a metric for every change of a kill switch.

Owns what counts as a change, also across restarts: the Event of one change has one key, so that a new process that
finds an old switch tells nothing twice. Must not decide what a switch does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from weir_operator.api.intervening import APPROVALS, KILL_SWITCHES
from weir_operator.domain.interventions import ALL_RULES, Approval, Interventions, KillSwitch
from weir_operator.domain.times import time_text
from weir_operator.metrics import Metrics
from weir_operator.reconcile.ports import Announcement, Events, Object
from weir_operator.reconcile.switchboard import Switchboard

RECENT_S = 3600.0  # the API server keeps Events so long: what a new process finds older than that is no news
_STATUS = "f:status"

logger = logging.getLogger(__name__)


class Happening(StrEnum):
    """What happened to a switch or an approval; the value is the Event's reason."""

    SET = "KillSwitchSet"
    ENDED = "KillSwitchEnded"
    EXPIRED = "KillSwitchExpired"
    APPROVED = "Approved"


@dataclass(frozen=True, slots=True)
class Known:
    """What was known of a policy: its object's uid, the switches that were live, the approvals."""

    uid: str
    live: Mapping[str, KillSwitch]
    approvals: Mapping[str, Approval]


class SwitchNews:
    """What one gateway's turns know of switches, and whom they tell."""

    def __init__(self, gateway: str, events: Events, metrics: Metrics) -> None:
        self._gateway = gateway
        self._events = events
        self._metrics = metrics
        self._known: dict[str, Known] = {}
        self._shown: set[tuple[str, ...]] = set()

    def tell(self, board: Switchboard, objects: Mapping[str, Object], now: datetime) -> None:
        """Tell what has changed since the last call."""
        known = {}
        for policy_id, obj in objects.items():
            found = board.meant(policy_id)
            uid = obj["metadata"]["uid"]
            before = self._known.get(policy_id)
            live = {name: each for name, each in found.kill_switches.items() if each.is_live(now.timestamp())}
            if before is None or before.uid != uid:
                self._tell_first(obj, found, now)
            else:
                self._tell_changes(obj, before, found, live)
            known[policy_id] = Known(uid, live, found.approvals)
        self._known = known
        self._measure()

    def _tell_first(self, obj: Object, found: Interventions, now: datetime) -> None:
        """What an object brings along is news if it is young; the Event exists already if another process told it."""
        for name, switch in found.kill_switches.items():
            at = _written_at(obj, KILL_SWITCHES, name)
            if at is not None and now.timestamp() - at.timestamp() < RECENT_S:
                self._tell(Happening.SET, obj, name, switch)
            end = switch.not_after
            if end is not None and 0 <= now.timestamp() - end < RECENT_S:
                self._tell(Happening.EXPIRED, obj, name, switch)
        for name, approval in found.approvals.items():
            at = _written_at(obj, APPROVALS, name)
            if at is not None and now.timestamp() - at.timestamp() < RECENT_S:
                self._tell(Happening.APPROVED, obj, name, approval)

    def _tell_changes(self, obj: Object, before: Known, found: Interventions, live: Mapping[str, KillSwitch]) -> None:
        for name, switch in live.items():
            if before.live.get(name) != switch:
                self._tell(Happening.SET, obj, name, switch)
        for name, switch in before.live.items():
            if name not in live:
                self._tell(
                    Happening.EXPIRED if found.kill_switches.get(name) == switch else Happening.ENDED, obj, name, switch
                )
        for name, approval in found.approvals.items():
            if before.approvals.get(name) != approval:
                self._tell(Happening.APPROVED, obj, name, approval)

    def _tell(self, what: Happening, obj: Object, name: str, entry: KillSwitch | Approval) -> None:
        note = _note(what, name, entry)
        field = KILL_SWITCHES if isinstance(entry, KillSwitch) else APPROVALS
        at = _written_at(obj, field, name)
        version = obj["metadata"]["resourceVersion"] if what is Happening.ENDED else ""
        key = f"{name} {entry} {at} {version}"
        self._events.announce(Announcement(obj, what, "Intervene", note, warning=what is Happening.SET, key=key))
        self._metrics.interventions.labels(self._gateway, what).inc()
        metadata = obj["metadata"]
        said = {"gateway": self._gateway, "policy": f"{metadata['namespace']}/{metadata['name']}", "rule": name}
        level = logging.WARNING if what is Happening.SET else logging.INFO
        logger.log(level, "%s", note, extra={**said, "change": str(what), "by": entry.by, "why": entry.reason})

    def _measure(self) -> None:
        shown: set[tuple[str, ...]] = {
            (self._gateway, policy_id, name, str(switch.mode), switch.by, switch.reason[:80])
            for policy_id, known in self._known.items()
            for name, switch in known.live.items()
        }
        for labels in self._shown - shown:
            self._metrics.kill_switches.remove(*labels)
        for labels in shown - self._shown:
            self._metrics.kill_switches.labels(*labels).set(1)
        self._shown = shown


def _note(what: Happening, name: str, entry: KillSwitch | Approval) -> str:
    where = "all rules" if name == ALL_RULES else f"rule {name}"
    who, why = entry.by or "somebody without a name", entry.reason or "no reason given"
    if isinstance(entry, Approval):
        return f"generation {entry.generation} of {where} was approved by {who}: {why}"
    until = "until it is removed" if entry.not_after is None else f"until {time_text(entry.not_after)}"
    set_by = f"{entry.mode}, set by {who}: {why}"
    match what:
        case Happening.SET:
            return f"{where} switched to {entry.mode} {until} by {who}: {why}"
        case Happening.EXPIRED:
            return f"the kill switch on {where} has expired ({set_by})"
        case _:
            return f"the kill switch on {where} was removed ({set_by})"


def _written_at(obj: Object, field: str, name: str) -> datetime | None:
    """Return when the API server last noted a writer of an entry."""
    return max(_times(obj, field, name), default=None)


def _times(obj: Object, field: str, name: str) -> Iterator[datetime]:
    for managed in obj["metadata"].get("managedFields") or ():
        owned: Any = (managed.get("fieldsV1") or {}).get(_STATUS) or {}
        if f"f:{name}" in (owned.get(f"f:{field}") or {}) and managed.get("time"):
            yield datetime.fromisoformat(managed["time"])
