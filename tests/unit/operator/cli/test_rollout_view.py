# SPDX-License-Identifier: Apache-2.0
"""What `weir rollout` prints of a policy's status."""

from __future__ import annotations

from typing import Any

import pytest

from weir_operator.cli.rollout_view import exit_status, rows, table

NOW_S = 1_764_590_400  # 2025-12-01T12:00:00Z
ACTIVE = {"generation": 3, "limit": "0123456789ab"}
CANDIDATE = {"limit": "ba9876543210", "version": "aaaaaaaaaaaa", "since": "2025-12-01T11:00:00Z"}
EVIDENCE = {
    "version": "aaaaaaaaaaaa",
    "since": "2025-12-01T11:00:00Z",
    "asOf": "2025-12-01T12:00:00Z",
    "requests": 400,
    "wouldReject": 80,
    "rejected": 0,
    "share": "20%",
    "subjects": 1,
    "top": [{"subject": "header:x-api-key=sha256:5f", "count": 80}],
}
AUTOMATIC = {"promote": "Automatic", "after": "2h", "minRequests": 1000, "maxWouldReject": "0.1%"}


def policy(rollout: dict[str, Any], mode: str = "Enforce", **entry: Any) -> dict[str, Any]:
    rules = [{"name": "burst", "limit": {"requests": 1, "period": "1s"}}]
    said = {"name": "burst", "mode": mode, "effectiveMode": mode, "stage": "Shadow", "why": "w", "active": ACTIVE}
    return {
        "metadata": {"namespace": "team", "name": "api", "generation": 4},
        "spec": {"mode": mode, "rules": rules, "rollout": rollout},
        "status": {"rules": [said | entry]},
    }


def waits(obj: dict[str, Any]) -> list[str]:
    (row,) = rows(obj, NOW_S)
    return row["waitsFor"]  # type: ignore[no-any-return]


@pytest.mark.requirement("R43")
def test_every_closed_gate_is_named_with_how_far_it_is() -> None:
    """D45."""
    obj = policy(AUTOMATIC, candidate=CANDIDATE, evidence=EVIDENCE)
    assert waits(obj) == [
        "time, until 2025-12-01T13:00:00Z",
        "requests, 400 of 1000",
        "fewer over the limit, 20% and not at most 0.1%; or weir promote",
    ]
    assert exit_status(rows(obj, NOW_S)) == 3


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    ("obj", "said", "status"),
    [
        (policy({}, stage="Enforced"), [], 0),
        (policy({}, candidate=CANDIDATE), ["weir promote"], 3),
        (policy({}, "Shadow", candidate=CANDIDATE), ["mode Enforce, it is Shadow"], 3),
        (
            policy(
                {"stages": [{"percent": 5, "hold": "2h"}]},
                stage="1/2",
                candidate=CANDIDATE | {"stage": 1, "stageSince": "2025-12-01T11:30:00Z"},
            ),
            ["time, until 2025-12-01T13:30:00Z"],
            3,
        ),
        (
            policy(
                {},
                stage="RolledBack",
                candidate=CANDIDATE
                | {"rolledBack": {"at": "2025-12-01T11:40:00Z", "stage": 1, "generation": 4, "rejected": "7%"}},
            ),
            ["rolled back at 2025-12-01T11:40:00Z: a new generation, or weir promote"],
            4,
        ),
    ],
    ids=["enforced", "by-hand", "capped", "in-a-stage", "rolled-back"],
)
def test_each_state_says_what_it_waits_for_and_ends_with_its_status(
    obj: dict[str, Any], said: list[str], status: int
) -> None:
    """D45."""
    assert waits(obj) == said
    assert exit_status(rows(obj, NOW_S)) == status


@pytest.mark.requirement("R43")
def test_the_table_shows_the_subjects_that_are_over_the_limit() -> None:
    """D45: how a noisy job is found."""
    lines = table(rows(policy({}, candidate=CANDIDATE, evidence=EVIDENCE), NOW_S)).splitlines()
    assert lines == [
        "RULE   STAGE   ENFORCED      NEW           REQUESTS  OVER LIMIT  WAITS FOR",
        "burst  Shadow  generation 3  aaaaaaaaaaaa  400       20%         weir promote",
        "",
        "most over the limit of burst, since 2025-12-01T11:00:00Z:",
        "        80  header:x-api-key=sha256:5f",
    ]


@pytest.mark.requirement("R43")
def test_without_a_word_of_the_operator_there_is_nothing_to_show() -> None:
    """D45."""
    obj = policy({})
    del obj["status"]
    assert rows(obj, NOW_S) == []
    assert exit_status([]) == 3
