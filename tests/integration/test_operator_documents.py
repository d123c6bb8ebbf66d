# SPDX-License-Identifier: Apache-2.0
"""Operator and limiter agree on what a document may hold: a policy that one accepts never makes the other refuse all.

D44: a limiter takes a document whole or not at all, so each disagreement would stop every other policy's updates.
"""

from typing import Any

import pytest

from weir_limiter import _core
from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.compiler import Compiled, compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.ruleset import publish, to_bytes
from weir_operator.domain.time_zones import time_zones

GATEWAY = Gateway(
    "edge",
    "weir-system",
    allowed_namespaces=frozenset({"*"}),
    hosts_default=HostsDefault.ANY,
    withheld_headers=frozenset(),
    max_delay_ms=60_000,
)
LIMIT = {"requests": 10, "period": "1s"}
MOST = 10**12


def rule(**more: Any) -> dict[str, Any]:
    return {"name": "r", "limit": LIMIT, **more}


PATHS = (
    "/",
    "/*",
    "/{a}",
    "/{a}/{b}/*",
    "/ä/ö",
    "/a b",
    "/%zz",
    "/a%2",
    "/ ",
    "/Straße/İ",
    "/a:b",
    "/~",
    "/\N{LATIN SMALL LETTER LONG S}",
    "/{_}",
)
HOSTS = ("a", "*.a", "1.2.3.4", "a" * 63 + ".com", "xn--a.com", "*.com", "a-b.c", "-a.com", "a.b.")
NETWORKS = (
    "0.0.0.0/0",
    "::/0",
    "::ffff:0:0/96",
    "fe80::/10",
    "1.2.3.4/032",
    "2001:DB8::/32",
    "fe80::%eth0/64",
    "::/96",
)
HEADERS = ("X-Api-Key", "!#$%&'*+.^_`|~0aA", "a" * 128, "x_y", ":path", "x-weir-client-ip", "content-length")
PLANS = ("a b", "ä", '"', "a.b/c", "x" * 253, " a", "a\tb")
LIMITS = (
    {"requests": MOST, "period": "1ms", "burst": MOST},
    {"requests": 1, "period": "99999h"},
    {"requests": 7, "period": "1s", "burst": MOST},
    {"requests": 999_983, "period": "99999h", "burst": 25},
    {"requests": 1, "period": "1ms", "burst": MOST},
)
SPECS = [
    *({"match": {"routes": [{"path": path}]}, "rules": [rule()]} for path in PATHS),
    *({"rules": [rule(cost=[{"match": {"path": path}, "cost": 0}])]} for path in PATHS),
    *({"match": {"hosts": [host]}, "rules": [rule()]} for host in HOSTS),
    *({"exempt": [{"clientIP": [network]}], "rules": [rule()]} for network in NETWORKS),
    *({"exempt": [{"header": {"name": name, "in": ["ä", "v v"]}}], "rules": [rule()]} for name in HEADERS),
    *({"rules": [rule(key=[{"header": name}])]} for name in HEADERS),
    *({"rules": [rule(plans={"from": {"header": "x"}, "limits": {plan: LIMIT}})]} for plan in PLANS),
    *({"rules": [rule(limit=limit)]} for limit in LIMITS),
    *({"rules": [rule(key=[{"clientIP": {"ipv4Prefix": v4, "ipv6Prefix": 0}}])]} for v4 in (0, 1, 32)),
    {"match": {"hosts": ["a.b", "a.b"], "routes": [{"path": "/a"}, {"path": "/A"}]}, "rules": [rule()]},
    {"match": {"routes": [{"path": "/a", "methods": ["GET", "GET", "M-SEARCH", "X" * 32]}]}, "rules": [rule()]},
    {"response": {"documentation": "https://x/\"'<>", "headers": "None"}, "rules": [rule()]},
]
KEYS = (
    [{"cookie": "A!#$"}, {"cookie": "a!#$"}],
    [{"query": "filter[a]"}, {"query": "Filter[a]"}],
    [{"claim": r"https://a\.b\\c.d"}, {"claim": "a.b.c.d.e.f.g.h"}],
    [{"principal": {}}, {"host": {}}, {"method": {}}],
    [{"path": "org"}, {"path": "Org"}],
)
COUNTS = (1, 7, 9_999, 10_000, 10**6, MOST - 1, MOST)
PERIODS = ("1ms", "1s", "24h", "99999h")
EXTREMES = [
    {"algorithm": algorithm, "requests": requests, "period": period, **more}
    for algorithm, more in (
        ("TokenBucket", {}),
        ("TokenBucket", {"burst": MOST}),
        ("LeakyBucket", {}),
        ("LeakyBucket", {"queue": 1, "maxDelay": "1ms"}),
        ("LeakyBucket", {"queue": 10**6, "maxDelay": "1m"}),
        ("FixedWindow", {}),
        ("SlidingWindowCounter", {}),
        ("SlidingWindowLog", {}),
    )
    for requests in COUNTS
    for period in PERIODS
]
CHANGES: tuple[dict[str, Any], ...] = (
    {"action": "Set", "limit": {"requests": 3}},
    {"action": "Set", "limit": {"period": "1h"}},
    {"action": "Set", "limit": {"queue": 0}},
    {"action": "Set", "limit": {"queue": 9}},
    {"action": "Set", "limit": {"maxDelay": "9s"}},
    {"action": "Set", "limit": {"burst": MOST}},
    {"action": "Multiply", "factor": "0.001"},
    {"action": "Multiply", "factor": "2.5"},
    {"action": "Multiply", "factor": "1000"},
)
KEYED = {"rules": [rule(key=[{"header": "x-api-key"}, {"clientIP": {"ipv4Prefix": 24, "ipv6Prefix": 0}}])]}
OVERRIDES: list[dict[str, Any]] = [
    *({"subjects": [{"clientIP": address}]} for address in ("1.2.3.4", "::ffff:1.2.3.4", "2001:db8::1")),
    {"subjects": [{"x-api-key": "k"}, {"x-api-key": "k"}]},
    {"subjects": [{"x-api-key": {"sha256": "A" * 64}}]},
    {"permanent": False, "expiresAt": "1960-01-01T00:00:00Z"},
    {"permanent": False, "startsAt": "1970-01-01T00:00:00.2Z", "expiresAt": "1970-01-01T00:00:00.5Z"},
    {"permanent": False, "expiresAt": "9999-12-31T23:59:59Z"},
    {"action": "Set", "limit": {"requests": MOST, "burst": MOST}},
    {"action": "Set", "limit": {"period": "99999h"}},
]


def compiled(spec: dict[str, Any], override: dict[str, Any] | None = None) -> Compiled:
    metadata = {"namespace": "t", "name": "p", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    policy = parse_policy({"metadata": metadata, "spec": {"gateway": "edge", "mode": "Enforce", **spec}})
    usual = {"policyRef": {"name": "p"}, "subjects": [{"x-api-key": "k"}], "action": "Exempt", "permanent": True}
    overrides = [] if override is None else [parse_override({"metadata": metadata, "spec": usual | override})]
    return compile_ruleset([policy], overrides, GATEWAY, None)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_accepted_policy_makes_a_document_that_limiters_take(spec: dict[str, Any]) -> None:
    result = compiled(spec)
    assert result.policies["t/p"].accepted == bool(result.ruleset.policies)
    _core.check(to_bytes(publish(result.ruleset, 5)))


@pytest.mark.parametrize("override", OVERRIDES, ids=str)
def test_an_accepted_override_makes_a_document_that_limiters_take(override: dict[str, Any]) -> None:
    result = compiled(KEYED, override)
    assert result.policies["t/p"].accepted
    _core.check(to_bytes(publish(result.ruleset, 5)))


def taken(result: Compiled, revision: int = 5) -> None:
    _core.check(to_bytes(publish(result.ruleset, revision)))


@pytest.mark.parametrize("limit", EXTREMES, ids=str)
def test_whatever_passes_of_a_limit_and_its_overrides_limiters_take(limit: dict[str, Any]) -> None:
    """D12: both programs have one idea of what can be counted exactly."""
    keyed = rule(limit=limit, key=[{"header": "x-api-key"}])
    dear = rule(limit=limit, cost=[{"match": {"path": "/a"}, "cost": min(limit["requests"], 10**6)}])
    planned = rule(limit=limit, plans={"from": {"claim": "plan"}, "limits": {"gold": limit}})
    for each in (keyed, dear, planned):
        taken(compiled({"rules": [each]}))
    for change in CHANGES:
        taken(compiled({"rules": [keyed]}, change))


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_every_source_that_passes_limiters_take(key: list[dict[str, Any]]) -> None:
    match = {"routes": [{"path": "/{org}/{Org}"}]}
    result = compiled({"match": match, "rules": [rule(key=key, scope="Instance")]})
    assert result.policies["t/p"].accepted
    taken(result)


@pytest.mark.requirement("R11")
def test_every_time_zone_that_passes_is_known_to_limiters() -> None:
    for zone in sorted(time_zones()):
        limit = {"algorithm": "FixedWindow", "requests": 5, "calendar": "Week", "timeZone": zone}
        result = compiled({"rules": [rule(limit=limit)]})
        assert result.policies["t/p"].accepted, zone
        taken(result)
