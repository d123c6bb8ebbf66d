# SPDX-License-Identifier: Apache-2.0
"""What people and GitOps controllers see of an object: nothing in it is ever changed but its status."""

import copy
import json
import os
import subprocess
from pathlib import Path

import pytest

from lab import gitops
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


class Repository:
    """A folder and the controller that keeps the cluster like it: Flux's engine, with its pruning."""

    def __init__(self, team: Team, folder: Path) -> None:
        self._team = team
        self._folder = folder / "manifests"
        self._folder.mkdir()
        self._inventory = folder / "inventory.json"

    def write(self, **manifests: str | None) -> None:
        """Put files into the folder, or take them out with None."""
        for name, manifest in manifests.items():
            path = self._folder / f"{name}.yaml"
            if manifest is None:
                path.unlink()
            else:
                path.write_text(manifest)

    def sync(self) -> str:
        """Apply, prune and wait until everything is ready; return what changed. Raises AssertionError if it fails."""
        done = self._run("sync", "-inventory", str(self._inventory), "-timeout", "60s")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def drift(self) -> str:
        """What a sync would change."""
        done = self._run("diff")
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout

    def _run(self, command: str, *flags: str) -> subprocess.CompletedProcess[str]:
        argv = [str(gitops.engine()), command, "-dir", str(self._folder), *flags]
        environment = {**os.environ, "KUBECONFIG": str(self._team.environment.cluster.kubeconfig)}
        return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def repository(team: Team, tmp_path: Path) -> Repository:
    return Repository(team, tmp_path)


@pytest.mark.requirement("R41", "R47")
def test_a_gitops_controller_sees_no_drift_after_any_write_of_the_operator(team: Team, repository: Repository) -> None:
    """D58: after first statuses, an edit, an override, a restart, and with defaults that the CRD fills in."""
    repository.write(policy=team.policy(rules=[RULE]))
    repository.sync()
    assert repository.drift() == ""
    repository.write(
        policy=team.policy(rules=[{**RULE, "limit": {**RULE["limit"], "requests": 50}}]),
        override=team.override(subjects=[{"x-api-key": "k"}], action="Exempt", permanent=True),
        terse=team.policy("terse", rules=[{"name": "a", "limit": {"requests": 1, "period": "60s"}}]),
    )
    assert "terse" in repository.drift()
    repository.sync()
    assert repository.drift() == ""
    team.environment.operator.part.kill()
    team.environment.revive()
    team.wait_ready()
    assert repository.drift() == ""
    assert "unchanged" in repository.sync()


@pytest.mark.requirement("R41", "R42")
def test_a_kill_switch_survives_a_sync_and_is_no_drift(
    team: Team, repository: Repository, api_key: dict[str, str]
) -> None:
    strict = {**RULE, "limit": {"requests": 1, "period": "1h"}}
    repository.write(policy=team.policy(rules=[strict]))
    repository.sync()
    assert team.statuses(2, headers=api_key) == [200, 429]
    switch = {"status": {"killSwitches": {"burst": {"mode": "Disabled", "reason": "INC-42"}}}}
    team.kubectl("patch", "rlpol", "limits", "--subresource=status", "--type=merge", "-p", json.dumps(switch))
    eventually(lambda: team.statuses(2, headers=api_key) == [200, 200], 20, what="the switch works")
    assert repository.drift() == ""
    repository.write(policy=team.policy(rules=[strict], exempt=[{"clientIP": ["192.0.2.1/32"]}]))
    repository.sync()
    assert team.get("rlpol", "limits")["status"]["killSwitches"]["burst"]["mode"] == "Disabled"
    assert team.statuses(2, headers=api_key) == [200, 200]
    assert repository.drift() == ""


@pytest.mark.requirement("R41")
def test_pruning_takes_the_policy_and_its_limits_away(
    team: Team, repository: Repository, api_key: dict[str, str]
) -> None:
    """D53."""
    strict = {**RULE, "limit": {"requests": 1, "period": "1h"}}
    repository.write(policy=team.policy(rules=[strict]), other=team.policy("other", mode="Shadow", rules=[RULE]))
    repository.sync()
    assert team.statuses(2, headers=api_key) == [200, 429]
    repository.write(policy=None)
    assert "deleted" in repository.sync()
    eventually(lambda: {rule["policy"] for rule in team.rules()} == {f"{team.namespace}/other"}, 20)
    assert team.statuses(3, headers=api_key) == [200] * 3


@pytest.mark.requirement("R41")
def test_a_renamed_policy_leaves_nothing_of_its_old_name(team: Team, repository: Repository) -> None:
    """The override goes on to the new name in the same commit; whichever object comes first, both end ready."""
    override = team.override(subjects=[{"x-api-key": "k"}], action="Exempt", permanent=True)
    repository.write(policy=team.policy(rules=[RULE]), override=override)
    repository.sync()
    moved = override.replace('"policyRef": {"name": "limits"}', '"policyRef": {"name": "renamed"}')
    assert moved != override
    repository.write(policy=team.policy("renamed", rules=[RULE]), override=moved)
    repository.sync()
    eventually(lambda: {rule["policy"] for rule in team.rules()} == {f"{team.namespace}/renamed"}, 20)
    assert repository.drift() == ""


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("alive", [True, False], ids=["with the operator", "without the operator"])
def test_a_namespace_with_policies_is_deleted_at_once_and_leaves_no_limit(team: Team, alive: bool) -> None:
    """D51, D53: no finalizer of ours holds it, also with the operator gone."""
    kubectl, name = team.environment.cluster.kubectl, "gitops-short-lived"
    kubectl("create", "namespace", name)
    policy = json.loads(team.policy(rules=[RULE]))
    override = json.loads(team.override(subjects=[{"x-api-key": "k"}], action="Exempt", permanent=True))
    for manifest in (policy, override):
        manifest["metadata"]["namespace"] = name
        kubectl("apply", "-f", "-", input=json.dumps(manifest))
    if not alive:
        team.environment.operator.part.kill()
    kubectl("delete", "namespace", name, "--timeout=50s")
    team.environment.revive()

    def known() -> list[str]:
        documents = [limiter.status() for limiter in team.environment.limiters]
        return [
            rule["policy"] for document in documents for rule in document["rules"] if rule["policy"].startswith(name)
        ]

    eventually(lambda: not known(), 30)
