# SPDX-License-Identifier: Apache-2.0
"""What people on call do by hand, as somebody with every right of RBAC: patch and apply fields of a policy's status."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.team import Team


def patch_status(team: Team, status: Any, *, by: str, name: str = "limits") -> str:
    """Merge-patch the status of a policy."""
    document = json.dumps({"status": status})
    return team.kubectl("patch", "rlpol", name, "--subresource=status", "--type=merge", "-p", document, *_as(by))


def apply_switches(team: Team, switches: Any, *, by: str, manager: str) -> str:
    """Server-side apply the kill switches of the policy `limits`."""
    manifest = {
        "apiVersion": "weir.dev/v1alpha1",
        "kind": "RateLimitPolicy",
        "metadata": {"name": "limits"},
        "status": {"killSwitches": switches},
    }
    arguments = ("--server-side", "--subresource=status", f"--field-manager={manager}", "-f", "-")
    return team.kubectl("apply", *arguments, *_as(by), input=json.dumps(manifest))


def switches_of(team: Team, name: str = "limits") -> Any:
    """The kill switches that stand in a policy's status."""
    return team.get("rlpol", name)["status"].get("killSwitches", {})


def in_s(seconds: float) -> str:
    """A time from now, as `expiresAt` takes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251


def _as(name: str) -> tuple[str, ...]:
    return f"--as={name}", "--as-group=system:masters"
