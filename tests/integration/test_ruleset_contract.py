# SPDX-License-Identifier: Apache-2.0
"""The ruleset document between the two programs: what the operator compiles, the limiter understands alike."""

import ipaddress
import json
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
GATEWAY = Gateway("edge", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
METADATA = {"namespace": "team", "name": "x", "generation": 1}
BLOCKED = "refused: blocked by an override"
addresses = st.one_of(
    st.ip_addresses(v=4),
    st.ip_addresses(v=6),
    st.ip_addresses(v=4).map(lambda v4: ipaddress.ip_address(f"::ffff:{v4}")),
)


def compiled(key: list[dict[str, Any]], subject: dict[str, str]) -> bytes:
    rule = {"name": "only", "key": key, "limit": {"requests": 5, "period": "1s"}}
    policy = parse_policy({"metadata": METADATA, "spec": {"gateway": "edge", "mode": "Enforce", "rules": [rule]}})
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
