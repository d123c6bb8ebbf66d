# SPDX-License-Identifier: Apache-2.0
"""Rollouts on running traffic: from shadow to enforced on evidence, and back when it hurts."""

import uuid
from typing import Any

import pytest

from lab.switching import patch_status
from lab.team import Team
from lab.waiting import eventually

pytestmark = pytest.mark.requirement("R43")

WITHIN_S = 60.0  # the operator looks every two seconds and words a status every ten; a busy machine needs longer


def rule(requests: int) -> dict[str, Any]:
    limit = {"requests": requests, "period": "24h"}
    plans = {"from": {"header": "x-plan"}, "limits": {"internal": limit}}
    return {"name": "burst", "key": [{"header": "x-api-key"}], "limit": limit, "plans": plans}


def said(team: Team) -> dict[str, Any]:
    """What the status says of the rule, once it is about the present generation."""
    found = team.get("rlpol", "limits")
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    (entry,) = found["status"]["rules"]
    return entry  # type: ignore[no-any-return]


def stands(team: Team, stage: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        entry = said(team)
        assert entry["stage"] == stage, entry
        return entry

    entry = eventually(reached, WITHIN_S, what=f"the rule stands at {stage}")
    team.wait_ready()
    return entry  # type: ignore[return-value]


def promote(team: Team) -> None:
    generation = team.get("rlpol", "limits")["metadata"]["generation"]
    entry = {"generation": generation, "reason": f"looked at it {uuid.uuid4()}"}
    patch_status(team, {"approvals": {"burst": entry}}, by="alice")


def passed(team: Team, count: int, key: str = "", **headers: str) -> int:
    """How many of a client's requests pass; a new client unless it has a key."""
    names = {"x-api-key": key or str(uuid.uuid4())} | {name.replace("_", "-"): text for name, text in headers.items()}
    return team.statuses(count, headers=names).count(200)


def enforced(team: Team, requests: int, **headers: str) -> bool:
    return passed(team, requests + 2, **headers) == requests


def test_a_raised_limit_is_applied_at_once_and_a_lowered_one_waits_for_a_person(team: Team) -> None:
    """D45."""
    team.apply_ready(team.policy(rules=[rule(2)]))
    team.apply_ready(team.policy(rules=[rule(4)], rollout={"promote": "Manual"}))
    assert enforced(team, 4)
    team.apply_ready(team.policy(rules=[rule(1)], rollout={"promote": "Manual"}))
    assert enforced(team, 4)
    promote(team)
    stands(team, "Enforced")
    eventually(lambda: enforced(team, 1), WITHIN_S, what="the approved limit is enforced")
