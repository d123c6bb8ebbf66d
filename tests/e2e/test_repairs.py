# SPDX-License-Identifier: Apache-2.0
"""What other hands do to the operator's ConfigMaps, and what deletions and refusals lead to, on the real API server."""

import json
from typing import Any

import pytest

from lab.environment import Environment
from lab.team import Team
from lab.waiting import eventually

RULES = ("configmap", "edge-rules-0", "-n", "weir-system")
RULE = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 2, "period": "1h"}}


def rules_map(environment: Environment) -> dict[str, Any]:
    """The ConfigMap of the rules as it is now."""
    found: dict[str, Any] = json.loads(environment.cluster.kubectl("get", *RULES, "-o", "json"))
    return found


def strip(environment: Environment) -> None:
    """Take away every label and an annotation."""
    labels = [f"{name}-" for name in rules_map(environment)["metadata"]["labels"]]
    environment.cluster.kubectl("label", *RULES, *labels)
    environment.cluster.kubectl("annotate", *RULES, "weir.dev/digest-")


def damage(environment: Environment) -> None:
    """Replace the content, and add some."""
    patch = {"data": {"ruleset.json": '{"format": 1}', "note": "hello"}}
    environment.cluster.kubectl("patch", *RULES, "--type", "merge", "-p", json.dumps(patch))


def delete(environment: Environment) -> None:
    environment.cluster.kubectl("delete", *RULES)


def whole(environment: Environment, before: dict[str, Any]) -> bool:
    """Whether the ConfigMap is there and says what it said, be it under a later revision."""
    found = environment.cluster.kubectl("get", *RULES, "-o", "json", "--ignore-not-found")
    if not found:
        return False
    now = json.loads(found)
    labels = now["metadata"].get("labels") == before["metadata"]["labels"]
    digests = [each["metadata"].get("annotations", {}).get("weir.dev/digest") for each in (now, before)]
    return labels and digests[0] == digests[1] and now["data"].keys() == before["data"].keys()


@pytest.mark.parametrize("harm", [strip, damage, delete])
@pytest.mark.parametrize("while_down", [False, True], ids=["while it runs", "while it is down"])
def test_what_other_hands_do_to_the_rules_is_undone(
    team: Team, harm: Any, api_key: dict[str, str], *, while_down: bool
) -> None:
    """D55."""
    environment = team.environment
    team.apply_ready(team.policy(mode="Enforce", rules=[RULE]))
    before = rules_map(environment)
    if while_down:
        environment.operator.part.stop()
    harm(environment)
    if while_down:
        environment.operator.restart()
        environment.operator.wait_ready()
        environment.save()
    eventually(lambda: whole(environment, before), 30, what="the rules are as they were")
    team.wait_ready()
    assert team.statuses(3, headers=api_key) == [200, 200, 429]
    if harm is damage or not while_down:  # a new operator cannot know what was there before
        eventually(lambda: told(environment, before), 10, what="an Event says that it was undone")


def told(environment: Environment, before: dict[str, Any]) -> bool:
    """Whether an Event since then says that other hands' work on the rules was undone."""
    found = json.loads(environment.cluster.kubectl("get", "events.events.k8s.io", "-n", "weir-system", "-o", "json"))
    since = int(before["metadata"]["resourceVersion"])
    return any(
        event["reason"] == "Repaired"
        and event["regarding"]["name"] == before["metadata"]["name"]
        and int(event["metadata"]["resourceVersion"]) > since
        for event in found["items"]
    )


def test_a_deleted_override_ends(team: Team, api_key: dict[str, str]) -> None:
    """D53."""
    subjects = [{"x-api-key": api_key["x-api-key"]}]
    team.apply_ready(
        team.policy(mode="Enforce", rules=[RULE]),
        team.override(policyRef={"name": "limits"}, subjects=subjects, action="Block", permanent=True),
    )
    assert team.statuses(1, headers=api_key) == [429]
    team.kubectl("delete", "rlovr", "exception")
    eventually(lambda: team.statuses(1, headers=api_key) == [200], 10)


def test_an_override_that_lost_its_policy_ends_with_its_deletion(team: Team, api_key: dict[str, str]) -> None:
    """D53: its typo keeps it in force, its deletion does not."""
    subjects = [{"x-api-key": api_key["x-api-key"]}]

    def block(policy: str) -> str:
        return team.override(policyRef={"name": policy}, subjects=subjects, action="Block", permanent=True)

    team.apply_ready(team.policy(mode="Enforce", rules=[RULE]), block("limits"))
    team.apply(block("limit"))
    eventually(lambda: team.condition("rlovr", "exception", "Accepted")["reason"] == "PolicyNotFound", 10)
    assert team.statuses(1, headers=api_key) == [429]
    team.kubectl("delete", "rlovr", "exception")
    eventually(lambda: team.statuses(1, headers=api_key) == [200], 10)


def test_a_namespace_that_is_deleted_takes_its_limits_along(team: Team, api_key: dict[str, str]) -> None:
    """D53, D51: at once with all that is in it; nothing of ours holds the deletion up, and nothing lives on."""
    kubectl = team.environment.cluster.kubectl
    subjects = [{"x-api-key": api_key["x-api-key"]}]
    policy = team.policy(mode="Enforce", rules=[RULE])
    team.apply_ready(policy, team.override(subjects=subjects, action="Block", permanent=True))
    assert team.statuses(1, headers=api_key) == [429]
    try:
        kubectl("delete", "namespace", team.namespace, "--timeout=30s")
        eventually(lambda: team.rules() == [], 10)
        assert team.statuses(4, headers=api_key) == [200] * 4
    finally:
        again = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team.namespace}}
        kubectl("apply", "-f", "-", input=json.dumps(again))
    team.apply_ready(policy)
    assert team.statuses(3, headers=api_key) == [200, 200, 429]


def test_a_policy_of_an_unknown_gateway_is_told_so(team: Team) -> None:
    team.apply(team.policy(gateway="egde", rules=[RULE]))
    eventually(lambda: team.condition("rlpol", "limits", "Accepted")["reason"] == "UnknownGateway", 10)
    assert "edge" in team.condition("rlpol", "limits", "Accepted")["message"]


def test_a_namespace_that_may_not_attach_is_told_so(team: Team) -> None:
    kubectl = team.environment.cluster.kubectl
    stranger = Team(team.environment, "stranger", "stranger.test")
    kubectl("create", "namespace", "stranger")
    try:
        stranger.apply(stranger.policy(rules=[RULE]))
        eventually(lambda: stranger.condition("rlpol", "limits", "Accepted")["reason"] == "NamespaceNotAllowed", 10)
        assert stranger.rules() == []
    finally:
        stranger.leave()
        kubectl("delete", "namespace", "stranger", "--wait=false")
