# SPDX-License-Identifier: Apache-2.0
"""What people and GitOps controllers see of an object: nothing in it is ever changed but its status."""

import copy
import json

import pytest

from lab.client import fetch
from lab.cluster import KubectlError
from lab.layout import ENVOY_CONFIGMAP, RULES_CONFIGMAP, SYSTEM_NAMESPACE
from lab.team import Team
from lab.waiting import eventually

RULE = {
    "name": "burst",
    "key": [{"header": "x-api-key"}],
    "limit": {"requests": 100, "period": "1m0s", "burst": 200},
}


def without_status(found: dict[str, object]) -> dict[str, object]:
    """An object as its author sees it; managedFields records who wrote what, so the operator's entry may be there."""
    kept = copy.deepcopy(found)
    kept.pop("status", None)
    metadata = kept["metadata"]
    assert isinstance(metadata, dict)
    for varying in ("managedFields", "resourceVersion"):
        metadata.pop(varying, None)
    return kept


@pytest.mark.requirement("R40", "R41")
@pytest.mark.parametrize("kind", ["rlpol", "rlovr"])
def test_the_operator_changes_nothing_of_an_object_but_its_status(team: Team, kind: str) -> None:
    """D58: also not the spelling of a duration."""
    manifests = {
        "rlpol": team.policy(rules=[RULE]),
        "rlovr": team.override(subjects=[{"x-api-key": "k"}], action="Exempt", permanent=True),
    }
    team.environment.operator.part.kill()
    team.apply(manifests["rlpol"], manifests["rlovr"])
    name = {"rlpol": "limits", "rlovr": "exception"}[kind]
    before = without_status(team.get(kind, name))
    team.environment.revive()
    team.wait_ready()
    found = team.get(kind, name)
    assert without_status(found) == before
    assert list(found["metadata"].get("annotations", {})) == ["kubectl.kubernetes.io/last-applied-configuration"]
    assert "finalizers" not in found["metadata"]
    written = [entry for entry in found["metadata"]["managedFields"] if entry["manager"] == "weir-operator"]
    assert {entry.get("subresource") for entry in written} == {"status"}


@pytest.mark.parametrize("side", [[], ["--server-side"]], ids=["client-side", "server-side"])
def test_kubectl_diff_is_empty_after_a_reconcile(team: Team, side: list[str]) -> None:
    """D58. `kubectl diff` ends with 1 when there is a difference, which is an error here."""
    manifest = team.policy(rules=[RULE])
    team.kubectl("apply", *side, "-f", "-", input=manifest)
    team.wait_ready()
    assert team.kubectl("diff", *side, "-f", "-", input=manifest) == ""


@pytest.mark.requirement("R40")
def test_kubectl_wait_never_returns_for_an_older_generation(team: Team) -> None:
    """D54: a bad edit of a Ready policy, and `kubectl wait` at once."""
    team.apply_ready(team.policy(rules=[RULE]))
    team.apply(team.policy(match={"hosts": ["api.example.com"]}, rules=[RULE]))

    def refused() -> bool:
        return bool(team.condition("rlpol", "limits", "Ready")["status"] == "False")

    eventually(refused, within_s=10)
    with pytest.raises(KubectlError, match="timed out"):
        team.kubectl("wait", "--for=condition=Ready", "rlpol/limits", "--timeout=1s")
    conditions = {entry["type"]: entry for entry in team.get("rlpol", "limits")["status"]["conditions"]}
    assert conditions["Stalled"]["status"] == "True"


def test_a_new_object_is_pending_and_not_ready_before_anybody_judged_it(team: Team) -> None:
    """D54."""
    team.environment.operator.part.kill()
    team.apply(team.policy(rules=[RULE]))
    (ready,) = [c for c in team.get("rlpol", "limits")["status"]["conditions"] if c["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "Pending")


def test_nothing_is_written_while_nothing_changes(team: Team) -> None:
    """D47, D49: also a restarted operator, and one that sees an annotation come, writes no ConfigMap and no status."""
    team.apply_ready(team.policy(rules=[RULE]), team.policy("noted", mode="Shadow", rules=[RULE]))
    before = versions(team, "limits")
    team.environment.operator.part.kill()
    team.environment.revive()
    eventually(lambda: counted(team, "weir_operator_reconciles_total") >= 1, within_s=10)
    passes = counted(team, "weir_operator_reconciles_total")
    noted = json.loads(team.kubectl("annotate", "rlpol", "noted", "note=1", "-o", "json"))["metadata"]
    eventually(lambda: counted(team, "weir_operator_reconciles_total") > passes, within_s=10)
    assert versions(team, "limits") == before
    assert team.get("rlpol", "noted")["metadata"]["resourceVersion"] == noted["resourceVersion"]
    assert counted(team, "weir_operator_config_map_writes_total") == 0
    assert counted(team, "weir_operator_status_writes_total") == 0


def counted(team: Team, metric: str) -> float:
    """The sum of a counter of the operator over its labels."""
    lines = fetch(team.environment.operator.metrics_url).body.decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{metric}{{", f"{metric} ")))


def versions(team: Team, policy: str) -> dict[str, str]:
    """The resource versions of a policy and of everything that is generated."""
    cluster = team.environment.cluster
    found = {name: cluster.get("configmap", name, SYSTEM_NAMESPACE) for name in (RULES_CONFIGMAP, ENVOY_CONFIGMAP)}
    found[policy] = team.get("rlpol", policy)
    return {name: document["metadata"]["resourceVersion"] for name, document in found.items()}
