# SPDX-License-Identifier: Apache-2.0
"""One policy to its part of the ruleset: defaults from the gateway filled in, raw values hashed, names in lower case.

What may be wrong with a policy is `policy_checks`' business; nothing that passed it can fail here.
"""

from __future__ import annotations

import hashlib
import ipaddress

from weir_operator.domain.gateways import ANY_HOST, Gateway
from weir_operator.domain.policy_checks import check_policy
from weir_operator.domain.problems import Problem
from weir_operator.domain.rule_checks import bucket_of
from weir_operator.domain.ruleset import (
    AddressExempt,
    ClientIPKey,
    Cost,
    HeaderExempt,
    HeaderKey,
    HeaderValues,
    Match,
    Plans,
    PlanSource,
    Policy,
    Prefixes,
    Response,
    Route,
    Rule,
)
from weir_operator.domain.specs import (
    AddressExemption,
    CostSpec,
    Exemption,
    HeaderSource,
    KeySource,
    Meta,
    PlansSpec,
    PolicySpec,
    RouteSpec,
    RuleSpec,
)


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
    return Policy(
        id=meta.id,
        generation=meta.generation,
        match=Match(tuple(dict.fromkeys(spec.hosts)) or default, tuple(_lower_route(route) for route in spec.routes)),
        exempt=tuple(_lower_exemption(entry) for entry in spec.exempt),
        rules=tuple(_lower_rule(rule, spec) for rule in spec.rules),
        response=Response(spec.headers, spec.documentation),
    )


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
        limit=bucket_of(rule.limit),
        plans=_lower_plans(rule.plans) if rule.plans else None,
        cost=tuple(_lower_cost(entry) for entry in rule.cost),
        on_store_failure=rule.on_store_failure,
        visibility=rule.visibility,
        code=rule.code,
    )


def _lower_source(source: KeySource) -> HeaderKey | ClientIPKey:
    if isinstance(source, HeaderSource):
        return HeaderKey(source.name.lower())
    return ClientIPKey(Prefixes(source.ipv4_prefix, source.ipv6_prefix))


def _lower_plans(plans: PlansSpec) -> Plans:
    return Plans(PlanSource(plans.header.lower()), {name: bucket_of(limit) for name, limit in plans.limits})


def _lower_cost(entry: CostSpec) -> Cost:
    return Cost(_lower_route(entry.route), entry.cost)
