# SPDX-License-Identifier: Apache-2.0
"""Exceptions for one subject: a higher limit, none at all, a block, each with an end that the limiter itself keeps."""

import hashlib
import time
from datetime import UTC, datetime, timedelta

import pytest

from lab.team import Team
from lab.waiting import eventually

RULE = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 2, "period": "1h"}}


def in_s(seconds: float) -> str:
    """A time from now, as users write it. Whole seconds, as Kubernetes keeps times."""
    return (datetime.fromtimestamp(time.time(), UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251


def subject(api_key: dict[str, str]) -> list[dict[str, object]]:
    digest = hashlib.sha256(api_key["x-api-key"].encode()).hexdigest()
    return [{"x-api-key": {"sha256": digest}}]


@pytest.mark.requirement("R15", "R16")
def test_a_raise_helps_a_refused_client_at_once_and_nobody_else(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[RULE]))
    assert team.statuses(3, headers=api_key) == [200, 200, 429]
    raised = {"action": "Set", "limit": {"requests": 5, "burst": 5}, "expiresAt": in_s(3600)}
    team.apply_ready(team.override(subjects=subject(api_key), rules=["burst"], **raised))
    assert team.statuses(4, headers=api_key) == [200] * 3 + [429]
    assert team.statuses(3, headers={"x-api-key": f"{api_key['x-api-key']}-other"}) == [200, 200, 429]


@pytest.mark.requirement("R15")
def test_a_plain_value_names_the_same_subject_as_its_hash(team: Team, api_key: dict[str, str]) -> None:
    named = [{"x-api-key": api_key["x-api-key"]}]
    team.apply_ready(team.policy(rules=[RULE]), team.override(subjects=named, action="Exempt", permanent=True))
    assert team.statuses(5, headers=api_key) == [200] * 5


@pytest.mark.requirement("R15")
def test_a_blocked_subject_is_refused_and_told_until_when(team: Team, api_key: dict[str, str]) -> None:
    blocked = team.override(subjects=subject(api_key), action="Block", expiresAt=in_s(600))
    team.apply_ready(team.policy(rules=[RULE]), blocked)
    refused = team.send(headers=api_key)
    assert refused.status == 429
    assert 590 <= int(refused.header("retry-after") or 0) <= 600
    assert "block" in refused.json()["detail"]


@pytest.mark.requirement("R15", "R45")
def test_an_override_ends_by_itself_with_the_operator_dead(team: Team, api_key: dict[str, str]) -> None:
    lasts_s = 6
    ends = time.time() + lasts_s  # noqa: TID251
    blocked = team.override(subjects=subject(api_key), action="Block", expiresAt=in_s(lasts_s))
    team.apply_ready(team.policy(rules=[RULE]), blocked)
    team.environment.operator.part.kill()
    assert team.send(headers=api_key).status == 429
    eventually(lambda: team.send(headers=api_key).header("ratelimit"), within_s=lasts_s + 3)  # allowed, and decided
    assert abs(time.time() - ends) <= 1.5  # noqa: TID251 - to the second, and expiresAt has no fraction


def test_an_expired_override_says_so_once_the_operator_sees_it(team: Team, api_key: dict[str, str]) -> None:
    team.apply(team.policy(rules=[RULE]))
    team.apply(team.override(subjects=subject(api_key), action="Exempt", expiresAt=in_s(-60)))

    def expired() -> bool:
        ready = team.condition("rlovr", "exception", "Ready")
        return bool(ready["status"] == "True" and ready["reason"] == "Expired")

    eventually(expired, within_s=10)
    assert team.statuses(3, headers=api_key) == [200, 200, 429]


def test_an_override_of_no_policy_is_not_accepted(team: Team, api_key: dict[str, str]) -> None:
    team.apply(team.override(subjects=subject(api_key), action="Exempt", permanent=True))
    eventually(lambda: team.condition("rlovr", "exception", "Accepted")["reason"] == "PolicyNotFound", within_s=10)
