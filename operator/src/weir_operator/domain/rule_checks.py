# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the rules of a policy: their keys, numbers, plans and costs, and the headers they read.

Ranges are checked again although the API server has done so: a ruleset that a limiter would refuse must never be
compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import TokenBucket, check_bucket
from weir_operator.domain.matching import PathPattern, check_methods, parse_path
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.specs import HeaderSource, KeySource, LimitSpec, PolicySpec, RouteSpec, RuleSpec

FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")


def check_rules(spec: PolicySpec, gateway: Gateway) -> Iterator[Problem]:
    """Every problem of the policy's rules."""
    if not spec.rules:
        yield invalid("spec.rules", "is empty, so the policy would limit nothing", "write at least one rule")
    names = [rule.name for rule in spec.rules]
    routes = [(route, parse_path(route.path, "")) for route in spec.routes]
    for index, rule in enumerate(spec.rules):
        if rule.name in names[:index]:
            hint = "each rule of a policy needs its own name: it is the identity of the counter"
            yield invalid(f"spec.rules[{index}].name", f'"{rule.name}" is taken by an earlier rule', hint)
        path = f"spec.rules[{rule.name}]"
        yield from _check_key(rule.key, f"{path}.key", gateway)
        yield from _check_limits(rule, path, gateway)
        yield from _check_costs(rule, path, routes)


def _check_key(key: Sequence[KeySource], path: str, gateway: Gateway) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, source in enumerate(key):
        here = f"{path}[{index}]"
        if isinstance(source, HeaderSource):
            name = f"header {source.name.lower()}"
            yield from check_header(source.name, f"{here}.header", gateway)
        else:
            name = "clientIP"
            for bits, most, member in (
                (source.ipv4_prefix, 32, "ipv4Prefix"),
                (source.ipv6_prefix, 128, "ipv6Prefix"),
            ):
                if not 0 <= bits <= most:
                    yield invalid(f"{here}.clientIP.{member}", f"{bits} is out of range", f"write 0 to {most}")
        if name in seen:
            yield invalid(here, f"{name} is already part of this key", "name each source once")
        seen.add(name)


def _check_limits(rule: RuleSpec, path: str, gateway: Gateway) -> Iterator[Problem]:
    yield from check_bucket(bucket_of(rule.limit), f"{path}.limit")
    if rule.plans is None:
        return
    yield from check_header(rule.plans.header, f"{path}.plans.from.header", gateway)
    if not rule.plans.limits:
        yield invalid(f"{path}.plans.limits", "is empty", "write the limit of at least one plan, or leave plans out")
    for name, limit in rule.plans.limits:
        if not is_header_value(name):
            hint = "a plan's name is the value of the header, without space around it"
            yield invalid(f"{path}.plans.limits.{name}", "is a name that the header can never have", hint)
        yield from check_bucket(bucket_of(limit), f"{path}.plans.limits.{name}")


def _check_costs(
    rule: RuleSpec, path: str, routes: Sequence[tuple[RouteSpec, PathPattern | Problem]]
) -> Iterator[Problem]:
    earlier: list[tuple[int, RouteSpec, PathPattern]] = []
    for index, entry in enumerate(rule.cost):
        here = f"{path}.cost[{index}]"
        yield from _check_cost(entry.cost, rule, path, f"{here}.cost")
        yield from check_route(entry.route, f"{here}.match")
        pattern = parse_path(entry.route.path, "")
        if isinstance(pattern, Problem):
            continue
        if routes and not any(_overlap(entry.route, pattern, route, other) for route, other in routes):
            yield invalid(
                f"{here}.match",
                "can never match: no route of spec.match.routes reaches it",
                "write a path that one of them matches",
            )
        for place, route, other in earlier:
            if other.covers(pattern) and _methods_cover(route.methods, entry.route.methods):
                yield invalid(
                    f"{here}.match", f"can never match: cost[{place}] takes it first", "put it before that one"
                )
                break
        earlier.append((index, entry.route, pattern))


def _check_cost(cost: int, rule: RuleSpec, path: str, here: str) -> Iterator[Problem]:
    if cost < 0:
        yield invalid(here, f"{cost} is negative", "write 0 for free requests")
    limits = [(f"{path}.limit", rule.limit)]
    limits += [(f"{path}.plans.limits.{name}", limit) for name, limit in (rule.plans.limits if rule.plans else ())]
    for place, limit in limits:
        burst = bucket_of(limit).burst
        if cost > burst:
            message = f"{cost} is more than the burst of {burst} ({place}), so such a request could never pass"
            yield invalid(here, message, f"write at most {burst}, or a larger burst there")


def _overlap(route: RouteSpec, pattern: PathPattern, other: RouteSpec, other_pattern: PathPattern | Problem) -> bool:
    if isinstance(other_pattern, Problem):
        return True  # that route has its own problem; say nothing on top
    common = not route.methods or not other.methods or set(route.methods) & set(other.methods)
    return bool(common) and pattern.overlaps(other_pattern)


def _methods_cover(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    return not mine or (bool(theirs) and set(theirs) <= set(mine))


def bucket_of(limit: LimitSpec) -> TokenBucket:
    """The limit with its default filled in: a burst as large as `requests`."""
    burst = limit.requests if limit.burst is None else limit.burst
    return TokenBucket(limit.requests, limit.period_us, burst, limit.algorithm)


def check_route(route: RouteSpec, path: str) -> list[Problem]:
    """What is wrong with a route's path and methods."""
    parsed = parse_path(route.path, f"{path}.path")
    return [*([parsed] if isinstance(parsed, Problem) else []), *check_methods(route.methods, f"{path}.methods")]


def check_values(values: Sequence[str], path: str) -> list[Problem]:
    """What is wrong with a list of header values."""
    # The value itself may be a secret and is not quoted. Envoy strips the space around a header's value.
    if not values:
        return [invalid(path, "is empty", "write at least one value")]
    hint = "write the value without space around it; an empty value counts as missing"
    return [
        invalid(f"{path}[{index}]", "is a value that no header can have", hint)
        for index, value in enumerate(values)
        if not is_header_value(value)
    ]


def is_header_value(value: str) -> bool:
    """Whether a request header can have this value, as the limiter sees it."""
    return bool(value) and value == value.strip(" \t") and not any(ord(c) < 32 or ord(c) == 127 for c in value)  # noqa: PLR2004


def check_header(name: str, path: str, gateway: Gateway) -> list[Problem]:
    """Whether a limiter of the gateway can read the header."""
    if not FIELD_NAME.fullmatch(name):
        return [invalid(path, f'"{name}" is no header name', 'write a name like "x-api-key"')]
    if name.lower() in gateway.withheld_headers:
        message = f'gateway "{gateway.name}" withholds the header "{name.lower()}" from its limiters'
        return [invalid(path, message, "use another header, or ask its administrator to forward this one")]
    if name.lower() == "host":
        return [invalid(path, "the host never reaches a limiter as a header", "use spec.match.hosts")]
    return []
