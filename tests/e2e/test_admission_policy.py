# SPDX-License-Identifier: Apache-2.0
"""Only the operator writes status: a condition that anybody could write would prove nothing."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lab.cluster import KubectlError
from lab.waiting import eventually

POLICY = """
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: owned}
spec:
  gateway: edge
  match: {hosts: [HOST]}
  rules:
  - {name: all, key: [], limit: {requests: 1, period: 1s}}
"""
OVERRIDE = """
apiVersion: weir.dev/v1alpha1
kind: RateLimitOverride
metadata: {name: owned}
spec:
  policyRef: {name: owned}
  subjects: [{x-api-key: k1}]
  action: Exempt
  permanent: true
"""
READY = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1}
READY["lastTransitionTime"] = "2026-01-01T00:00:00Z"
FORGED = json.dumps({"status": {"conditions": [READY]}})
PATCH_STATUS = ("--subresource=status", "--type=merge", "-p", FORGED)


@pytest.mark.parametrize(("kind", "manifest"), [("ratelimitpolicy", POLICY), ("ratelimitoverride", OVERRIDE)])
def test_a_cluster_admin_cannot_write_status_and_is_told_which_fields(team: Any, kind: str, manifest: str) -> None:
    team.apply(manifest)
    with pytest.raises(KubectlError, match="only the Weir operator writes status") as refusal:
        team.kubectl("patch", kind, "owned", *PATCH_STATUS)
    assert "status.conditions" in str(refusal.value)


def test_a_namesake_of_the_operator_with_every_right_cannot_write_status(team: Any) -> None:
    team.apply(POLICY)
    impostor = (f"--as=system:serviceaccount:{team.namespace}:weir-operator", "--as-group=system:masters")
    with pytest.raises(KubectlError, match="only the Weir operator writes status"):
        team.kubectl("patch", "ratelimitpolicy", "owned", *PATCH_STATUS, *impostor)


def test_a_status_sent_with_a_new_object_is_dropped(team: Any) -> None:
    team.apply(POLICY + "status: {limiters: 9/9, conditions: []}\n")
    assert team.get("ratelimitpolicy", "owned")["status"].get("limiters") != "9/9"


def test_the_operator_writes_status_and_people_go_on_writing_spec(team: Any) -> None:
    team.apply(POLICY)
    team.apply(POLICY + "  mode: Disabled\n")
    eventually(_is_reported(team, mode="Disabled"), within_s=20, what="the operator has reported the edited policy")


def _is_reported(team: Any, *, mode: str) -> Callable[[], bool]:
    def check() -> bool:
        seen = team.get("ratelimitpolicy", "owned")
        return bool(
            seen["status"].get("observedGeneration") == seen["metadata"]["generation"] and seen["spec"]["mode"] == mode
        )

    return check
