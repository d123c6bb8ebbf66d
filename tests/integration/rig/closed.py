# SPDX-License-Identifier: Apache-2.0
"""Closed rules in front of a real Envoy: policies as people write them, what the operator makes of them, the mount."""

from __future__ import annotations

from typing import Any

from lab.client import Client
from lab.envoy_bench import Bench
from lab.waiting import eventually
from weir_operator.api.parsing import parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault, NamespaceBudget
from weir_operator.domain.ruleset import Ruleset

STATS = "extension_config_discovery.http_filter.weir.closed"
GATEWAY = Gateway(
    "edge",
    "weir-system",
    allowed_namespaces=frozenset({"*"}),
    hosts_default=HostsDefault.ANY,
    namespace_budget=NamespaceBudget(rules=1000, document_bytes=900_000, closed_bytes=900_000),  # one team has it all
)
LIMIT = {"requests": 5, "period": "1h"}
CLOSED = {"name": "attempts", "limit": LIMIT, "onStoreFailure": {"mode": "Closed"}}
OPEN = {"name": "volume", "limit": LIMIT}


def ruleset(*policies: dict[str, Any]) -> Ruleset:
    """What the operator makes of these policies, each a name with its spec."""
    compiled = compile_ruleset([parse_policy(policy) for policy in policies], [], GATEWAY, None)
    assert all(outcome.accepted for outcome in compiled.policies.values()), compiled.policies
    return compiled.ruleset


def policy(name: str, *rules: dict[str, Any], mode: str = "Enforce", **match: Any) -> dict[str, Any]:
    """A policy with these rules, by default one that is Closed, as the API server shows it."""
    metadata = {"name": name, "namespace": "team", "generation": 1, "uid": name, "resourceVersion": "1"}
    spec = {"gateway": "edge", "mode": mode, "match": match, "rules": list(rules) or [CLOSED]}
    stamp = {"creationTimestamp": "2026-11-30T00:00:00Z"}
    return {"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy", "metadata": metadata | stamp, "spec": spec}


def in_force(bench: Bench, client: Client, rules: Ruleset) -> None:
    """Mount the rules and return once this connection is under them."""
    mount(bench, rules)
    assert client.send("GET", "/unrelated", host="unrelated.test").status == 200


def mount(bench: Bench, rules: Ruleset) -> None:
    """Mount the rules and return once Envoy has taken them."""
    updates = bench.stat(f"{STATS}.update_success")
    bench.mount(rules)
    eventually(lambda: bench.stat(f"{STATS}.update_success") > updates, within_s=10, what="Envoy has the Closed rules")


def refused_updates(bench: Bench) -> int:
    """How often Envoy did not take what was mounted."""
    return sum(bench.stat(f"{STATS}.{name}") for name in ("update_failure", "update_rejected"))
