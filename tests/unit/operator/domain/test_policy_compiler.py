# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.limits import MAX_COUNT, Mode
from weir_operator.domain.policy_compiler import compile_policy, sha256
from weir_operator.domain.ruleset import AddressExempt, HeaderExempt, HeaderValues, Policy, Route
from weir_operator.domain.sources import (
    HeaderKey,
)
from weir_operator.domain.specs import (
    AddressExemption,
    ClientIPSource,
    CostSpec,
    HeaderExemption,
    HeaderSource,
    LimitSpec,
    Meta,
    PlansSpec,
    PolicySpec,
    RouteSpec,
    RuleSpec,
)

META = Meta("team", "api", "uid", 7, 0)
GATEWAY = Gateway(
    "edge",
    "weir-system",
    allowed_namespaces=frozenset({"team"}),
    hosts={"team": ("api.example.com", "*.team.example.com")},
)
LIMIT = LimitSpec(100, 1_000_000)
RULE = RuleSpec("burst", LIMIT)
SPEC = PolicySpec((RULE,))


def compiled(spec: PolicySpec, gateway: Gateway = GATEWAY) -> Policy:
    policy = compile_policy(META, spec, gateway)
    assert isinstance(policy, Policy), policy
    return policy


def with_rule(**changes: Any) -> PolicySpec:
    return PolicySpec((replace(RULE, **changes),))


def cost(path: str, tokens: int = 1, *methods: str) -> CostSpec:
    return CostSpec(RouteSpec(path, methods), tokens)


FAULTS = [
    ("no-rules", PolicySpec(()), "spec.rules", "at least one rule"),
    ("duplicate-rule", PolicySpec((RULE, RULE)), "spec.rules[1].name", "its own name"),
    ("foreign-host", replace(SPEC, hosts=("www.example.com",)), "spec.match.hosts[0]", "allowed: api.example.com"),
    ("too-wide-host", replace(SPEC, hosts=("*.example.com",)), "spec.match.hosts[0]", "allowed: api.example.com"),
    ("malformed-host", replace(SPEC, hosts=("api.example.com:80",)), "spec.match.hosts[0]", "without port"),
    ("malformed-path", replace(SPEC, routes=(RouteSpec("/a//b"),)), "spec.match.routes[0].path", "/a/b"),
    ("malformed-method", replace(SPEC, routes=(RouteSpec("/a", ("get",)),)), "spec.match.routes[0].methods[0]", "GET"),
    ("bad-network", replace(SPEC, exempt=(AddressExemption(("10.0.0.1/8",)),)), "spec.exempt[0].clientIP[0]", "/8"),
    ("no-network", replace(SPEC, exempt=(AddressExemption(()),)), "spec.exempt[0].clientIP", "at least one"),
    (
        "everybody-exempt",
        replace(SPEC, exempt=(AddressExemption(("0.0.0.0/0",)), AddressExemption(("::/0",)))),
        "spec.exempt",
        "mode: Disabled",
    ),
    ("exempt-header", replace(SPEC, exempt=(HeaderExemption("x y", ("a",)),)), "spec.exempt[0].header.name", "x-api"),
    ("exempt-no-value", replace(SPEC, exempt=(HeaderExemption("x", ()),)), "spec.exempt[0].header.in", "at least one"),
    ("exempt-value", replace(SPEC, exempt=(HeaderExemption("x", (" a",)),)), "spec.exempt[0].header.in[0]", "space"),
    (
        "withheld-exempt",
        replace(SPEC, exempt=(HeaderExemption("Cookie", ("a",)),)),
        "spec.exempt[0].header.name",
        "ask",
    ),
    ("bad-key-header", with_rule(key=(HeaderSource("x:y"),)), "spec.rules[burst].key[0].header", "x-api-key"),
    ("host-as-header", with_rule(key=(HeaderSource("Host"),)), "spec.rules[burst].key[0].header", "spec.match.hosts"),
    ("withheld-key", with_rule(key=(HeaderSource("Authorization"),)), "spec.rules[burst].key[0].header", "forward"),
    ("source-twice", with_rule(key=(HeaderSource("x"), HeaderSource("X"))), "spec.rules[burst].key[1]", "once"),
    ("address-twice", with_rule(key=(ClientIPSource(), ClientIPSource(24))), "spec.rules[burst].key[1]", "once"),
    ("ipv4-prefix", with_rule(key=(ClientIPSource(33, 64),)), "spec.rules[burst].key[0].clientIP.ipv4Prefix", "32"),
    ("ipv6-prefix", with_rule(key=(ClientIPSource(32, -1),)), "spec.rules[burst].key[0].clientIP.ipv6Prefix", "128"),
    ("zero-limit", with_rule(limit=LimitSpec(0, 1_000_000, 1)), "spec.rules[burst].limit.requests", "from 1"),
    ("zero-period", with_rule(limit=LimitSpec(1, 0)), "spec.rules[burst].limit.period", "1ms"),
    ("inexact", with_rule(limit=LimitSpec(7, 10**12, MAX_COUNT)), "spec.rules[burst].limit.burst", "at most 9007"),
    (
        "no-plans",
        with_rule(plans=PlansSpec(HeaderSource("x-plan"), ())),
        "spec.rules[burst].plans.limits",
        "leave plans out",
    ),
    (
        "withheld-plan",
        with_rule(plans=PlansSpec(HeaderSource("cookie"), (("gold", LIMIT),))),
        "spec.rules[burst].plans.from.header",
        "forward",
    ),
    (
        "plan-numbers",
        with_rule(plans=PlansSpec(HeaderSource("x-plan"), (("gold", LimitSpec(0, 1_000_000, 1)),))),
        "spec.rules[burst].plans.limits.gold.requests",
        "from 1",
    ),
    (
        "plan-name",
        with_rule(plans=PlansSpec(HeaderSource("x-plan"), ((" ", LIMIT),))),
        "spec.rules[burst].plans.limits. ",
        "space",
    ),
    ("dear", with_rule(cost=(cost("/x", 101),)), "spec.rules[burst].cost[0].cost", "write at most 100"),
    ("negative-cost", with_rule(cost=(cost("/x", -1),)), "spec.rules[burst].cost[0].cost", "0 for free"),
    (
        "dear-for-a-plan",
        with_rule(
            plans=PlansSpec(HeaderSource("x-plan"), (("free", LimitSpec(5, 1_000_000)),)), cost=(cost("/x", 10),)
        ),
        "spec.rules[burst].cost[0].cost",
        "write at most 5",
    ),
    ("cost-path", with_rule(cost=(cost("x"),)), "spec.rules[burst].cost[0].match.path", '"/x"'),
    (
        "shadowed-cost",
        with_rule(cost=(cost("/v1/*", 2), cost("/v1/a", 3, "GET"))),
        "spec.rules[burst].cost[1].match",
        "put it before",
    ),
    (
        "shadowed-head",
        with_rule(cost=(cost("/v1/a", 2, "GET"), cost("/v1/a", 3, "HEAD"))),
        "spec.rules[burst].cost[1].match",
        "put it before",
    ),
    (
        "unreachable-cost",
        replace(with_rule(cost=(cost("/v2/a"),)), routes=(RouteSpec("/v1/*"),)),
        "spec.rules[burst].cost[0].match",
        "one of them",
    ),
    (
        "unreachable-cost-method",
        replace(with_rule(cost=(cost("/v1/a", 1, "POST"),)), routes=(RouteSpec("/v1/*", ("GET",)),)),
        "spec.rules[burst].cost[0].match",
        "one of them",
    ),
]


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(("spec", "path", "remedy"), [pytest.param(*fault[1:], id=fault[0]) for fault in FAULTS])
def test_a_fault_is_named_with_its_path_and_what_would_be_right(spec: PolicySpec, path: str, remedy: str) -> None:
    """D03 (a fixed cost above the burst), D12, D28, D68, D69."""
    problems = compile_policy(META, spec, GATEWAY)
    assert isinstance(problems, tuple)
    assert [path] == [problem.path for problem in problems]
    assert remedy in problems[0].hint


@pytest.mark.requirement("R40")
def test_all_faults_are_reported_at_once() -> None:
    spec = PolicySpec(
        (replace(RULE, key=(HeaderSource("cookie"),), limit=LimitSpec(0, 0, 1)),),
        hosts=("evil.test",),
        routes=(RouteSpec("x"),),
    )
    problems = compile_policy(META, spec, replace(GATEWAY, allowed_namespaces=frozenset()))
    assert isinstance(problems, tuple)
    assert [problem.path for problem in problems] == [
        "spec.gateway",
        "spec.match.hosts[0]",
        "spec.match.routes[0].path",
        "spec.rules[burst].key[0].header",
        "spec.rules[burst].limit.requests",
        "spec.rules[burst].limit.period",
    ]
    assert problems[0].reason is Reason.NAMESPACE_NOT_ALLOWED
    assert problems[1].reason is Reason.HOST_NOT_ALLOWED


def test_a_policy_without_hosts_gets_exactly_those_that_its_namespace_may_use() -> None:
    assert compiled(SPEC).match.hosts == ("*.team.example.com", "api.example.com")
    assert compiled(SPEC, replace(GATEWAY, hosts={"team": ("*",)})).match.hosts == ()


def test_a_namespace_that_the_gateway_does_not_list_follows_the_default() -> None:
    unlisted = replace(GATEWAY, hosts={})
    problems = compile_policy(META, SPEC, unlisted)
    assert isinstance(problems, tuple)
    assert [problem.reason for problem in problems] == [Reason.HOST_NOT_ALLOWED]
    assert compiled(SPEC, replace(unlisted, hosts_default=HostsDefault.ANY)).match.hosts == ()


def test_a_narrower_host_than_the_allowed_pattern_is_fine() -> None:
    hosts = ("a.team.example.com", "*.b.team.example.com", "api.example.com")
    assert compiled(replace(SPEC, hosts=hosts)).match.hosts == hosts


def test_raw_values_leave_only_as_hashes() -> None:
    """D61"""
    (entry,) = compiled(replace(SPEC, exempt=(HeaderExemption("X-Api-Key", ("s3cret",)),))).exempt
    assert entry == HeaderExempt(HeaderValues("x-api-key", (f"sha256:{sha256('s3cret')}",)))
    assert sha256("s3cret") == "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0"


def test_a_bad_value_is_not_quoted_since_it_may_be_a_secret() -> None:
    """D61"""
    problems = compile_policy(META, replace(SPEC, exempt=(HeaderExemption("x", ("s3cret ",)),)), GATEWAY)
    assert "s3cret" not in str(problems)


def test_names_are_compared_in_lower_case_and_networks_in_one_spelling() -> None:
    spec = replace(
        with_rule(key=(HeaderSource("X-API-Key"),)), exempt=(AddressExemption(("2001:DB8:0::/32", "2001:db8::/32")),)
    )
    assert compiled(spec).rules[0].key == (HeaderKey("x-api-key"),)
    assert compiled(spec).exempt == (AddressExempt(("2001:db8::/32",)),)


def test_defaults_are_filled_in() -> None:
    policy = compiled(replace(SPEC, mode=Mode.ENFORCE, routes=(RouteSpec("/a", ("POST", "GET", "GET")),)))
    assert policy.rules[0].limit == TokenBucket(100, 1_000_000, 100)
    assert policy.rules[0].mode is Mode.ENFORCE
    assert policy.match.routes == (Route("/a", ("GET", "POST")),)


def test_a_cost_that_is_only_partly_shadowed_is_fine() -> None:
    spec = with_rule(cost=(cost("/v1/a", 2, "GET"), cost("/v1/a", 3), cost("/v1/*", 0)))
    assert [entry.cost for entry in compiled(spec).rules[0].cost] == [2, 3, 0]


def test_the_cost_of_head_is_one_of_a_route_for_get() -> None:
    spec = replace(with_rule(cost=(cost("/x", 2, "HEAD"),)), routes=(RouteSpec("/x", ("GET",)),))
    assert [entry.cost for entry in compiled(spec).rules[0].cost] == [2]


def test_a_cost_of_head_leaves_get_to_the_entry_after_it() -> None:
    spec = with_rule(cost=(cost("/x", 2, "HEAD"), cost("/x", 3, "GET")))
    assert [entry.cost for entry in compiled(spec).rules[0].cost] == [2, 3]
