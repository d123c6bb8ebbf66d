# SPDX-License-Identifier: Apache-2.0
"""While the store is away: what stands in for it. Policies say within seconds that it is away, and that it is back."""

import time
from collections.abc import Callable

import pytest

from lab.team import Team
from lab.waiting import eventually

PER_KEY = {"key": [{"header": "x-api-key"}]}
TOLD_WITHIN_S = 5.0
SLACK_S = 5.0  # for a machine that builds something meanwhile; the figure itself is printed
OPEN = {"name": "open", "limit": {"requests": 100, "period": "1h"}, **PER_KEY}
LOCAL = {**OPEN, "name": "shared", "onStoreFailure": {"mode": "Local", "share": "Split"}}


def reasons(team: Team) -> tuple[str, str]:
    """What both policies say of being enforced."""
    return tuple(team.condition("rlpol", name, "Enforcing")["reason"] for name in ("limits", "shares"))  # type: ignore[return-value]


def told(team: Team, expected: tuple[str, str], harm: Callable[[], None]) -> float:
    """How many seconds after `harm` both conditions say what is expected."""
    begun = time.monotonic()
    harm()
    eventually(lambda: reasons(team) == expected, within_s=TOLD_WITHIN_S + SLACK_S, what=f"Enforcing says {expected}")
    return time.monotonic() - begun


@pytest.mark.requirement("R22", "R24")
@pytest.mark.parametrize("frozen", [False, True], ids=["killed", "frozen"])
def test_conditions_say_within_seconds_that_the_store_is_away_and_that_it_is_back(team: Team, *, frozen: bool) -> None:
    """D52: nobody need send a request for it."""
    store = team.environment.store
    away, back = (store.pause, store.resume) if frozen else (store.kill, store.restart)
    team.apply_ready(team.policy(rules=[OPEN]), team.policy("shares", rules=[LOCAL]))
    assert reasons(team) == ("Enforcing", "Enforcing")
    try:
        lost_s = told(team, ("StoreUnavailable", "Degraded"), away)
    finally:
        found_s = told(team, ("Enforcing", "Enforcing"), back)
    print(f"told of the loss after {lost_s:.1f} s, of the return after {found_s:.1f} s")


@pytest.mark.requirement("R22", "R23", "R24")
def test_limiters_share_a_limit_by_their_number_while_the_store_is_away(team: Team, api_key: dict[str, str]) -> None:
    """D41: two limiters, ten an hour: five in each, and ten in all."""
    rule = {**LOCAL, "limit": {"requests": 10, "period": "1h"}}
    team.apply_ready(team.policy(rules=[rule]))
    team.environment.store.kill()
    eventually(lambda: team.condition("rlpol", "limits", "Enforcing")["reason"] == "Degraded", within_s=20)
    answers = [team.send(headers=api_key, gateway=number % 2) for number in range(30)]
    assert {answer.header("x-ratelimit-mode") for answer in answers} == {"local"}
    assert [answer.status for answer in answers].count(200) == 10
    assert {answer.status for answer in answers} == {200, 429}
    team.environment.store.restart()
