# SPDX-License-Identifier: Apache-2.0
"""Only the operator writes status: a condition that anybody could write would prove nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.cluster import Cluster, KubectlError
from lab.waiting import eventually

NAMESPACE = "team-orders"
POLICY: dict[str, Any] = {
    "apiVersion": "weir.dev/v1alpha1",
    "kind": "RateLimitPolicy",
    "metadata": {"name": "status-ownership", "namespace": NAMESPACE},
    "spec": {
        "gateway": "edge",
        "match": {"hosts": ["api.example.com"], "routes": [{"path": "/status-ownership"}]},
        "rules": [{"name": "all", "key": [], "limit": {"requests": 1, "period": "1s"}}],
    },
}
OVERRIDE: dict[str, Any] = {
    "apiVersion": "weir.dev/v1alpha1",
    "kind": "RateLimitOverride",
    "metadata": {"name": "status-ownership", "namespace": NAMESPACE},
    "spec": {
        "policyRef": {"name": "status-ownership"},
        "rules": ["all"],
        "subjects": [{"clientIP": "192.0.2.1"}],
        "action": "Exempt",
        "permanent": True,
    },
}
FORGED = {"limiters": "9/9", "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture(scope="module")
def policy(cluster: Cluster) -> Iterator[str]:
    """A policy and an override of the same name; what it yields is that name."""
    cluster.apply(json.dumps(POLICY))
    cluster.apply(json.dumps(OVERRIDE))
    yield "status-ownership"
    for kind in ("ratelimitoverride", "ratelimitpolicy"):
        cluster.kubectl("delete", kind, "status-ownership", "-n", NAMESPACE, "--ignore-not-found", "--wait=false")


def patch_status(cluster: Cluster, kind: str, name: str, status: dict[str, Any], *who: str) -> str:
    where = ("-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    return cluster.kubectl("patch", kind, name, *where, *who)


@pytest.mark.parametrize("kind", ["ratelimitpolicy", "ratelimitoverride"])
def test_a_cluster_admin_cannot_write_status_and_is_told_which_fields(cluster: Cluster, policy: str, kind: str) -> None:
    with pytest.raises(KubectlError, match="only the Weir operator writes status") as refusal:
        patch_status(cluster, kind, policy, {"conditions": FORGED["conditions"]})
    assert "status.conditions" in str(refusal.value)


def test_another_service_account_with_every_right_cannot_write_status(cluster: Cluster, policy: str) -> None:
    impostor = ("--as=system:serviceaccount:team-orders:weir-operator", "--as-group=system:masters")
    with pytest.raises(KubectlError, match="only the Weir operator writes status"):
        patch_status(cluster, "ratelimitpolicy", policy, {"conditions": FORGED["conditions"]}, *impostor)


def test_a_status_sent_with_a_new_object_is_dropped(cluster: Cluster) -> None:
    name = "status-from-birth"
    born = {**POLICY, "metadata": {"name": name, "namespace": NAMESPACE}, "status": FORGED}
    try:
        answer = json.loads(cluster.kubectl("create", "-f", "-", "-o", "json", input=json.dumps(born)))
        (ready,) = [c for c in answer["status"]["conditions"] if c["type"] == "Ready"]
        assert (ready["status"], ready["reason"]) == ("Unknown", "Pending")
        assert "limiters" not in answer["status"]
    finally:
        cluster.kubectl("delete", "ratelimitpolicy", name, "-n", NAMESPACE, "--ignore-not-found", "--wait=false")


def test_the_operator_writes_status_and_people_go_on_writing_spec(cluster: Cluster, policy: str) -> None:
    changed = {**POLICY, "spec": {**POLICY["spec"], "mode": "Disabled"}}
    cluster.apply(json.dumps(changed))

    def observed() -> bool:
        seen = cluster.get("ratelimitpolicy", policy, NAMESPACE)
        return bool(seen["status"].get("observedGeneration") == seen["metadata"]["generation"])

    eventually(observed, within_s=20, what="the operator has reported the edited policy")
