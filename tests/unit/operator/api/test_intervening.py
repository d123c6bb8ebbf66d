# SPDX-License-Identifier: Apache-2.0
import pytest

from weir_operator.api.crd import KINDS, manifest
from weir_operator.api.intervening import parse_interventions
from weir_operator.api.interventions import MAX_ENTRIES
from weir_operator.domain.interventions import NO_INTERVENTIONS, Approval, KillSwitch
from weir_operator.domain.limits import Mode

SWITCH = {"mode": "Disabled", "reason": "INC-42", "by": "alice", "expiresAt": "2026-01-01T02:00:00+01:00"}


@pytest.mark.parametrize("status", [None, {}, {"conditions": []}, {"killSwitches": {}}, {"killSwitches": None}])
def test_a_status_without_interventions_has_none(status: dict[str, object] | None) -> None:
    assert parse_interventions(status) is NO_INTERVENTIONS


@pytest.mark.requirement("R42")
def test_switches_and_approvals_are_read_with_who_why_and_until_when() -> None:
    approval = {"generation": 3, "by": "bob", "reason": "looks fine", "at": "1970-01-01T00:00:10Z"}
    found = parse_interventions(
        {"killSwitches": {"burst": SWITCH, "*": {"mode": "Shadow"}}, "approvals": {"a": approval}}
    )
    assert found.kill_switches == {
        "*": KillSwitch(Mode.SHADOW),
        "burst": KillSwitch(Mode.DISABLED, 1_767_229_200, "INC-42", "alice"),
    }
    assert found.approvals == {"a": Approval(3, "bob", "looks fine", 10)}
    assert found.unusable == {}


@pytest.mark.requirement("R42")
@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"mode": "Enforce"}, "mode: "),
        ({"reason": "no mode"}, "mode: "),
        ("Disabled", "input should be an object"),
        ({"mode": "Shadow", "expiresAt": "tomorrow"}, "expiresAt: "),
        ({"mode": "Shadow", "expiresAt": "2026-13-01T00:00:00Z"}, "expiresAt: is no date and time"),
        ({"mode": "Shadow", "until": "x"}, "until: "),
    ],
)
def test_an_entry_that_cannot_be_read_is_named_and_takes_no_other_with_it(entry: object, complaint: str) -> None:
    found = parse_interventions({"killSwitches": {"burst": entry, "monthly": SWITCH}})
    assert list(found.kill_switches) == ["monthly"]
    assert list(found.unusable) == ['status.killSwitches["burst"]']
    assert found.unusable['status.killSwitches["burst"]'].startswith(complaint)


@pytest.mark.parametrize("field", [[1], "text", {str(number): SWITCH for number in range(MAX_ENTRIES + 1)}])
def test_a_field_that_is_no_map_of_bounded_size_is_ignored_as_a_whole(field: object) -> None:
    found = parse_interventions({"killSwitches": field, "approvals": {"a": {"generation": 1}}})
    assert (found.kill_switches, list(found.unusable)) == ({}, ["status.killSwitches"])
    assert found.approvals == {"a": Approval(1)}


def test_both_maps_merge_by_rule_and_an_entry_has_one_owner() -> None:
    """Two people and two rules never undo each other; who takes a rule over replaces all that was said of it."""
    kind = next(kind for kind in KINDS if kind.name == "RateLimitPolicy")
    status = manifest(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for field in ("killSwitches", "approvals"):
        assert "x-kubernetes-map-type" not in status[field]
        assert status[field]["additionalProperties"]["x-kubernetes-map-type"] == "atomic"
