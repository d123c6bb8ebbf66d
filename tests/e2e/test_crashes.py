# SPDX-License-Identifier: Apache-2.0
"""Any part may die at any moment while traffic runs: what stays enforced, what the client sees, how it heals."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.layout import RULES_CONFIGMAP, SYSTEM_NAMESPACE
from lab.team import Team
from lab.traffic import Stream, Tally, drive
from lab.waiting import eventually

PER_KEY = {"key": [{"header": "x-api-key"}]}


def rule(requests: int, period: str = "1h", **more: object) -> dict[str, object]:
    return {"name": "burst", **PER_KEY, "limit": {"requests": requests, "period": period}, **more}


def during(team: Team, headers: dict[str, str], harm: Callable[[], None], seconds: float = 3.0) -> Tally:
    """50 requests/s through both gateways, with `harm` after a second."""

    async def play() -> Tally:
        stream = Stream("client", 50, team.host, headers=headers)
        traffic = asyncio.create_task(drive([stream], team.environment.urls, seconds))
        await asyncio.sleep(1.0)
        await asyncio.to_thread(harm)
        (tally,) = await traffic
        return tally

    return asyncio.run(play())


@pytest.mark.requirement("R24", "R45")
def test_limits_stay_enforced_without_the_operator_and_it_takes_up_where_it_was(
    team: Team, api_key: dict[str, str]
) -> None:
    team.apply_ready(team.policy(rules=[rule(100)]))
    tally = during(team, api_key, team.environment.operator.part.kill)
    assert (tally.passed, tally.rejected, tally.failed) == (100, 50, 0)
    team.apply(team.policy(rules=[rule(2)]))
    team.environment.revive()
    team.wait_ready()
    assert team.statuses(3, headers={"x-api-key": f"{api_key['x-api-key']}-new"}) == [200, 200, 429]


@pytest.mark.requirement("R45")
def test_a_policy_deleted_while_the_operator_is_dead_is_gone_when_it_is_back(
    team: Team, api_key: dict[str, str]
) -> None:
    """D53."""
    team.apply_ready(team.policy(rules=[rule(1)]))
    team.environment.operator.part.kill()
    team.kubectl("delete", "rlpol", "limits")
    assert team.statuses(2, headers=api_key) == [200, 429]
    team.environment.revive()
    eventually(lambda: team.rules() == [], within_s=10)
    assert team.statuses(3, headers=api_key) == [200] * 3


@pytest.mark.requirement("R24")
def test_a_dead_limiter_lets_its_gateway_pass_and_is_back_with_the_rules_and_the_counts(
    team: Team, api_key: dict[str, str]
) -> None:
    team.apply_ready(team.policy(rules=[rule(10)]))
    limiter = team.environment.limiters[0]
    tally = during(team, api_key, limiter.program.part.kill)
    assert tally.failed == 0  # the limiter's own death is never the client's problem
    assert team.send(headers=api_key, gateway=1).status == 429
    marked = team.send(headers=api_key, gateway=0)
    received = {name.lower(): value for name, value in marked.json()["headers"]}
    assert (marked.status, received.get("x-envoy-auth-failure-mode-allowed")) == (200, "true")
    team.environment.revive()
    eventually(lambda: team.send(headers=api_key, gateway=0).status == 429, within_s=5)


@pytest.mark.requirement("R24")
def test_a_killed_limiter_makes_policies_not_programmed_until_it_is_back(team: Team) -> None:
    """D52."""
    team.apply_ready(team.policy(rules=[rule(10)]))
    team.environment.limiters[0].program.part.kill()
    eventually(lambda: team.condition("rlpol", "limits", "Programmed")["status"] == "False", within_s=20)
    assert team.condition("rlpol", "limits", "Programmed")["reason"] == "LimiterUnreachable"
    assert team.get("rlpol", "limits")["status"]["limiters"] == "1/2"
    team.environment.revive()
    team.wait_ready()
    assert team.get("rlpol", "limits")["status"]["limiters"] == "2/2"


@pytest.mark.requirement("R23", "R24")
def test_a_dead_store_opens_visibly_where_the_rule_says_open(team: Team, api_key: dict[str, str]) -> None:
    """D30."""
    team.apply_ready(team.policy(rules=[rule(5)]))
    tally = during(team, api_key, team.environment.store.kill)
    assert tally.failed == 0
    answer = team.send(headers=api_key)
    assert (answer.status, answer.header("x-ratelimit-mode")) == (200, "open")
    assert answer.header("ratelimit") is None
    team.environment.store.restart()
    eventually(lambda: team.statuses(8, headers=api_key).count(429) > 0, within_s=10)


@pytest.mark.requirement("R22", "R24")
def test_a_dead_store_closes_where_the_rule_says_closed(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[rule(5, onStoreFailure={"mode": "Closed"})]))
    team.environment.store.kill()
    refused = team.send(headers=api_key)
    assert (refused.status, refused.header("retry-after")) == (503, "1")
    assert refused.json()["code"] == "limiter_unavailable"
    team.environment.store.restart()
    eventually(lambda: team.send(headers=api_key).status == 200, within_s=10)


@pytest.mark.requirement("R21", "R24")
def test_a_hanging_store_costs_a_request_the_deadline_and_no_more(team: Team, api_key: dict[str, str]) -> None:
    """D31: frozen, not dead. Beyond its own patience Envoy would pass a request without that header."""
    team.apply_ready(team.policy(rules=[rule(5)]))
    team.send(headers=api_key)
    team.environment.store.pause()
    try:
        seen = [team.send(headers=api_key) for _ in range(20)]
    finally:
        team.environment.store.resume()
    assert {(answer.status, answer.header("x-ratelimit-mode")) for answer in seen} == {(200, "open")}
    eventually(lambda: team.statuses(8, headers=api_key).count(429) > 0, within_s=10)


@pytest.mark.requirement("R45")
def test_a_limiter_that_starts_without_the_api_enforces_the_rules_it_had(team: Team, api_key: dict[str, str]) -> None:
    """The API is out of reach for one limiter, by a kubeconfig that leads nowhere: its state folder is all it has."""
    team.apply_ready(team.policy(rules=[rule(2)]))
    limiter = team.environment.limiters[0].program
    before = limiter.env
    kubeconfig = json.loads(Path(before["KUBECONFIG"]).read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    nowhere = team.environment.folder / "nowhere.kubeconfig"
    nowhere.write_text(json.dumps(kubeconfig))
    limiter.part.kill()
    try:
        limiter.env = {**before, "KUBECONFIG": str(nowhere)}
        limiter.restart()
        limiter.wait_ready()
        seen = [team.send(headers=api_key, gateway=0).status for _ in range(3)]
        assert seen == [200, 200, 429]
        assert team.environment.limiters[0].status()["watch"]["state"] == "Disconnected"
    finally:
        limiter.env = before
        limiter.part.kill()


@pytest.mark.requirement("R45")
def test_generated_config_maps_come_back_when_somebody_edits_or_deletes_them(
    team: Team, api_key: dict[str, str]
) -> None:
    """D55."""
    team.apply_ready(team.policy(rules=[rule(2)]))
    kubectl = team.environment.cluster.kubectl
    kubectl("delete", "configmap", RULES_CONFIGMAP, "-n", SYSTEM_NAMESPACE)
    eventually(lambda: rules_text(team), within_s=10, what="the deleted ConfigMap is back")
    kubectl("patch", "configmap", RULES_CONFIGMAP, "-n", SYSTEM_NAMESPACE, "-p", '{"data":{"ruleset.json":"{}"}}')
    eventually(lambda: rules_text(team) not in {"", "{}"}, within_s=10, what="the edited ConfigMap is as it was")
    assert team.statuses(3, headers=api_key) == [200, 200, 429]


def rules_text(team: Team) -> str:
    """The published ruleset; empty while there is none."""
    where = ("configmap", RULES_CONFIGMAP, "-n", SYSTEM_NAMESPACE, "--ignore-not-found")
    return team.environment.cluster.kubectl("get", *where, "-o", r"jsonpath={.data['ruleset\.json']}")
