# SPDX-License-Identifier: Apache-2.0
import itertools
from dataclasses import replace

import pytest

from weir_operator.domain.conditions import (
    ALLOWED,
    Condition,
    ConditionType,
    Reason,
    Status,
    merge,
    parse_conditions,
)

READY = Condition(ConditionType.READY, Status.TRUE, Reason.READY, "all is well", 3, "2026-01-01T00:00:00Z")
EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-06-01T12:00:00Z"


def test_a_condition_outside_the_table_cannot_be_made() -> None:
    outside = [
        key
        for key in itertools.product(ConditionType, Status, Reason)
        if key[2] not in ALLOWED.get((key[0], key[1]), frozenset())
    ]
    assert outside
    for kind, status, reason in outside:
        with pytest.raises(ValueError, match="never has the reason"):
            Condition(kind, status, reason, "", 1)


def test_every_condition_of_the_table_can_be_made() -> None:
    for (kind, status), reasons in ALLOWED.items():
        for reason in reasons:
            assert Condition(kind, status, reason, "", 1).reason is reason


def test_every_reason_is_used_somewhere() -> None:
    assert set(Reason) == set().union(*ALLOWED.values())


def test_the_time_stays_while_the_status_stays() -> None:
    """D49: a new message, reason or generation is no transition."""
    current = replace(READY, reason=Reason.EXPIRED, message="over", observed_generation=4, last_transition_time="")
    (merged,) = merge([READY], [current], NOW)
    assert (merged.last_transition_time, merged.message, merged.observed_generation) == (EARLIER, "over", 4)


def test_the_time_moves_when_the_status_changes() -> None:
    current = Condition(ConditionType.READY, Status.FALSE, Reason.INVALID, "", 4)
    (merged,) = merge([READY], [current], NOW)
    assert merged.last_transition_time == NOW


def test_nothing_changes_when_the_same_is_said_again() -> None:
    """D49: equal results are how the operator knows that there is nothing to write."""
    once = merge([], [replace(READY, last_transition_time="")], EARLIER)
    assert once == merge(once, [replace(READY, last_transition_time="")], NOW)


def test_conditions_are_sorted_by_type_whatever_the_order() -> None:
    accepted = Condition(ConditionType.ACCEPTED, Status.TRUE, Reason.ACCEPTED, "", 1)
    stalled = Condition(ConditionType.STALLED, Status.TRUE, Reason.INVALID, "", 1)
    merged = merge([], [stalled, READY, accepted], NOW)
    assert [c.type for c in merged] == [ConditionType.ACCEPTED, ConditionType.READY, ConditionType.STALLED]


def test_a_condition_that_is_no_longer_said_goes() -> None:
    stalled = Condition(ConditionType.STALLED, Status.TRUE, Reason.INVALID, "", 1, EARLIER)
    assert [c.type for c in merge([stalled, READY], [READY], NOW)] == [ConditionType.READY]


def test_a_condition_survives_the_way_to_kubernetes_and_back() -> None:
    assert parse_conditions([READY.to_document()]) == (READY,)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "x",
        [1],
        [{}],
        [{"type": "Ready", "status": "Maybe", "reason": "Ready"}],
        [{"type": "Ready", "status": "True", "reason": "Invented"}],
        [{"type": "Mine", "status": "True", "reason": "Ready"}],
        [{"type": ["Ready"], "status": {}, "reason": None}],
    ],
)
def test_what_is_not_ours_is_read_as_nothing(raw: object) -> None:
    assert parse_conditions(raw) == ()


def test_a_message_is_bounded() -> None:
    long = replace(READY, message="x" * 100_000)
    assert len(long.message) == 4096
