# SPDX-License-Identifier: Apache-2.0
"""The break-glass ConfigMap on running traffic: it needs no operator, and it does not hide."""

import json
import uuid
from collections.abc import Iterator

import pytest

from lab.client import fetch
from lab.layout import GATEWAY, SYSTEM_NAMESPACE
from lab.team import LIVE_S, Team
from lab.waiting import eventually

pytestmark = pytest.mark.requirement("R42", "R45")

NAME = f"{GATEWAY}-breakglass"
RULES = [
    {"name": name, "key": [{"header": f"x-{name}"}], "limit": {"requests": 1, "period": "1h"}}
    for name in ("burst", "monthly")
]


@pytest.fixture
def policy(team: Team) -> Iterator[Team]:
    """The team with an enforced policy of two rules; whatever glass was broken is mended after the test."""
    team.apply_ready(team.policy(rules=RULES))
    yield team
    mend(team)


def break_glass(team: Team, modes: str) -> None:
    """Write the ConfigMap as a person does, who owns it."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": SYSTEM_NAMESPACE},
        "data": {"modes": modes},
    }
    team.environment.cluster.apply(json.dumps(manifest))


def mend(team: Team) -> None:
    team.environment.cluster.kubectl("delete", "configmap", NAME, "-n", SYSTEM_NAMESPACE, "--ignore-not-found")


def refuses(team: Team, rule: str) -> set[bool]:
    """What the gateways do with the second request of a new client: refuse it or not."""
    found = set()
    for gateway in range(len(team.environment.urls)):
        headers = {f"x-{rule}": str(uuid.uuid4())}
        found.add([team.send(headers=headers, gateway=gateway).status for _ in range(2)] == [200, 429])
    return found


def test_it_switches_a_rule_off_with_the_operator_dead_and_its_removal_brings_the_rule_back(policy: Team) -> None:
    assert refuses(policy, "burst") == {True}
    policy.environment.operator.part.kill()
    break_glass(policy, f'"{policy.namespace}/limits/burst": Disabled')
    eventually(lambda: refuses(policy, "burst") == {False}, LIVE_S, what="burst is off everywhere")
    assert refuses(policy, "monthly") == {True}
    mend(policy)
    eventually(lambda: refuses(policy, "burst") == {True}, LIVE_S, what="burst is back everywhere")


def test_it_shows_in_the_condition_and_in_the_metric(policy: Team) -> None:
    break_glass(policy, json.dumps({f"{policy.namespace}/limits": "Shadow"}))

    def shown() -> bool:
        enforcing = policy.condition("rlpol", "limits", "Enforcing")
        return (enforcing["status"], enforcing["reason"]) == ("False", "BreakGlass")

    eventually(shown, LIVE_S, what="Enforcing says BreakGlass")
    exposed = fetch(policy.environment.operator.metrics_url).body.decode()
    entries = [line.rsplit(" ", 1)[1] for line in exposed.splitlines() if line.startswith("weir_operator_break_glass{")]
    assert entries == ["1.0"] * len(policy.environment.limiters)
    mend(policy)
    eventually(lambda: not shown(), LIVE_S, what="and no longer")


def test_what_cannot_be_read_keeps_what_was(policy: Team) -> None:
    break_glass(policy, f'"{policy.namespace}/limits/burst": Disabled')
    eventually(lambda: refuses(policy, "burst") == {False}, LIVE_S, what="burst is off everywhere")
    break_glass(policy, "{ this is no map")

    def reported() -> bool:
        return all(limiter.status()["breakGlass"]["error"] for limiter in policy.environment.limiters)

    eventually(reported, LIVE_S, what="every limiter says that it cannot read it")
    assert refuses(policy, "burst") == {False}
