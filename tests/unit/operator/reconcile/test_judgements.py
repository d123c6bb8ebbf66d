# SPDX-License-Identifier: Apache-2.0
"""A status is judged again exactly when something that it is made of has changed, or its time has come."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from weir_operator.domain.conditions import Reason, Status
from weir_operator.domain.limits import Action
from weir_operator.domain.outcomes import ACCEPTED
from weir_operator.domain.overriding import Override
from weir_operator.domain.overriding import Subject as Named
from weir_operator.reconcile.judgements import Judgements
from weir_operator.reconcile.ports import OVERRIDES
from weir_operator.reconcile.programming import Programming
from weir_operator.reconcile.status import Subject

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
OBJECT = {"metadata": {"uid": "u", "generation": 1}}
PIECE = Override(
    "team/vip", "team/api", ("burst",), ((Named("header:x", "0" * 64),),), Action.EXEMPT, None, None,
    int(NOW.timestamp()) + 60,
)  # fmt: skip
SUBJECT = Subject(OBJECT, ACCEPTED, Programming(Status.TRUE, Reason.PROGRAMMED, "all run it", 1, 1), PIECE)


class Judge:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.known = Judgements()

    def __call__(self, subject: Subject, now: datetime) -> dict[str, Any]:
        self.asked += 1
        return {"of": subject.obj["metadata"]["uid"], "at": now.isoformat()}

    def ask(self, subject: Subject, *, after_s: float = 0) -> int:
        """Judge in a pass of its own; return how often that has been necessary so far."""
        self.known.begin_pass()
        self.known.of(OVERRIDES, subject, self, NOW + timedelta(seconds=after_s))
        return self.asked


def test_an_equal_subject_is_judged_once() -> None:
    """D49"""
    judge = Judge()
    assert [judge.ask(SUBJECT), judge.ask(replace(SUBJECT)), judge.ask(SUBJECT, after_s=59)] == [1, 1, 1]


def test_what_changes_by_itself_is_judged_when_its_time_has_come() -> None:
    judge = Judge()
    assert [judge.ask(SUBJECT), judge.ask(SUBJECT, after_s=60)] == [1, 2]


def test_another_object_programming_or_piece_is_judged_anew() -> None:
    judge = Judge()
    judge.ask(SUBJECT)
    behind = replace(SUBJECT, programming=Programming(Status.FALSE, Reason.PROPAGATING, "on its way", 0, 1))
    assert judge.ask(behind) == 2
    assert judge.ask(replace(behind, piece=replace(PIECE, rules=("daily",)))) == 3
    written = replace(behind, obj={"metadata": {"uid": "u", "generation": 1}, "status": {}})
    assert judge.ask(written) == 4


def test_who_was_not_asked_about_is_forgotten() -> None:
    judge = Judge()
    judge.ask(SUBJECT)
    judge.known.begin_pass()
    assert judge.ask(SUBJECT) == 2
