# SPDX-License-Identifier: Apache-2.0
"""Keys, plans and costs beyond one header and a token bucket: what is refused, and what becomes of the rest."""

from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.limits import Algorithm, Calendar, FailureMode, Scope, Share
from weir_operator.domain.policy_compiler import compile_policy
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.sources import (
    ClaimKey,
    CookieKey,
    HeaderKey,
    HostKey,
    MethodKey,
    Nothing,
    PathKey,
    PrincipalKey,
    QueryKey,
)
from weir_operator.domain.specs import (
    ClaimSource,
    CookieSource,
    CostSpec,
    HeaderSource,
    HostSource,
    LimitSpec,
    Meta,
    MethodSource,
    PathSource,
    PlansSpec,
    PolicySpec,
    PrincipalSource,
    QuerySource,
    RouteSpec,
    RuleSpec,
    StoreFailureSpec,
)

META = Meta("team", "api", "uid", 7, 0)
GATEWAY = Gateway("edge", "weir-system", allowed_namespaces=frozenset({"team"}), hosts_default=HostsDefault.ANY)
LIMIT = LimitSpec(100, 1_000_000)
RULE = RuleSpec("burst", LIMIT)


def compiled(spec: PolicySpec, gateway: Gateway = GATEWAY) -> Policy:
    policy = compile_policy(META, spec, gateway)
    assert isinstance(policy, Policy), policy
    return policy


def with_rule(**changes: Any) -> PolicySpec:
    return PolicySpec((replace(RULE, **changes),))


def cost(path: str, tokens: int) -> CostSpec:
    return CostSpec(RouteSpec(path), tokens)


def failing(mode: FailureMode, share: Share | None = None, factor: str | None = None) -> StoreFailureSpec:
    return StoreFailureSpec(mode, share, factor)


FAULTS = [
    (
        "share-of-an-open-rule",
        with_rule(on_store_failure=failing(FailureMode.OPEN, Share.SPLIT)),
        "spec.rules[burst].onStoreFailure.share",
        "or write mode: Local",
    ),
    (
        "factor-of-a-split-limit",
        with_rule(on_store_failure=failing(FailureMode.LOCAL, Share.SPLIT, "2")),
        "spec.rules[burst].onStoreFailure.factor",
        "share: Full",
    ),
    (
        "factor-of-nothing",
        with_rule(on_store_failure=failing(FailureMode.LOCAL, Share.FULL, "0")),
        "spec.rules[burst].onStoreFailure.factor",
        'from "0.001" to "1000"',
    ),
    (
        "share-of-an-instance",
        with_rule(on_store_failure=failing(FailureMode.LOCAL), scope=Scope.INSTANCE),
        "spec.rules[burst].onStoreFailure.mode",
        "whatever the store does",
    ),
    ("bad-cookie", with_rule(key=(CookieSource("a b"),)), "spec.rules[burst].key[0].cookie", "session"),
    ("withheld-cookie", with_rule(key=(CookieSource("sid"),)), "spec.rules[burst].key[0].cookie", "forward them"),
    ("bad-query", with_rule(key=(QuerySource("a&b"),)), "spec.rules[burst].key[0].query", "api_key"),
    ("bad-claim", with_rule(key=(ClaimSource("a..b"),)), "spec.rules[burst].key[0].claim", "realm.roles"),
    ("claim-twice", with_rule(key=(ClaimSource("a.b"), ClaimSource("a.b"))), "spec.rules[burst].key[1]", "once"),
    ("capture-of-every-path", with_rule(key=(PathSource("org"),)), "spec.rules[burst].key[0].path", "/orgs/{org}/*"),
    (
        "capture-that-a-route-lacks",
        replace(with_rule(key=(PathSource("org"),)), routes=(RouteSpec("/o/{org}"), RouteSpec("/o/{Org}/*"))),
        "spec.rules[burst].key[0].path",
        "of every route",
    ),
    (
        "plan-of-another-algorithm",
        with_rule(plans=PlansSpec(HeaderSource("x"), (("gold", replace(LIMIT, algorithm=Algorithm.FIXED_WINDOW)),))),
        "spec.rules[burst].plans.limits.gold.algorithm",
        "here TokenBucket",
    ),
    (
        "bad-plan-claim",
        with_rule(plans=PlansSpec(ClaimSource("."), (("gold", LIMIT),))),
        "spec.rules[burst].plans.from.claim",
        "realm.roles",
    ),
    (
        "dear-for-a-window",
        with_rule(limit=LimitSpec(5, 10**6, algorithm=Algorithm.SLIDING_WINDOW_LOG), cost=(cost("/x", 6),)),
        "spec.rules[burst].cost[0].cost",
        "at most 5",
    ),
    (
        "dear-for-a-leaky-bucket",
        with_rule(limit=LimitSpec(5, 10**6, algorithm=Algorithm.LEAKY_BUCKET), cost=(cost("/x", 10**6 + 1),)),
        "spec.rules[burst].cost[0].cost",
        "at most 1000000",
    ),
    (
        "queue-on-a-gateway-that-holds-nobody",
        with_rule(limit=LimitSpec(5, 10**6, algorithm=Algorithm.LEAKY_BUCKET, queue=1, max_delay_us=1000)),
        "spec.rules[burst].limit.queue",
        "queueing.maxDelay",
    ),
]


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(("spec", "path", "remedy"), [pytest.param(*fault[1:], id=fault[0]) for fault in FAULTS])
def test_a_fault_is_named_with_its_path_and_what_would_be_right(spec: PolicySpec, path: str, remedy: str) -> None:
    """D03, D28"""
    problems = compile_policy(META, spec, GATEWAY)
    assert isinstance(problems, tuple)
    assert [path] == [problem.path for problem in problems]
    assert remedy in problems[0].hint


def test_every_source_is_compiled_as_it_was_written_but_for_a_headers_case() -> None:
    nothing = Nothing()
    sources = {
        HeaderSource("X-A"): HeaderKey("x-a"),
        CookieSource("SID"): CookieKey("SID"),
        QuerySource("Key"): QueryKey("Key"),
        ClaimSource(r"a\.b.c"): ClaimKey(("a.b", "c")),
        PathSource("Org"): PathKey("Org"),
        PrincipalSource(): PrincipalKey(nothing),
        HostSource(): HostKey(nothing),
        MethodSource(): MethodKey(nothing),
    }
    spec = replace(with_rule(key=tuple(sources)), routes=(RouteSpec("/o/{Org}/*"), RouteSpec("/{Org}")))
    assert compiled(spec, replace(GATEWAY, withheld_headers=frozenset())).rules[0].key == tuple(sources.values())


def test_the_scope_is_only_in_the_document_where_it_is_not_the_default() -> None:
    assert compiled(with_rule()).rules[0].scope is None
    assert compiled(with_rule(scope=Scope.INSTANCE)).rules[0].scope is Scope.INSTANCE


def test_a_plan_may_have_a_calendar_where_the_rule_has_a_period() -> None:
    hourly = LimitSpec(5, 3_600_000_000, algorithm=Algorithm.FIXED_WINDOW)
    monthly = LimitSpec(5, algorithm=Algorithm.FIXED_WINDOW, calendar=Calendar.MONTH)
    plans = PlansSpec(ClaimSource("plan"), (("gold", monthly),))
    (rule,) = compiled(with_rule(limit=hourly, plans=plans)).rules
    assert rule.plans is not None
    assert rule.plans.source == ClaimKey(("plan",))
    assert [str(limit.algorithm) for limit in rule.plans.limits.values()] == ["FixedWindow"]


@pytest.mark.requirement("R22")
@pytest.mark.parametrize(
    ("failure", "milli", "split"),
    [
        (failing(FailureMode.OPEN), None, False),
        (failing(FailureMode.LOCAL), None, True),
        (failing(FailureMode.LOCAL, Share.SPLIT), None, True),
        (failing(FailureMode.LOCAL, Share.FULL), 1000, False),
        (failing(FailureMode.LOCAL, Share.FULL, "2.5"), 2500, False),
    ],
    ids=["open", "local", "split", "full", "factor"],
)
def test_a_share_is_split_or_so_many_thousandths(failure: StoreFailureSpec, milli: int | None, *, split: bool) -> None:
    (rule,) = compiled(with_rule(on_store_failure=failure)).rules
    assert (rule.on_store_failure, rule.local_factor_milli, rule.is_split) == (failure.mode, milli, split)
