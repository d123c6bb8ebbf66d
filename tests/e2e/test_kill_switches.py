# SPDX-License-Identifier: Apache-2.0
"""Kill switches on running traffic: who sets them, what ends them, and what does not."""

import json
import uuid
from typing import Any

import pytest

from lab.client import fetch
from lab.switching import apply_switches, in_s, patch_status, switches_of
from lab.team import LIVE_S, Team
from lab.waiting import eventually

pytestmark = pytest.mark.requirement("R42")

RULES = [
    {"name": name, "key": [{"header": f"x-{name}"}], "limit": {"requests": 1, "period": "1h"}}
    for name in ("burst", "monthly", "third")
]
THIRD = RULES.pop()
OFF = {"mode": "Disabled", "reason": "INC-42"}


@pytest.fixture
def policy(team: Team) -> Team:
    """The team with an enforced policy of two rules, which see requests by a header of their own each."""
    team.apply_ready(team.policy(rules=RULES))
    assert refuses(team, "burst")
    assert refuses(team, "monthly")
    return team


def refuses(team: Team, rule: str) -> bool:
    """Whether every gateway refuses the second request of a new client."""
    answers = []
    for gateway in range(len(team.environment.urls)):
        headers = {f"x-{rule}": str(uuid.uuid4())}
        answers.append([team.send(headers=headers, gateway=gateway).status for _ in range(2)])
    assert all(first == 200 for first, _ in answers), answers
    return {second for _, second in answers} == {429}


def passes(team: Team, rule: str) -> bool:
    """Whether no gateway refuses that."""
    statuses = []
    for gateway in range(len(team.environment.urls)):
        headers = {f"x-{rule}": str(uuid.uuid4())}
        statuses += [team.send(headers=headers, gateway=gateway).status for _ in range(2)]
    return set(statuses) == {200}


def off(team: Team, rule: str) -> None:
    eventually(lambda: passes(team, rule), LIVE_S, what=f"{rule} is off everywhere")


def on(team: Team, rule: str) -> None:
    eventually(lambda: refuses(team, rule), LIVE_S, what=f"{rule} is on everywhere")


def test_two_people_switch_two_rules_by_merge_patch_and_neither_undoes_the_other(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"burst": OFF}}, by="alice")
    off(policy, "burst")
    assert refuses(policy, "monthly")
    patch_status(policy, {"killSwitches": {"monthly": OFF}}, by="bob")
    off(policy, "monthly")
    assert passes(policy, "burst")
    patch_status(policy, {"killSwitches": {"burst": None}}, by="alice")
    on(policy, "burst")
    assert passes(policy, "monthly")

    def shown() -> bool:
        enforcing = policy.condition("rlpol", "limits", "Enforcing")
        assert (enforcing["status"], enforcing["reason"]) == ("False", "KillSwitch")
        return "bob" in enforcing["message"]

    eventually(shown, LIVE_S, what="Enforcing says who")


def test_two_people_switch_two_rules_by_server_side_apply(policy: Team) -> None:
    apply_switches(policy, {"burst": OFF}, by="alice", manager="weir-kill-burst")
    apply_switches(policy, {"monthly": OFF}, by="bob", manager="weir-kill-monthly")
    off(policy, "burst")
    off(policy, "monthly")
    apply_switches(policy, {}, by="alice", manager="weir-kill-burst")
    on(policy, "burst")
    assert passes(policy, "monthly")


def test_a_switch_on_all_rules_holds_for_each_of_them(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"*": OFF}}, by="alice")
    off(policy, "burst")
    off(policy, "monthly")


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("side", [[], ["--server-side", "--force-conflicts"]], ids=["client-side", "server-side"])
def test_a_gitops_sync_neither_sees_nor_undoes_a_switch(policy: Team, side: list[str]) -> None:
    patch_status(policy, {"killSwitches": {"burst": OFF}}, by="alice")
    off(policy, "burst")
    manifest = policy.policy(rules=RULES)
    policy.kubectl("apply", *side, "-f", "-", input=manifest)
    assert policy.kubectl("diff", *side, "-f", "-", input=manifest) == ""
    edited = policy.policy(rules=[*RULES, THIRD])
    policy.kubectl("apply", *side, "-f", "-", input=edited)
    policy.wait_ready()
    assert passes(policy, "burst")
    assert switches_of(policy) == {"burst": OFF | {"by": "alice"}}


@pytest.mark.requirement("R45")
def test_neither_a_restart_of_the_operator_nor_its_writes_undo_a_switch(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"burst": OFF}}, by="alice")
    off(policy, "burst")
    policy.environment.operator.part.kill()
    policy.environment.revive()
    policy.apply_ready(policy.policy(rules=[RULES[0], RULES[1] | {"code": "monthly_limit"}]))
    assert passes(policy, "burst")
    assert switches_of(policy) == {"burst": OFF | {"by": "alice"}}


@pytest.mark.requirement("R45")
def test_a_switch_ends_on_time_with_the_operator_dead(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"burst": OFF | {"expiresAt": in_s(12)}}}, by="alice")
    off(policy, "burst")
    policy.environment.operator.part.kill()
    eventually(lambda: refuses(policy, "burst"), 60, what="the limiters have ended it themselves")


def test_an_object_that_is_deleted_and_created_again_has_lost_its_switches(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"burst": OFF}}, by="alice")
    off(policy, "burst")
    policy.leave()
    policy.apply_ready(policy.policy(rules=RULES))
    on(policy, "burst")


def test_entries_that_name_no_rule_do_nothing_and_are_told(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"brust": OFF}}, by="alice")

    def told() -> bool:
        return '"brust"] is ignored' in policy.condition("rlpol", "limits", "Accepted")["message"]

    eventually(told, LIVE_S)
    assert refuses(policy, "burst")
    assert policy.condition("rlpol", "limits", "Ready")["status"] == "True"


def test_who_why_and_until_when_stand_in_an_event_the_log_and_a_metric(policy: Team) -> None:
    end = in_s(3600)
    patch_status(policy, {"killSwitches": {"burst": OFF | {"expiresAt": end}}}, by="alice")
    event = eventually(lambda: events(policy, "KillSwitchSet"), LIVE_S, what="the Event is there")[0]
    assert event["message"] == f"rule burst switched to Disabled until {end} by alice: INC-42"
    assert event["type"] == "Warning"
    assert "KillSwitchSet" in policy.kubectl("describe", "rlpol", "limits")
    exposed = fetch(policy.environment.operator.metrics_url).body.decode()
    (live,) = [line for line in exposed.splitlines() if line.startswith("weir_operator_kill_switch{")]
    assert 'by="alice"' in live
    assert 'reason="INC-42"' in live
    logged = [line for line in policy.environment.operator.part.log.read_text().splitlines() if "INC-42" in line]
    assert json.loads(logged[-1])["by"] == "alice"
    patch_status(policy, {"killSwitches": {"burst": None}}, by="bob")
    eventually(lambda: events(policy, "KillSwitchEnded"), LIVE_S, what="so is that of its end")


def events(team: Team, reason: str) -> Any:
    """The Events of one reason on the policy as it is now, not on a namesake before it."""
    uid = team.get("rlpol", "limits")["metadata"]["uid"]
    selector = f"involvedObject.uid={uid},reason={reason}"
    return json.loads(team.kubectl("get", "events", "--field-selector", selector, "-o", "json"))["items"]
