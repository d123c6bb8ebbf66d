# SPDX-License-Identifier: Apache-2.0
"""What the schema cannot know and the operator refuses, as its author reads it with kubectl."""

from typing import Any

import pytest

from lab.team import LIVE_S, Team
from lab.waiting import eventually

KEY = {"key": [{"header": "x-api-key"}]}
PERIOD = {"requests": 5, "period": "1s"}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "zone": (
        {"limit": {"algorithm": "FixedWindow", "requests": 5, "calendar": "Month", "timeZone": "Europe/Berlni"}},
        "Invalid",
        'spec.rules[r].limit.timeZone: "Europe/Berlni" is no time zone; did you mean Europe/Berlin?',
    ),
    "inexact": (
        {"limit": {"algorithm": "SlidingWindowCounter", "requests": 1_000_000, "period": "24h"}},
        "Invalid",
        "spec.rules[r].limit.requests: 1000000 is too much to be counted exactly per 24h; at most 104249",
    ),
    "queue": (
        {"limit": {"algorithm": "LeakyBucket", **PERIOD, "queue": 5, "maxDelay": "1h"}},
        "Invalid",
        'gateway "edge" holds ',
    ),
    "cookie": (
        {"limit": PERIOD, "key": [{"cookie": "sid"}]},
        "Invalid",
        'spec.rules[r].key[0].cookie: gateway "edge" withholds cookies',
    ),
    "capture": (
        {"limit": PERIOD, "key": [{"path": "org"}]},
        "Invalid",
        'spec.rules[r].key[0].path: the policy matches every path, and not every path has a "{org}"',
    ),
}


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_not_accepted_with_the_field_and_a_remedy(standing_team: Team, name: str) -> None:
    """D12"""
    rule, reason, words = REFUSED[name]
    standing_team.apply(standing_team.policy(name, rules=[{"name": "r", **KEY, **rule}]))

    def told() -> bool:
        accepted = standing_team.condition("rlpol", name, "Accepted")
        assert (accepted["status"], accepted["reason"]) == ("False", reason)
        return words in accepted["message"]

    eventually(told, LIVE_S, what=f"{name} is refused in these words")
    standing_team.kubectl("delete", "rlpol", name)


@pytest.mark.requirement("R40")
def test_a_policy_over_the_rule_budget_is_told_the_request_and_the_other_policies(standing_team: Team) -> None:
    def rules(count: int) -> list[dict[str, Any]]:
        return [{"name": f"r{number}", **KEY, "limit": PERIOD} for number in range(count)]

    host = {"hosts": [standing_team.host]}
    standing_team.apply_ready(standing_team.policy("older", rules=rules(5)))
    standing_team.apply(standing_team.policy("younger", match={**host, "routes": [{"path": "/v1/*"}]}, rules=rules(4)))

    def told() -> bool:
        accepted = standing_team.condition("rlpol", "younger", "Accepted")
        assert (accepted["status"], accepted["reason"]) == ("False", "BudgetExceeded")
        expected = f"{standing_team.host}/v1 would meet 9 rules, and at most 8 are allowed on this gateway"
        return expected in accepted["message"] and f"{standing_team.namespace}/older" in accepted["message"]

    eventually(told, LIVE_S, what="the younger policy is over the budget")
    assert standing_team.condition("rlpol", "older", "Accepted")["status"] == "True"
    standing_team.apply_ready(
        standing_team.policy("younger", match={**host, "routes": [{"path": "/v1/*"}]}, rules=rules(3))
    )
    standing_team.kubectl("delete", "rlpol", "older", "younger")


@pytest.mark.requirement("R15")
def test_an_override_that_loses_is_told_the_winner_and_the_place_and_not_the_value(standing_team: Team) -> None:
    """D61"""
    standing_team.apply_ready(standing_team.policy(rules=[{"name": "r", **KEY, "limit": PERIOD}]))
    subjects = [{"x-api-key": "another"}, {"x-api-key": "s3cret"}]
    standing_team.apply(standing_team.override("loser", subjects=subjects, action="Exempt", permanent=True))
    eventually(lambda: standing_team.condition("rlovr", "loser", "Ready")["status"] == "True", LIVE_S)
    winner = standing_team.override("a-winner", subjects=[{"x-api-key": "s3cret"}], action="Block", permanent=True)
    standing_team.apply(winner)

    def told() -> bool:
        message = str(standing_team.condition("rlovr", "loser", "Accepted")["message"])
        assert "s3cret" not in message
        # Newer, or created in the same second and first by name.
        winner = f'override "{standing_team.namespace}/a-winner" wins'
        return 'spec.subjects[1]: for rule "r" the ' in message and winner in message

    eventually(told, LIVE_S, what="the loser knows who wins")
