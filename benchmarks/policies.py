# SPDX-License-Identifier: Apache-2.0
"""The policies that benchmarks measure with, as users write them, and the operator's way from them to a ruleset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir_operator.api.parsing import parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.render.ruleset_config import PLAIN_KEY, Live, RulesetTooLarge, render_rules

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


def compile_and_render(objects: Sequence[dict[str, Any]]) -> str:
    """From the API server's JSON to the ruleset document. Raises ValueError when a policy is not accepted."""
    compiled = compile_ruleset([parse_policy(item) for item in objects], [], GATEWAY, None)
    problems = {name: outcome.problems for name, outcome in compiled.policies.items() if not outcome.accepted}
    if problems:
        raise ValueError(f"not accepted: {problems}")
    manifest = render_rules(compiled.ruleset, GATEWAY, Live(), _NOW_MS)
    if isinstance(manifest, RulesetTooLarge):
        raise ValueError(str(manifest))  # noqa: TRY004 - the type is its way of saying what is wrong with the value
    return str(manifest["data"][PLAIN_KEY])


def _policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "name": name, "namespace": "team-orders", "uid": name, "generation": 1,
        "creationTimestamp": "2025-12-01T00:00:00Z",
    }  # fmt: skip
    whole = {"gateway": GATEWAY.name, "mode": "Enforce", **spec}
    return {"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy", "metadata": metadata, "spec": whole}


def _varied_spec(number: int) -> dict[str, Any]:
    per_key = {
        "name": "burst", "key": [{"header": "x-api-key"}],
        "limit": {"requests": 100 + number, "period": "1s", "burst": 200 + number},
        "plans": {
            "from": {"header": "x-plan"},
            "limits": {"enterprise": {"requests": 1000, "period": "1s", "burst": 2000}},
        },
        "cost": [{"match": {"path": "/v1/exports", "methods": ["POST"]}, "cost": 10}],
    }  # fmt: skip
    per_address = {
        "name": "address", "key": [{"clientIP": {}}], "limit": {"requests": 1000, "period": "1m"},
        "onStoreFailure": {"mode": "Closed"},
    }  # fmt: skip
    return {
        "match": {
            "hosts": [f"service-{number}.example.com"],
            "routes": [{"path": "/v1/*", "methods": ["GET", "POST"]}, {"path": "/v2/orgs/{org}/*"}],
        },
        "exempt": [{"clientIP": ["10.0.0.0/8"]}],
        "rules": [per_key, per_address],
    }
