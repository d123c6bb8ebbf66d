# SPDX-License-Identifier: Apache-2.0
"""The two fields of status that are people's: who may write them, in whose name, and who may not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.cluster import Cluster, KubectlError
from lab.switching import apply_switches, patch_status, switches_of
from lab.team import Team
from lab.waiting import eventually

pytestmark = pytest.mark.requirement("R42")

RULES = [{"name": name, "key": [], "limit": {"requests": 1, "period": "1s"}} for name in ("burst", "monthly")]
OPERATOR = "system:serviceaccount:weir-system:weir-operator"
LIVE = {"mode": "Disabled", "reason": "INC-42"}
PAST = {"mode": "Shadow", "expiresAt": "2020-01-01T00:00:00Z"}


@pytest.fixture
def policy(team: Team) -> Team:
    """The team with a policy that nobody has switched off, and no operator that would tidy up while we look."""
    team.environment.operator.part.kill()
    team.apply(team.policy(rules=RULES))
    return team


@pytest.fixture
def unsigned(cluster: Cluster) -> Iterator[None]:
    """The API server as one without MutatingAdmissionPolicy: it writes nobody's name."""
    binding = ("mutatingadmissionpolicybinding", "weir-authors")
    if not cluster.serves("admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings"):
        yield  # as this server is
        return
    found = json.loads(cluster.kubectl("get", *binding, "-o", "json"))
    kept = {member: found["metadata"][member] for member in ("name", "labels")}
    cluster.kubectl("delete", *binding)
    yield
    cluster.kubectl("create", "-f", "-", input=json.dumps(found | {"metadata": kept}))


def test_an_entry_bears_its_authors_name_whatever_he_writes(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"burst": LIVE | {"by": "root"}}}, by="alice")
    patch_status(policy, {"killSwitches": {"monthly": LIVE}, "approvals": {"burst": {"generation": 1}}}, by="bob")
    assert switches_of(policy) == {"burst": LIVE | {"by": "alice"}, "monthly": LIVE | {"by": "bob"}}
    assert policy.get("rlpol", "limits")["status"]["approvals"] == {"burst": {"generation": 1, "by": "bob"}}


def test_two_people_who_apply_for_two_rules_never_undo_each_other(policy: Team) -> None:
    apply_switches(policy, {"burst": LIVE}, by="alice", manager="weir-kill-burst")
    apply_switches(policy, {"monthly": PAST}, by="bob", manager="weir-kill-monthly")
    apply_switches(policy, {}, by="alice", manager="weir-kill-burst")
    assert switches_of(policy) == {"monthly": PAST | {"by": "bob"}}


def test_who_takes_a_rule_over_must_say_so_and_then_replaces_the_whole_entry(policy: Team) -> None:
    apply_switches(policy, {"burst": PAST}, by="alice", manager="alice")
    with pytest.raises(KubectlError, match="conflict"):
        apply_switches(policy, {"burst": LIVE}, by="bob", manager="bob")
    assert switches_of(policy) == {"burst": PAST | {"by": "alice"}}


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        ({"killSwitches": {"burst": {"mode": "Enforce"}}}, "Unsupported value"),
        ({"killSwitches": {"burst": {"reason": "x"}}}, "mode: Required value"),
        ({"killSwitches": {"burst": {"mode": "Shadow", "expiresAt": "soon"}}}, "expiresAt"),
        ({"approvals": {"burst": {"generation": 2}}}, "this object is at 1"),
        ({"killSwitches": {"burst": LIVE}, "limiters": "9/9"}, r"refused: status\.limiters$"),
        ({"conditions": None}, r"refused: status\.conditions$"),
    ],
)
def test_people_write_nothing_else_and_nothing_meaningless(policy: Team, status: Any, refusal: str) -> None:
    with pytest.raises(KubectlError, match=refusal):
        patch_status(policy, status, by="alice")
    assert switches_of(policy) == {}


@pytest.mark.parametrize(
    "status",
    [
        {"killSwitches": {"burst": LIVE, "extra": LIVE}},
        {"killSwitches": {"burst": {"mode": "Shadow"}}},
        {"killSwitches": {"burst": None}},
        {"killSwitches": None},
        {"approvals": None},
        {"approvals": {"monthly": {"generation": 1}}},
        None,
    ],
)
def test_the_operator_neither_adds_nor_changes_nor_ends_what_people_wrote(policy: Team, status: Any) -> None:
    patch_status(policy, {"killSwitches": {"burst": LIVE}, "approvals": {"burst": {"generation": 1}}}, by="alice")
    with pytest.raises(KubectlError, match="belong to people"):
        patch_status(policy, status, by=OPERATOR)
    assert switches_of(policy) == {"burst": LIVE | {"by": "alice"}}


def test_the_operator_may_remove_what_ends_by_itself_and_write_its_own_fields(policy: Team) -> None:
    patch_status(policy, {"killSwitches": {"burst": LIVE, "monthly": PAST}}, by="alice")
    patch_status(policy, {"killSwitches": {"monthly": None}, "limiters": "1/1"}, by=OPERATOR)
    assert switches_of(policy) == {"burst": LIVE | {"by": "alice"}}


@pytest.mark.usefixtures("unsigned")
def test_where_the_api_server_signs_nothing_people_write_their_own_name(policy: Team) -> None:
    def refused(entry: Any) -> bool:
        try:
            patch_status(policy, {"killSwitches": {"burst": entry}}, by="alice")
        except KubectlError as refusal:
            return "must be your own user name: alice" in str(refusal)
        patch_status(policy, {"killSwitches": {"burst": None}}, by="alice")  # else the next try changes nothing
        return False

    eventually(lambda: refused(LIVE), 30, what="the API server has stopped to sign")
    assert refused(LIVE | {"by": "root"})
    patch_status(policy, {"killSwitches": {"burst": LIVE | {"by": "alice"}}}, by="alice")
    assert switches_of(policy) == {"burst": LIVE | {"by": "alice"}}
