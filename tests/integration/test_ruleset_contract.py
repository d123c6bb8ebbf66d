# SPDX-License-Identifier: Apache-2.0
"""The ruleset document between the two programs: what the operator compiles, the limiter understands alike."""

import ipaddress
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_limiter import _core
from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.ruleset import canonical_json, publish, to_bytes

GOLDEN = sorted((Path(__file__).parents[1] / "unit" / "operator" / "render" / "golden").glob("*.out.json"))
GATEWAY = Gateway(
    "edge",
    "weir",
    allowed_namespaces=frozenset({"*"}),
    hosts_default=HostsDefault.ANY,
    withheld_headers=frozenset(),
)
METADATA = {"namespace": "team", "name": "x", "generation": 1}
BLOCKED = "refused: blocked by an override"
addresses = st.one_of(
    st.ip_addresses(v=4),
    st.ip_addresses(v=6),
    st.ip_addresses(v=4).map(lambda v4: ipaddress.ip_address(f"::ffff:{v4}")),
)


def compiled(key: list[dict[str, Any]], subject: dict[str, str]) -> bytes:
    rule = {"name": "only", "key": key, "limit": {"requests": 5, "period": "1s"}}
    routes = {"routes": [{"path": "/orgs/{org}/*"}]} if key == [{"path": "org"}] else {}
    spec = {"gateway": "edge", "mode": "Enforce", "match": routes, "rules": [rule]}
    policy = parse_policy({"metadata": METADATA, "spec": spec})
    spec = {"policyRef": {"name": "x"}, "subjects": [subject], "action": "Block", "permanent": True}
    override = parse_override({"metadata": METADATA, "spec": spec})
    result = compile_ruleset([policy], [override], GATEWAY, None)
    assert result.overrides["team/x"].accepted, result.overrides
    return to_bytes(publish(result.ruleset, 1))


def outcome(document: bytes, **request: Any) -> str:
    asked = {"method": "GET", "host": "api.test", "path": "/", "headers": {}, "clientIP": "192.0.2.1", **request}
    (rule,) = json.loads(_core.explain(document, json.dumps(asked).encode()))["rules"]
    return str(rule["outcome"])


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("golden", GOLDEN, ids=[path.name.removesuffix(".out.json") for path in GOLDEN])
def test_a_golden_ruleset_is_taken_by_the_limiter(golden: Path) -> None:
    ruleset = json.loads(golden.read_text(encoding="utf-8"))["ruleset"]
    taken = json.loads(_core.check(canonical_json(ruleset)))
    assert (taken["digest"], taken["policies"]) == (ruleset["digest"], len(ruleset["policies"]))


@pytest.mark.requirement("R15")
@settings(deadline=None)
@given(addresses, st.integers(0, 32), st.integers(0, 128))
def test_an_address_means_the_same_to_both(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, ipv4_prefix: int, ipv6_prefix: int
) -> None:
    """D24, D25: the operator hashes the subject's network, the limiter the request's; they must be one text."""
    prefixes = {"ipv4Prefix": ipv4_prefix, "ipv6Prefix": ipv6_prefix}
    document = compiled([{"clientIP": prefixes}], {"clientIP": address.exploded})
    assert outcome(document, clientIP=str(address)) == BLOCKED


@pytest.mark.requirement("R15")
@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", min_codepoint=32, exclude_characters="\x7f"), min_size=1, max_size=20))
def test_a_header_value_means_the_same_to_both(value: str) -> None:
    document = compiled([{"header": "X-Api-Key"}], {"x-api-key": value.strip(" ") or "k"})
    assert outcome(document, headers={"x-api-key": value.strip(" ") or "k"}) == BLOCKED
    assert outcome(document, headers={"x-api-key": f"not {value}"}) != BLOCKED


def escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


SOURCES: dict[str, tuple[dict[str, Any], Callable[[str], dict[str, Any]]]] = {
    "cookie:sid": ({"cookie": "sid"}, lambda value: {"headers": {"cookie": f"a=b; sid={value}"}}),
    "query:key": ({"query": "key"}, lambda value: {"path": f"/?key={escaped(value)}&key=x"}),
    "claim:realm.sub": ({"claim": "realm.sub"}, lambda value: {"claims": {"realm": {"sub": value}}}),
    r"claim:https://a\.b/sub": ({"claim": r"https://a\.b/sub"}, lambda value: {"claims": {"https://a.b/sub": value}}),
    "principal": ({"principal": {}}, lambda value: {"principal": value}),
    "path:org": ({"path": "org"}, lambda value: {"path": f"/orgs/{escaped(value)}/x"}),
}


@pytest.mark.requirement("R15")
@pytest.mark.parametrize("source", SOURCES)
@settings(deadline=None, max_examples=30)
@given(st.text(st.characters(codec="utf-8", min_codepoint=33, exclude_characters="\x7f;/\\."), min_size=1, max_size=12))
def test_a_value_of_every_source_means_the_same_to_both(source: str, value: str) -> None:
    key, request = SOURCES[source]
    document = compiled([key], {source: value})
    assert outcome(document, **request(value)) == BLOCKED
    assert outcome(document, **request(f"{value}x")) != BLOCKED


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(
    ("source", "key", "value", "request_"),
    [
        ("host", {"host": {}}, "API.Test", {"host": "api.test:8443"}),
        ("method", {"method": {}}, "purge", {"method": "PURGE"}),
        ("claim:id", {"claim": "id"}, "42", {"claims": {"id": 42}}),
        ("claim:id", {"claim": "id"}, "0.1", {"claims": {"id": 0.1}}),
        ("claim:id", {"claim": "id"}, "1e+21", {"claims": {"id": 1e21}}),
        ("claim:ok", {"claim": "ok"}, "true", {"claims": {"ok": True}}),
        ("claim:roles", {"claim": "roles"}, '["a","é",1]', {"claims": {"roles": ["a", "é", 1]}}),
    ],
)
def test_a_value_is_written_in_its_canonical_form(
    source: str, key: dict[str, Any], value: str, request_: dict[str, Any]
) -> None:
    assert outcome(compiled([key], {source: value}), **request_) == BLOCKED
