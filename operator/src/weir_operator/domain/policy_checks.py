# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a policy beyond its schema: what it says about the gateway, hosts, routes and exemptions.

Every check collects; none stops at its first finding. `rule_checks` has what concerns single rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import ANY_HOST, Gateway
from weir_operator.domain.matching import Network, check_host, covers_everybody, host_covers, parse_network
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.rollout_checks import check_rollout
from weir_operator.domain.rule_checks import check_route, check_rules
from weir_operator.domain.ruleset import HeaderExempt, Policy
from weir_operator.domain.source_checks import check_header, check_values, is_readable
from weir_operator.domain.specs import Exemption, HeaderExemption, Meta, PolicySpec, RouteSpec


def check_policy(meta: Meta, spec: PolicySpec, gateway: Gateway) -> list[Problem]:
    """Every problem of the policy on this gateway; none = it can be compiled."""
    return [
        *check_namespace(meta.namespace, gateway),
        *_check_hosts(spec.hosts, meta.namespace, gateway),
        *_check_routes(spec.routes),
        *_check_exempt(spec.exempt, gateway),
        *check_rules(spec, gateway),
        *check_rollout(spec),
    ]


def still_allowed(piece: Policy, namespace: str, gateway: Gateway) -> bool:
    """Whether the gateway's settings, as they are now, allow an already compiled policy.

    How long the gateway holds requests does not matter: the limiter refuses whoever would have to wait for longer.
    """
    # A piece without hosts is for every host; a spec without hosts is only for those that the namespace may use.
    hosts = piece.match.hosts or (ANY_HOST,)
    sources = [part for rule in piece.rules for part in rule.key]
    sources += [rule.plans.source for rule in piece.rules if rule.plans]
    headers = [entry.header.name for entry in piece.exempt if isinstance(entry, HeaderExempt)]
    return (
        gateway.admits(namespace)
        and all(_is_covered(host, gateway.hosts_of(namespace)) for host in hosts)
        and all(is_readable(source, gateway) for source in sources)
        and not any(check_header(header, "", gateway) for header in headers)
    )


def check_namespace(namespace: str, gateway: Gateway) -> list[Problem]:
    """Whether the namespace may attach to the gateway at all."""
    if gateway.admits(namespace):
        return []
    message = f'gateway "{gateway.name}" does not admit the namespace "{namespace}"'
    hint = "its administrator lists namespaces in allowedNamespaces"
    return [Problem("spec.gateway", Reason.NAMESPACE_NOT_ALLOWED, message, hint)]


def _check_hosts(hosts: Sequence[str], namespace: str, gateway: Gateway) -> list[Problem]:
    allowed = gateway.hosts_of(namespace)
    if not allowed:
        message = f'gateway "{gateway.name}" lets the namespace "{namespace}" use no host'
        hint = "its administrator lists the hosts of each namespace"
        return [Problem("spec.match.hosts", Reason.HOST_NOT_ALLOWED, message, hint)]
    problems: list[Problem] = []
    for index, host in enumerate(hosts):
        path = f"spec.match.hosts[{index}]"
        malformed = check_host(host, path)
        problems += malformed
        if not malformed and not _is_covered(host, allowed):
            message = f'gateway "{gateway.name}" does not let the namespace "{namespace}" use the host "{host}"'
            problems.append(Problem(path, Reason.HOST_NOT_ALLOWED, message, f"allowed: {', '.join(allowed)}"))
    return problems


def _is_covered(host: str, allowed: Sequence[str]) -> bool:
    return any(host_covers(pattern, host) for pattern in allowed)


def _check_routes(routes: Sequence[RouteSpec]) -> list[Problem]:
    return [p for index, route in enumerate(routes) for p in check_route(route, f"spec.match.routes[{index}]")]


def _check_exempt(exempt: Sequence[Exemption], gateway: Gateway) -> list[Problem]:
    problems: list[Problem] = []
    networks: list[Network] = []
    for index, entry in enumerate(exempt):
        path = f"spec.exempt[{index}]"
        if isinstance(entry, HeaderExemption):
            problems += check_header(entry.name, f"{path}.header.name", gateway)
            problems += check_values(entry.values, f"{path}.header.in")
            continue
        if not entry.cidrs:
            problems.append(invalid(f"{path}.clientIP", "is empty", "write at least one network"))
        for place, cidr in enumerate(entry.cidrs):
            parsed = parse_network(cidr, f"{path}.clientIP[{place}]")
            if isinstance(parsed, Problem):
                problems.append(parsed)
            else:
                networks.append(parsed)
    if covers_everybody(networks):
        message = "exempts every address, so the policy would match nothing"
        problems.append(invalid("spec.exempt", message, "leave a network out, or set mode: Disabled"))
    return problems
