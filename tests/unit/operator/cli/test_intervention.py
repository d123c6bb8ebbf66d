# SPDX-License-Identifier: Apache-2.0
"""What the commands would write, and what they refuse before they ask; tests/e2e/test_kill_switches.py runs them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from weir_operator.api.intervening import interventions_digest
from weir_operator.cli import kill, promote, unkill
from weir_operator.cli.errand import check_kept, progress, refusal_of
from weir_operator.cli.intervention import Change, Context, Refused
from weir_operator.cli.main import parser

pytestmark = pytest.mark.requirement("R42")

ROOT = Path(__file__).resolve().parents[4]
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
OFF = {"mode": "Shadow", "reason": "INC-41", "by": "bob", "expiresAt": "2026-12-01T13:00:00Z"}


def context(**switches: Any) -> Context:
    policy = {
        "metadata": {"namespace": "team-orders", "name": "orders-api", "generation": 3},
        "spec": {"rules": [{"name": "burst"}, {"name": "monthly"}]},
        "status": {"killSwitches": switches} if switches else {},
    }
    return Context(policy, "alice", NOW)


def planned(module: Any, arguments: Sequence[str], found: Context) -> Change:
    command = module.__name__.rsplit(".", 1)[-1]
    options = parser().parse_args([command, *arguments])
    change: Change = module.plan(options, found)
    return change


def test_kill_writes_one_entry_with_who_why_and_until_when() -> None:
    change = planned(kill, ["orders-api", "burst", "--for", "1h30m", "--reason", " INC-42 "], context())
    entry = {"mode": "Disabled", "reason": "INC-42", "by": "alice", "expiresAt": "2026-12-01T13:30:00Z"}
    assert change.fields == {"killSwitches": {"burst": entry}}
    assert change.question == "Switch off rule burst of team-orders/orders-api?"


def test_kill_without_an_end_takes_an_earlier_end_away() -> None:
    """A merge patch would leave it, and the switch would end in the middle of the night."""
    arguments = ["orders-api", "burst", "--for", "forever", "--reason", "INC-42", "--mode", "Shadow"]
    change = planned(kill, arguments, context(burst=OFF))
    assert change.fields["killSwitches"]["burst"]["expiresAt"] is None
    assert change.fields["killSwitches"]["burst"]["mode"] == "Shadow"
    assert ("replaces", "Shadow by bob until 2026-12-01T13:00:00Z: INC-41") in change.details


def test_kill_without_a_rule_switches_off_all_and_names_them() -> None:
    change = planned(kill, ["orders-api", "--for", "2h", "--reason", "INC-42"], context())
    assert list(change.fields["killSwitches"]) == ["*"]
    assert "all rules (burst, monthly)" in change.question


@pytest.mark.parametrize("module", [kill, promote])
def test_an_unknown_rule_is_refused_with_those_that_exist(module: Any) -> None:
    time = ["--for", "2h"] if module is kill else []
    with pytest.raises(Refused, match=r'has no rule "brust"; did you mean burst\? known: burst, monthly'):
        planned(module, ["orders-api", "brust", *time, "--reason", "x"], context())


@pytest.mark.parametrize(
    "arguments",
    [
        ["orders-api", "--reason", "x"],
        ["orders-api", "--for", "2h"],
        ["orders-api", "--for", "2 hours", "--reason", "x"],
        ["orders-api", "--for", "500ms", "--reason", "x"],
        ["orders-api", "--for", "2h", "--reason", "  "],
        ["orders-api", "--for", "2h", "--reason", "x" * 1025],
        ["orders-api", "--for", "2h", "--reason", "x", "--mode", "Enforce"],
    ],
)
def test_a_kill_without_time_and_reason_is_a_mistake_of_the_command_line(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["kill", *arguments])
    assert ended.value.code == 2


def test_unkill_ends_one_switch_or_all() -> None:
    found = context(burst=OFF, **{"*": OFF})
    one = planned(unkill, ["orders-api", "burst"], found)
    assert one.fields == {"killSwitches": {"burst": None}}
    assert one.details[-1][0] == "stays"
    assert planned(unkill, ["orders-api"], found).fields == {"killSwitches": {"*": None, "burst": None}}


def test_unkill_says_what_is_set_when_the_named_rule_is_not() -> None:
    with pytest.raises(Refused, match="no kill switch is set on team-orders/orders-api"):
        planned(unkill, ["orders-api"], context())
    with pytest.raises(Refused, match=r'no kill switch is set on "monthly" .*; there is one on burst'):
        planned(unkill, ["orders-api", "monthly"], context(burst=OFF))


def test_promote_approves_the_generation_that_was_seen() -> None:
    entry = {"generation": 3, "by": "alice", "reason": "looks fine", "at": "2026-12-01T12:00:00Z"}
    change = planned(promote, ["orders-api", "--reason", "looks fine"], context())
    assert change.fields == {"approvals": {"burst": entry, "monthly": entry}}
    assert list(planned(promote, ["orders-api", "burst", "--reason", "x"], context()).fields["approvals"]) == ["burst"]


def test_an_api_server_that_drops_the_field_is_found_out() -> None:
    """D56: an older CRD prunes what it does not know, and answers 200."""
    change = Change("", (), {"killSwitches": {"burst": OFF}})
    check_kept({"status": {"killSwitches": {"burst": OFF}}}, change)
    with pytest.raises(Refused, match="CustomResourceDefinition is older than this command"):
        check_kept({"status": {}}, change)
    check_kept({"status": {}}, Change("", (), {"killSwitches": {"burst": None}}))


def test_the_wait_ends_with_a_status_that_judged_this_very_content() -> None:
    """D54: a Programmed of before the switch proves nothing."""
    programmed = {"conditions": [{"type": "Programmed", "status": "True", "message": "2 of 2 limiters"}]}
    status = {"killSwitches": {"burst": OFF}} | programmed
    assert progress({"status": status}) == (False, True, "2 of 2 limiters")
    digest = interventions_digest(status)
    assert progress({"status": status | {"observedInterventions": digest}}) == (True, True, "2 of 2 limiters")
    assert progress({"status": programmed | {"observedInterventions": digest}})[0] is False
    assert progress({"status": programmed})[:2] == (True, True)


def test_a_policy_that_no_gateway_takes_is_told_from_an_operator_that_is_not_there() -> None:
    refused = {"type": "Accepted", "status": "False", "message": 'there is no gateway "egde"'}
    assert refusal_of({"status": {"conditions": [refused]}}) == 'there is no gateway "egde"'
    assert refusal_of({"status": {"conditions": [refused | {"status": "True"}]}}) == ""
    assert refusal_of({}) == ""


@pytest.mark.parametrize("command", ["kill", "unkill", "promote"])
def test_the_reference_has_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([command, "--help"])
    options = set(re.findall(r"--[a-z]+", capsys.readouterr().out)) - {"--help"}
    page = (ROOT / "docs" / "reference" / "weir-cli.md").read_text()
    section = page.split(f"## `weir {command}`")[1].split("\n## ")[0]
    assert set(re.findall(r"`(--[a-z]+)`", section)) == options
