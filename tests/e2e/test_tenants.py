# SPDX-License-Identifier: Apache-2.0
"""Teams that share a gateway, one of which wants more than its share of it, or never sits still."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab.environment import Environment
from lab.layout import TEAM_HOSTS
from lab.team import LIVE_S, Team
from lab.waiting import eventually

KEY = {"key": [{"header": "x-api-key"}]}
RULE = {"name": "r", **KEY, "limit": {"requests": 5, "period": "1h"}}
CLOSED = {**RULE, "onStoreFailure": {"mode": "Closed"}}
POLICIES = 50  # rewritten over and over, as fast as one kubectl can


@pytest.fixture
def neighbour(environment: Environment) -> Iterator[Team]:
    """Another team of the same gateway."""
    namespace = "team-orders"
    team = Team(environment, namespace, TEAM_HOSTS[namespace][0])
    yield team
    team.leave()


def burst_of(team: Team, client: str) -> str | None:
    """The limit that a client meets."""
    return team.send(headers={"x-api-key": client}).header("ratelimit-policy")


def edit_and_wait(team: Team, burst: int) -> None:
    """Apply a limit, and wait until somebody new meets it."""
    limit = {"requests": 1, "period": "1h", "burst": burst}
    team.apply(team.policy(rules=[{**RULE, "limit": limit}]))
    attempt = iter(range(10_000))
    eventually(
        lambda: f"q={burst};" in (burst_of(team, f"client-{burst}-{next(attempt)}") or ""),
        LIVE_S,
        what=f"{team.namespace} meets a burst of {burst}",
    )


def huge(team: Team, name: str) -> str:
    """A legal policy whose Closed rule is a long list for Envoy."""
    routes = [{"path": f"/{name}/{number}/" + "🐌" * 16 + "/*"} for number in range(ROUTES)]
    return team.policy(name, match={"hosts": [team.host], "routes": routes}, rules=[CLOSED])


ROUTES = 64


@pytest.mark.requirement("R46")
def test_a_team_that_fills_its_share_is_told_and_its_neighbour_goes_on(team: Team, neighbour: Team) -> None:
    """D46"""
    edit_and_wait(neighbour, 11)
    for number in range(40):
        team.apply(huge(team, f"huge-{number:02}"))

    def full() -> bool:
        found = json.loads(team.kubectl("get", "rlpol", "-o", "json"))["items"]
        reasons = [condition["reason"] for item in found for condition in accepted(item)]
        return len(reasons) == len(found) and "BudgetExceeded" in reasons and "Accepted" in reasons

    eventually(full, LIVE_S, what="some are accepted and the rest is over the budget")
    refused = next(
        condition["message"]
        for item in json.loads(team.kubectl("get", "rlpol", "-o", "json"))["items"]
        for condition in accepted(item)
        if condition["reason"] == "BudgetExceeded"
    )
    assert f'the namespace "{team.namespace}" would have' in refused
    assert "namespaceBudget" in refused
    edit_and_wait(neighbour, 12)


def accepted(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The condition Accepted, when it is there."""
    return [found for found in item.get("status", {}).get("conditions", []) if found["type"] == "Accepted"]


@pytest.mark.requirement("R46")
def test_a_character_beyond_the_basic_plane_is_applied_like_any_other(team: Team) -> None:
    """D46: the API server takes no surrogate pairs, and one such path would have ended everybody's edits."""
    match = {"hosts": [team.host], "routes": [{"path": "/🐌/*"}]}
    team.apply_ready(team.policy(match=match, rules=[RULE]))


@pytest.mark.requirement("R46")
def test_a_team_that_rewrites_its_policies_all_the_time_delays_nobody(team: Team, neighbour: Team) -> None:
    """D46"""
    edit_and_wait(neighbour, 21)
    with rewriting(team) as rounds:
        eventually(lambda: len(rounds) > 1, 4 * LIVE_S, what="the team has rewritten all its policies")
        for burst in (22, 23, 24):
            edit_and_wait(neighbour, burst)
        seen = len(rounds)
        eventually(lambda: len(rounds) > seen, 4 * LIVE_S, what="the team is still at it")


@contextmanager
def rewriting(team: Team) -> Iterator[list[int]]:
    """Rewrite 50 policies again and again while the block runs; gives the rounds that are done."""
    stop, rounds = threading.Event(), list[int]()

    def policies(number: int) -> str:
        rules = [{**RULE, "limit": {"requests": 5 + number, "period": "1h"}}]
        match = [{"hosts": [team.host], "routes": [{"path": f"/{place}/*"}]} for place in range(POLICIES)]
        items = [json.loads(team.policy(f"p{place}", match=match[place], rules=rules)) for place in range(POLICIES)]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    def work() -> None:
        number = 0
        while not stop.is_set():
            team.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=policies(number))
            number += 1
            rounds.append(number)

    thread = threading.Thread(target=work, name="rewriting")
    thread.start()
    try:
        yield rounds
    finally:
        stop.set()
        thread.join()
