# SPDX-License-Identifier: Apache-2.0
"""The policies that benchmarks measure with, as users write them, and the operator's way from them to a ruleset."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.render.ruleset_config import Live, RulesetTooLarge, render_rules

HOST = "api.example.com"
GATEWAY = Gateway("edge", "weir-system", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
_NOW_MS = 1_764_547_200_000  # any time: the revision does not matter here


def generous() -> dict[str, Any]:
    """One rule per API key that never refuses: what is measured is the whole way of an allowed request."""
    rule = {"name": "burst", "key": [{"header": "x-api-key"}]}
    limit = {"requests": 1_000_000, "period": "1s", "burst": 1_000_000_000}
    return _policy("orders-api", {"match": {"hosts": [HOST]}, "rules": [{**rule, "limit": limit}]})


def varied(count: int) -> list[dict[str, Any]]:
    """Policies of the sizes that teams write: two rules, two routes, a plan, a cost, an exemption."""
    return [_policy(f"policy-{number:04}", _varied_spec(number)) for number in range(count)]


def overrides(count: int, *, of: int) -> list[dict[str, Any]]:
    """Overrides of the first `of` varied policies, in turn: one client each, known by the digest of its key."""
    return [_override(number, f"policy-{number % of:04}") for number in range(count)]


def compile_and_render(
    objects: Sequence[dict[str, Any]], exceptions: Sequence[dict[str, Any]] = ()
) -> dict[str, bytes]:
    """From the API server's JSON to the ConfigMap's entries. Raises ValueError when an object is not accepted."""
    parsed = [parse_policy(item) for item in objects], [parse_override(item) for item in exceptions]
    compiled = compile_ruleset(*parsed, GATEWAY, None)
    outcomes = {**compiled.policies, **compiled.overrides}
    problems = {name: outcome.problems for name, outcome in outcomes.items() if not outcome.accepted}
    if problems:
        raise ValueError(f"{len(problems)} are not accepted, the first: {next(iter(problems.items()))}")
    manifest = render_rules(compiled.ruleset, GATEWAY, Live(), _NOW_MS)
    if isinstance(manifest, RulesetTooLarge):
        raise ValueError(str(manifest))  # noqa: TRY004 - the type is its way of saying what is wrong with the value
    plain = {name: text.encode() for name, text in (manifest.get("data") or {}).items()}
    return plain | {name: base64.b64decode(text) for name, text in (manifest.get("binaryData") or {}).items()}


def publish(entries: dict[str, bytes], folder: Path) -> None:
    """Write a ConfigMap's entries as a limiter finds them where the ConfigMap is mounted."""
    folder.mkdir(parents=True)
    for name, content in entries.items():
        (folder / name).write_bytes(content)


def _policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return _object("RateLimitPolicy", name, {"gateway": GATEWAY.name, "mode": "Enforce", **spec})


def _override(number: int, policy: str) -> dict[str, Any]:
    subject = {"x-api-key": {"sha256": hashlib.sha256(f"client-{number}".encode()).hexdigest()}}
    spec = {
        "policyRef": {"name": policy}, "rules": ["burst"], "subjects": [subject], "action": "Set",
        "limit": {"requests": 500}, "permanent": True,
    }  # fmt: skip
    return _object("RateLimitOverride", f"override-{number:05}", spec)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "name": name, "namespace": "team-orders", "uid": name, "generation": 1,
        "creationTimestamp": "2025-12-01T00:00:00Z",
    }  # fmt: skip
    return {"apiVersion": "weir.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def _varied_spec(number: int) -> dict[str, Any]:
    per_key = {
        "name": "burst", "key": [{"header": "x-api-key"}],
        "limit": {"requests": 100 + number, "period": "1s", "burst": 200 + number},
        "plans": {
            "from": {"header": "x-plan"},
            "limits": {"enterprise": {"requests": 1000, "period": "1s", "burst": 2000}},
        },
        "cost": [{"match": {"path": f"/services/{number}/exports" if number % 2 else "/v1/exports"}, "cost": 10}],
    }  # fmt: skip
    per_address = {
        "name": "address", "key": [{"clientIP": {}}], "limit": {"requests": 1000, "period": "1m"},
        "onStoreFailure": {"mode": "Closed"},
    }  # fmt: skip
    own_host = {
        "hosts": [f"service-{number}.example.com"],
        "routes": [{"path": "/v1/*", "methods": ["GET", "POST"]}, {"path": "/v2/orgs/{org}/*"}],
    }
    own_path = {"hosts": [HOST], "routes": [{"path": f"/services/{number}/*"}, {"path": f"/orgs/{{org}}/{number}/*"}]}
    return {
        "match": own_path if number % 2 else own_host,
        "exempt": [{"clientIP": ["10.0.0.0/8"]}],
        "rules": [per_key, per_address],
    }
