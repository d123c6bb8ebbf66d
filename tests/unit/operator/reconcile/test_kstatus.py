# SPDX-License-Identifier: Apache-2.0
"""How kstatus, and so Flux and everybody who waits by it, reads every status that the operator can write.

kstatus judges a kind that it does not know by the generations, then by Reconciling and Stalled, then by Ready.
"""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from weir_operator.api.status import INITIAL_STATUS
from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.conditions import ALLOWED, CATCHING_UP, ConditionType, Reason, Status
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Match, Policy, Response, Rule
from weir_operator.reconcile.coverage import Coverage
from weir_operator.reconcile.programming import Programming
from weir_operator.reconcile.status import Subject, override_status, policy_status
from weir_operator.reconcile.weakness import Weakness

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
GENERATION = 2
RULE = Rule(
    "r", Mode.ENFORCE, (), MissingKey.SKIP, TokenBucket(1, 1_000_000, 1), None, (), FailureMode.OPEN,
    Visibility.PUBLIC, "rate_limited",
)  # fmt: skip
POLICY = Policy("t/p", 1, Match((), ()), (), (RULE,), Response(Dialect.NONE, None))
OUTCOMES = [
    Outcome(),
    *(
        Outcome((Problem("spec", reason, "no"),), kept=kept)
        for reason in sorted(ALLOWED[ConditionType.ACCEPTED, Status.FALSE])
        for kept in (False, True)
    ),
]
PROGRAMMINGS = [
    Programming(Status.TRUE, Reason.PROGRAMMED, "all", 2, 2),
    *(
        Programming(Status.FALSE, reason, "late", 1, 2)
        for reason in sorted(ALLOWED[ConditionType.PROGRAMMED, Status.FALSE] - {Reason.NOT_ACCEPTED})
    ),
]
COVERAGES = [
    Coverage(("a", "b")),
    Coverage(("a",), ("b",)),
    Coverage(("a",), (), ("b",)),
    Coverage(("a",), silent=("b",)),
    Coverage(("a", "b"), storeless=("b",)),
    Coverage(("a", "b"), unasked_since_ms=0),
    Coverage(("a", "b"), unmatched_since_ms=0),
]
WEAK = [
    (),
    (Weakness("r", Mode.SHADOW, Reason.SHADOW_MODE, "x"),),
    (Weakness("r", Mode.DISABLED, Reason.KILL_SWITCH, "x"),),
]


def kstatus(obj: dict[str, Any]) -> str:
    """The rules of kstatus for kinds that it does not know."""
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    status = obj.get("status", {})
    if status.get("observedGeneration", obj["metadata"]["generation"]) != obj["metadata"]["generation"]:
        return "InProgress"
    conditions = status.get("conditions", [])
    for condition in conditions:
        if (condition["type"], condition["status"]) == ("Reconciling", "True"):
            return "InProgress"
        if (condition["type"], condition["status"]) == ("Stalled", "True"):
            return "Failed"
    for condition in conditions:
        if condition["type"] == "Ready":
            return "Current" if condition["status"] == "True" else "InProgress"
    return "Current"


def written(outcome: Outcome, programming: Programming, coverage: Coverage, weak: Any) -> list[dict[str, Any]]:
    """A policy and an override in that state, as they stand in the API server."""
    obj = {"metadata": {"name": "p", "namespace": "t", "generation": GENERATION, "uid": "u"}, "spec": {}}
    piece = POLICY if outcome.accepted or outcome.kept else None
    policy = policy_status(Subject(obj, outcome, programming, piece, coverage, weak if piece else ()), NOW)
    override = override_status(Subject(obj, outcome, programming), NOW)
    return [{**obj, "status": status} for status in (policy, override)]


STATES = [
    (state, found) for state in itertools.product(OUTCOMES, PROGRAMMINGS, COVERAGES, WEAK) for found in written(*state)
]


def expected(outcome: Outcome, programming: Programming) -> str:
    if not outcome.accepted:
        return "Failed"
    if programming.status is Status.TRUE:
        return "Current"
    return "InProgress" if programming.reason in CATCHING_UP else "Failed"


@pytest.mark.requirement("R40")
def test_every_status_is_read_as_it_is_meant() -> None:
    """D54."""
    assert [kstatus(found) for _, found in STATES] == [expected(state[0], state[1]) for state, _ in STATES]


def test_an_edit_is_in_progress_until_it_is_judged() -> None:
    """D54: whatever the status of the generation before says."""
    edited = [{**found, "metadata": {**found["metadata"], "generation": GENERATION + 1}} for _, found in STATES]
    assert {kstatus(found) for found in edited} == {"InProgress"}


def test_a_new_object_is_in_progress_until_it_is_judged() -> None:
    """D54: without the CRD's default it would be Current at once."""
    assert kstatus({"metadata": {"generation": 1}, "status": INITIAL_STATUS}) == "InProgress"


def test_no_status_is_both_in_progress_and_failed_and_a_ready_one_is_neither() -> None:
    for _, found in STATES:
        types = {c["type"]: c["status"] for c in found["status"]["conditions"]}
        assert len(types.keys() & {"Reconciling", "Stalled"}) == (types["Ready"] != "True")
        assert {c["observedGeneration"] for c in found["status"]["conditions"]} == {GENERATION}


def test_the_table_has_no_row_that_no_status_can_have() -> None:
    seen = {
        (ConditionType(c["type"]), Status(c["status"]), Reason(c["reason"]))
        for _, found in STATES
        for c in found["status"]["conditions"]
    }
    table = {(kind, status, reason) for (kind, status), reasons in ALLOWED.items() for reason in reasons}
    assert seen <= table
    only_elsewhere = {reason for _, _, reason in table - seen}
    assert only_elsewhere == {
        Reason.PENDING,  # the CRD's default
        Reason.EXPIRED, Reason.SWITCHED_OFF, Reason.BREAK_GLASS, Reason.DEGRADED, Reason.ROLLING_OUT,  # other tests
    }  # fmt: skip
