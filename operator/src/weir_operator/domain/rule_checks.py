# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the rules of a policy: their names, limits, plans and costs.

Ranges are checked again although the API server has done so: a ruleset that a limiter would refuse must never be
compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir_operator.domain.algorithms import Limit
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limit_checks import parse_limit
from weir_operator.domain.limits import FailureMode, Scope, Share
from weir_operator.domain.matching import PathPattern, check_methods, methods_with_head, parse_path
from weir_operator.domain.override_numbers import parse_factor
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.source_checks import Routes, check_key, check_source, is_header_value
from weir_operator.domain.specs import HeaderSource, PolicySpec, RouteSpec, RuleSpec

Limits = Sequence[tuple[str, Limit]]


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
        yield from check_key(rule.key, f"{path}.key", gateway, routes)
        problems, limits = _parse_limits(rule, path, gateway)
        yield from problems
        yield from _check_plans(rule, path, gateway)
        yield from _check_costs(rule, path, routes, limits)
        yield from _check_store_failure(rule, f"{path}.onStoreFailure")


def _parse_limits(rule: RuleSpec, path: str, gateway: Gateway) -> tuple[list[Problem], Limits]:
    """What is wrong with the rule's limits, and the good ones with their places."""
    problems: list[Problem] = []
    limits: list[tuple[str, Limit]] = []
    places = [(f"{path}.limit", rule.limit)]
    for name, spec in rule.plans.limits if rule.plans else ():
        place = f"{path}.plans.limits.{name}"
        if spec.algorithm is rule.limit.algorithm:
            places.append((place, spec))
        else:
            message = f"{spec.algorithm} is not the algorithm of the rule's limit"
            hint = f"leave it out: all plans of a rule count as its limit does, here {rule.limit.algorithm}"
            problems.append(invalid(f"{place}.algorithm", message, hint))
    for place, spec in places:
        parsed = parse_limit(spec, place, gateway)
        if isinstance(parsed, tuple):
            problems += parsed
        else:
            limits.append((place, parsed))
    return problems, limits


def _check_plans(rule: RuleSpec, path: str, gateway: Gateway) -> Iterator[Problem]:
    if rule.plans is None:
        return
    yield from check_source(rule.plans.source, f"{path}.plans.from", gateway)
    if not rule.plans.limits:
        yield invalid(f"{path}.plans.limits", "is empty", "write the limit of at least one plan, or leave plans out")
    by_header = isinstance(rule.plans.source, HeaderSource)
    for name, _ in rule.plans.limits:
        if not (is_header_value(name) if by_header else name):
            hint = f"a plan's name is the value of the {'header, without space around it' if by_header else 'claim'}"
            yield invalid(f"{path}.plans.limits.{name}", "is a name that the source can never give", hint)


def _check_costs(rule: RuleSpec, path: str, routes: Routes, limits: Limits) -> Iterator[Problem]:
    earlier: list[tuple[int, RouteSpec, PathPattern]] = []
    for index, entry in enumerate(rule.cost):
        here = f"{path}.cost[{index}]"
        yield from _check_cost(entry.cost, limits, f"{here}.cost")
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


def _check_store_failure(rule: RuleSpec, path: str) -> Iterator[Problem]:
    failure = rule.on_store_failure
    local = failure.mode is FailureMode.LOCAL
    if local and rule.scope is Scope.INSTANCE:
        hint = "leave onStoreFailure out: the rule is counted in each limiter's memory whatever the store does"
        yield invalid(f"{path}.mode", "Local means nothing with scope Instance", hint)
    if failure.share is not None and not local:
        hint = "leave it out, or write mode: Local"
        yield invalid(f"{path}.share", f"means nothing with mode {failure.mode}", hint)
    if failure.factor is None:
        return
    if failure.share is not Share.FULL:
        hint = "leave it out, or write share: Full, which it multiplies"
        yield invalid(f"{path}.factor", "means nothing without share Full", hint)
    parsed = parse_factor(failure.factor, f"{path}.factor")
    if isinstance(parsed, Problem):
        yield parsed


def _check_cost(cost: int, limits: Limits, path: str) -> Iterator[Problem]:
    if cost < 0:
        yield invalid(path, f"{cost} is negative", "write 0 for free requests")
    for place, limit in limits:
        most = limit.largest_cost
        if cost > most:
            message = f"{cost} is more than {place} can ever give ({most}), so such a request could never pass"
            yield invalid(path, message, f"write at most {most}, or a larger limit there")


def _overlap(route: RouteSpec, pattern: PathPattern, other: RouteSpec, other_pattern: PathPattern | Problem) -> bool:
    if isinstance(other_pattern, Problem):
        return True  # that route has its own problem; say nothing on top
    mine, theirs = methods_with_head(route.methods), methods_with_head(other.methods)
    return (not mine or not theirs or not mine.isdisjoint(theirs)) and pattern.overlaps(other_pattern)


def _methods_cover(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    return not mine or (bool(theirs) and methods_with_head(theirs) <= methods_with_head(mine))


def check_route(route: RouteSpec, path: str) -> list[Problem]:
    """What is wrong with a route's path and methods."""
    parsed = parse_path(route.path, f"{path}.path")
    return [*([parsed] if isinstance(parsed, Problem) else []), *check_methods(route.methods, f"{path}.methods")]
