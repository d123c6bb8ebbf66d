# SPDX-License-Identifier: Apache-2.0
"""The policies that benchmarks measure with, as users write them, and the operator's way from them to a ruleset."""

from __future__ import annotations

import base64
import copy
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.compiler import Compiler
from weir_operator.domain.gateways import Gateway, HostsDefault, NamespaceBudget
from weir_operator.domain.ruleset import Ruleset
from weir_operator.domain.specs import OverrideInput, PolicyInput
from weir_operator.domain.wire_text import Texts
from weir_operator.render.ruleset_config import Live, RulesetTooLarge, render_rules

HOST = "api.example.com"
EXHAUSTED_HOST, THREE_HOST, LAYERED_HOST = "exhausted.example.com", "three.example.com", "layered.example.com"
CONTENDED_HOST = "contended.example.com"
GATEWAY = Gateway(
    "edge",
    "weir-system",
    allowed_namespaces=frozenset({"*"}),
    hosts_default=HostsDefault.ANY,
    namespace_budget=NamespaceBudget(10**6, 10**9, 10**9),
)
_NOW_MS = 1_764_547_200_000  # any time: the revision does not matter here


def generous() -> dict[str, Any]:
    """One rule per API key that never refuses: what is measured is the whole way of an allowed request."""
    rule = {"name": "burst", "key": [{"header": "x-api-key"}]}
    limit = {"requests": 1_000_000, "period": "1s", "burst": 1_000_000_000}
    return _policy("orders-api", {"match": {"hosts": [HOST]}, "rules": [{**rule, "limit": limit}]})


def exhausted() -> dict[str, Any]:
    """One rule per API key that lets one request in an hour pass."""
    rule = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 1, "period": "1h", "burst": 1}}
    return _policy("exhausted", {"match": {"hosts": [EXHAUSTED_HOST]}, "rules": [rule]})


def three_of_one_subject() -> dict[str, Any]:
    """Three rules per API key that never refuse: one call of the script decides them all."""
    rules = [
        {"name": f"per-{period}", "key": [{"header": "x-api-key"}], "limit": {"requests": 1_000_000, "period": period}}
        for period in ("1s", "1m", "1h")
    ]
    return _policy("three", {"match": {"hosts": [THREE_HOST]}, "rules": rules})


def layered() -> dict[str, Any]:
    """A ceiling over all traffic, a rate per client and a quota per client; none refuses."""
    key = [{"header": "x-api-key"}]
    much = {"requests": 1_000_000, "period": "1s", "burst": 1_000_000_000}
    rules = [
        {"name": "ceiling", "key": [], "limit": much},
        {"name": "rate", "key": key, "limit": much},
        {"name": "quota", "key": key, "limit": {"requests": 1_000_000_000, "period": "24h"}},
    ]
    return _policy("layered", {"match": {"hosts": [LAYERED_HOST]}, "rules": rules})


def contended(budget: int) -> dict[str, Any]:
    """A budget that all clients share, and one request in an hour for each client: two subjects, so two slots."""
    rules = [
        {"name": "shared", "key": [], "limit": {"requests": 1, "period": "24h", "burst": budget}},
        {"name": "own", "key": [{"header": "x-api-key"}], "limit": {"requests": 1, "period": "24h", "burst": 1}},
    ]
    return _policy("contended", {"match": {"hosts": [CONTENDED_HOST]}, "rules": rules})


def varied(count: int) -> list[dict[str, Any]]:
    """Policies of the sizes that teams write: two rules, two routes, a plan, a cost, an exemption."""
    return [_policy(f"policy-{number:04}", _varied_spec(number)) for number in range(count)]


def overrides(count: int, *, of: int) -> list[dict[str, Any]]:
    """Overrides of the first `of` varied policies, in turn: one client each, known by the digest of its key."""
    return [_override(number, f"policy-{number % of:04}") for number in range(count)]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Objects as the operator has them in its caches."""

    policies: list[PolicyInput]
    overrides: list[OverrideInput]


def parse(objects: Sequence[dict[str, Any]], exceptions: Sequence[dict[str, Any]] = ()) -> Inputs:
    """Parse the API server's JSON."""
    return Inputs([parse_policy(item) for item in objects], [parse_override(item) for item in exceptions])


class Gate:
    """One gateway's way from parsed objects to the ConfigMap's entries, with what it remembers between two passes."""

    def __init__(self) -> None:
        self._compiler = Compiler(GATEWAY)
        self._texts = Texts()
        self._published: Ruleset | None = None

    def render(self, inputs: Inputs, *, revision: int = _NOW_MS) -> dict[str, bytes]:
        """Compile and render. Raises ValueError when an object is not accepted."""
        compiled = self._compiler.compile(inputs.policies, inputs.overrides, self._published)
        outcomes = {**compiled.policies, **compiled.overrides}
        problems = {name: outcome.problems for name, outcome in outcomes.items() if not outcome.accepted}
        if problems:
            raise ValueError(f"{len(problems)} are not accepted, the first: {next(iter(problems.items()))}")
        manifest = render_rules(compiled.ruleset, GATEWAY, Live(), revision, self._texts)
        if isinstance(manifest, RulesetTooLarge):
            raise ValueError(str(manifest))  # noqa: TRY004 - the type is its way of saying what is wrong with the value
        self._published = compiled.ruleset
        plain = {name: text.encode() for name, text in (manifest.get("data") or {}).items()}
        return plain | {name: base64.b64decode(text) for name, text in (manifest.get("binaryData") or {}).items()}


def render(inputs: Inputs) -> dict[str, bytes]:
    """What an operator that has just started makes of parsed objects."""
    return Gate().render(inputs)


def revisions(objects: Sequence[dict[str, Any]], exceptions: Sequence[dict[str, Any]]) -> Iterator[dict[str, bytes]]:
    """The same rules again and again, each time with a higher revision and another limit in the last policy."""
    inputs, gate = parse(objects, exceptions), Gate()
    for number in itertools.count(1):
        edited = copy.deepcopy(objects[-1])
        edited["spec"]["rules"][0]["limit"]["burst"] += number
        inputs.policies[-1] = parse_policy(edited)
        yield gate.render(inputs, revision=_NOW_MS + number)


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
