# SPDX-License-Identifier: Apache-2.0
"""One policy to its part of the ruleset: defaults from the gateway filled in, raw values hashed, names in lower case.

What may be wrong with a policy is `policy_checks`' business; nothing that passed it can fail here.
"""

from __future__ import annotations

import hashlib
import ipaddress

from weir_operator.domain.gateways import ANY_HOST, Gateway
from weir_operator.domain.limit_checks import limit_of
from weir_operator.domain.limits import FailureMode, Scope, Share
from weir_operator.domain.override_numbers import parse_factor
from weir_operator.domain.policy_checks import check_policy
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import (
    AddressExempt,
    Cost,
    HeaderExempt,
    HeaderValues,
    Match,
    Plans,
    Policy,
    Response,
    Route,
    Rule,
)
from weir_operator.domain.sources import (
    ClaimKey,
    ClientIPKey,
    CookieKey,
    HeaderKey,
    HostKey,
    KeyPart,
    MethodKey,
    Nothing,
    PathKey,
    Prefixes,
    PrincipalKey,
    QueryKey,
    parse_claim,
)
from weir_operator.domain.specs import (
    AddressExemption,
    ClaimSource,
    ClientIPSource,
    CookieSource,
    CostSpec,
    Exemption,
    HeaderSource,
    HostSource,
    KeySource,
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
from weir_operator.domain.versions import with_versions

WHOLE_MILLI = 1000


def sha256(value: str) -> str:
    """SHA-256 of the UTF-8 bytes of `value`, in hexadecimal."""
    return hashlib.sha256(value.encode()).hexdigest()


def compile_policy(meta: Meta, spec: PolicySpec, gateway: Gateway) -> Policy | tuple[Problem, ...]:
    """The compiled policy, or every problem that it has."""
    problems = check_policy(meta, spec, gateway)
    return tuple(problems) if problems else _lower(meta, spec, gateway)


def _lower(meta: Meta, spec: PolicySpec, gateway: Gateway) -> Policy:
    allowed = gateway.hosts_of(meta.namespace)
    default = () if ANY_HOST in allowed else tuple(sorted(set(allowed)))
    policy = Policy(
        id=meta.id,
        generation=meta.generation,
        match=Match(tuple(dict.fromkeys(spec.hosts)) or default, tuple(_lower_route(route) for route in spec.routes)),
        exempt=tuple(_lower_exemption(entry) for entry in spec.exempt),
        rules=tuple(_lower_rule(rule, spec) for rule in spec.rules),
        response=Response(spec.headers, spec.documentation),
    )
    return with_versions(policy)


def _lower_route(route: RouteSpec) -> Route:
    return Route(route.path, tuple(sorted(set(route.methods))))


def _lower_exemption(entry: Exemption) -> AddressExempt | HeaderExempt:
    if isinstance(entry, AddressExemption):
        return AddressExempt(tuple(sorted({str(ipaddress.ip_network(cidr)) for cidr in entry.cidrs})))
    values = tuple(sorted({f"sha256:{sha256(value)}" for value in entry.values}))
    return HeaderExempt(HeaderValues(entry.name.lower(), values))


def _lower_rule(rule: RuleSpec, spec: PolicySpec) -> Rule:
    return Rule(
        name=rule.name,
        mode=spec.mode,
        key=tuple(_lower_source(source) for source in rule.key),
        on_missing_key=rule.on_missing_key,
        limit=limit_of(rule.limit),
        plans=_lower_plans(rule.plans) if rule.plans else None,
        cost=tuple(_lower_cost(entry) for entry in rule.cost),
        on_store_failure=rule.on_store_failure.mode,
        visibility=rule.visibility,
        code=rule.code,
        scope=None if rule.scope is Scope.REGION else rule.scope,
        local_factor_milli=_lower_share(rule.on_store_failure),
    )


def _lower_share(failure: StoreFailureSpec) -> int | None:
    if failure.mode is not FailureMode.LOCAL or failure.share is not Share.FULL:
        return None
    milli = WHOLE_MILLI if failure.factor is None else parse_factor(failure.factor)
    if isinstance(milli, int):
        return milli
    raise AssertionError(failure)  # refused by check_rules


def _lower_source(source: KeySource) -> KeyPart:  # noqa: PLR0911  a table of cases reads best as one
    match source:
        case HeaderSource() | ClaimSource():
            return _lower_plan_source(source)
        case CookieSource(name):
            return CookieKey(name)
        case QuerySource(name):
            return QueryKey(name)
        case ClientIPSource(ipv4, ipv6):
            return ClientIPKey(Prefixes(ipv4, ipv6))
        case PrincipalSource():
            return PrincipalKey(Nothing())
        case PathSource(name):
            return PathKey(name)
        case HostSource():
            return HostKey(Nothing())
        case MethodSource():
            return MethodKey(Nothing())


def _lower_plan_source(source: HeaderSource | ClaimSource) -> HeaderKey | ClaimKey:
    if isinstance(source, HeaderSource):
        return HeaderKey(source.name.lower())
    members = parse_claim(source.claim)
    if members is None:  # refused by check_source
        raise AssertionError(source)
    return ClaimKey(members)


def _lower_plans(plans: PlansSpec) -> Plans:
    limits = {name: limit_of(limit) for name, limit in plans.limits}
    return Plans(_lower_plan_source(plans.source), limits)


def _lower_cost(entry: CostSpec) -> Cost:
    return Cost(_lower_route(entry.route), entry.cost)
