# SPDX-License-Identifier: Apache-2.0
"""Statuses that were judged before, for as long as all that they were made of is the same.

Owns the saving: an edit of one policy must not cost the words of 13,000 statuses. It relies on a status depending on
its Subject, and on the time only through `next_turn` and the stamp of a transition, which stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from weir_operator.reconcile.ports import Resource
from weir_operator.reconcile.status import Subject, next_turn
from weir_operator.reconcile.writer import Wanted

Judge = Callable[[Subject, datetime], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One object's status, and until when it is that (Unix time; None = for ever)."""

    subject: Subject
    wanted: Wanted
    until: float | None


class Judgements:
    """The last judgement of each object of one gateway."""

    def __init__(self) -> None:
        self._before: dict[str, Judgement] = {}
        self._now: dict[str, Judgement] = {}

    def begin_pass(self) -> None:
        """Forget the objects that were not asked about since the last call."""
        self._before, self._now = self._now, {}

    def of(self, resource: Resource, subject: Subject, judge: Judge, now: datetime) -> Judgement:
        """Return the judgement of an object: the very last one where that still holds."""
        uid = subject.obj["metadata"]["uid"]
        known = self._before.get(uid)
        if known is None or not _holds(known, subject, now):
            status = judge(subject, now)
            known = Judgement(subject, Wanted(resource, subject.obj, status), next_turn(subject.piece, now))
        self._now[uid] = known
        return known


def _holds(known: Judgement, subject: Subject, now: datetime) -> bool:
    if known.subject.obj is not subject.obj or (known.until is not None and now.timestamp() >= known.until):
        return False
    return known.subject == subject
