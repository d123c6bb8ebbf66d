# SPDX-License-Identifier: Apache-2.0
"""The rule budget: how many rules one request may meet over all policies together, and who has to give way.

Exact: a request counts, not a sum over pairs of policies. Patterns are walked segment by segment, so that only
requests are looked at that meet as many policies as any of their neighbours; a host is walked like a path, from its
last label to its first.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import ANY_HOST
from weir_operator.domain.limits import Mode
from weir_operator.domain.matching import PathPattern, parse_path
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Policy, Route

# Patterns with parameters at different places can meet in more ways than can be walked. Beyond this many steps what is
# left is taken to fit: it would be wrong to refuse a policy for a request that nobody has found.
MAX_STEPS = 3_000_000
NAMED = 8  # policies named in a message; with a budget of 8 rules there are not more
_EVERYTHING = PathPattern((), open_ended=True)
_ANY_METHOD = ""
_SOME_SEGMENT = "x"


@dataclass(frozen=True, slots=True)
class Applicant:
    """A policy that wants a place. `fixed`: it stays whatever the budget says, because it is running already."""

    policy: Policy
    created_at: int
    fixed: bool = False

    @property
    def rank(self) -> tuple[int, str]:
        """Who came first has the first claim."""
        return self.created_at, self.policy.id


def over_budget(applicants: Iterable[Applicant], budget: int) -> dict[str, Problem]:
    """The policies that find no place beside those that came before them, by id, each with what it is told.

    The order of `applicants` does not matter. A policy that is refused takes no place from those after it.
    """
    ranked = sorted(applicants, key=lambda applicant: applicant.rank)
    weights = [sum(rule.mode is not Mode.DISABLED for rule in applicant.policy.rules) for applicant in ranked]
    crowds = _Walk([applicant.policy for applicant in ranked], weights, budget).crowds()
    places: dict[int, list[_Crowd]] = {}
    for crowd in crowds:
        for index in crowd.members:
            places.setdefault(index, []).append(crowd)
    refused: dict[str, Problem] = {}
    for index in sorted(places):
        policy, weight = ranked[index].policy, weights[index]
        full = next((crowd for crowd in places[index] if crowd.taken + weight > budget), None)
        if full is not None and weight and not ranked[index].fixed:
            refused[policy.id] = _problem(full, weight, [ranked[i].policy.id for i in full.placed], budget)
            continue
        for crowd in places[index]:
            crowd.taken += weight
            crowd.placed.append(index)
    return refused


def _problem(crowd: _Crowd, weight: int, others: Sequence[str], budget: int) -> Problem:
    if not others:
        message = f"has {weight} rules, and a request may meet at most {budget} on this gateway"
        hint = "write fewer rules, or several policies for different routes"
        return Problem("spec.rules", Reason.BUDGET_EXCEEDED, message, hint)
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    message = (
        f"{crowd.request} would meet {crowd.taken + weight} rules, and at most {budget} are allowed on this gateway; "
        f"{crowd.taken} of them are of older policies: {', '.join(sorted(others)[:NAMED])}{more}"
    )
    hint = "match fewer hosts or routes, or write fewer rules"
    return Problem("spec.match", Reason.BUDGET_EXCEEDED, message, hint)


@dataclass(slots=True)
class _Crowd:
    """The policies that one request meets, when together they have more rules than allowed, by index in rank."""

    request: str
    members: tuple[int, ...]
    taken: int = 0
    placed: list[int] = field(default_factory=list)


class _Entry(NamedTuple):
    """A pattern on the walk; `owner` is the policy behind it, of `weight` rules, `tag` tells its routes apart."""

    segments: tuple[str | None, ...]
    open_ended: bool
    owner: int
    weight: int
    tag: int = 0


class _Walk:
    """The search for the crowds among some policies."""

    def __init__(self, policies: Sequence[Policy], weights: Sequence[int], budget: int) -> None:
        self._budget = budget
        self._weights = weights
        self._methods: list[frozenset[str]] = []  # by tag of a path's entry
        self._hosts: dict[int, list[_Entry]] = {}
        self._paths: dict[int, list[_Entry]] = {}
        self._steps = 0
        for index, (policy, weight) in enumerate(zip(policies, weights, strict=True)):
            if weight:
                self._add(index, policy)

    def crowds(self) -> list[_Crowd]:
        """Every crowd that is not a part of another one (and some that are), in a fixed order."""
        found: dict[tuple[int, ...], _Crowd] = {}
        seen: set[tuple[int, ...]] = set()
        for labels, alive in self._ends([entry for index in self._suspects() for entry in self._hosts[index]]):
            members = tuple(sorted({entry.owner for entry in alive}))
            if members not in seen:
                seen.add(members)
                for crowd in self._on_host(".".join(reversed(labels)) or ANY_HOST, members):
                    found.setdefault(crowd.members, crowd)
        return [found[members] for members in sorted(found)]

    def _add(self, index: int, policy: Policy) -> None:
        weight = self._weights[index]
        hosts, routes = _hosts(policy), _routes(policy)
        first = len(self._methods)
        self._hosts[index] = [_Entry(host.segments, host.open_ended, index, weight) for host in hosts]
        self._paths[index] = [
            _Entry(path.segments, path.open_ended, index, weight, tag) for tag, (path, _) in enumerate(routes, first)
        ]
        self._methods += [methods for _, methods in routes]

    def _suspects(self) -> list[int]:
        """The policies that would be in a crowd if all saw the same hosts; the others need no second look."""
        everybody = [entry for entries in self._paths.values() for entry in entries]
        suspects = {entry.owner for _, alive in self._ends(everybody) for entry in alive}
        finished, self._steps = self._steps < MAX_STEPS, 0
        return sorted(suspects if finished else self._paths)

    def _on_host(self, host: str, members: Sequence[int]) -> Iterator[_Crowd]:
        """The crowds among policies that all see this host."""
        for segments, alive in self._ends([entry for index in members for entry in self._paths[index]]):
            met = [(entry.owner, self._methods[entry.tag]) for entry in alive]
            for method in sorted(set().union(*(methods for _, methods in met))) or [_ANY_METHOD]:
                crowd = tuple(sorted({index for index, methods in met if not methods or method in methods}))
                if sum(self._weights[index] for index in crowd) > self._budget:
                    request = f"{method or 'a request for'} {host}/{'/'.join(segments)}"
                    yield _Crowd(request, crowd)

    def _ends(self, entries: Sequence[_Entry]) -> Iterator[tuple[list[str], Sequence[_Entry]]]:
        """Where to look: segments that as many patterns match as any near them, and those patterns.

        Left out is whatever cannot be a crowd.
        """
        stack: list[tuple[list[str], Sequence[_Entry]]] = [([], entries)]
        while stack and self._steps < MAX_STEPS:
            segments, alive = stack.pop()
            self._steps += len(alive)
            depth = len(segments)
            if sum({entry.owner: entry.weight for entry in alive}.values()) <= self._budget:
                continue
            longer = [entry for entry in alive if len(entry.segments) > depth]
            ended = [entry for entry in alive if len(entry.segments) <= depth]
            lasting = [entry for entry in ended if entry.open_ended]
            if not longer or len(lasting) < len(ended):
                yield segments, ended
            branches = self._branches(longer, lasting, depth)
            stack += [([*segments, segment], branch) for segment, branch in branches]

    def _branches(
        self, longer: Sequence[_Entry], lasting: Sequence[_Entry], depth: int
    ) -> Iterator[tuple[str, Sequence[_Entry]]]:
        """What is alive after each next segment. One that no pattern names matters only where none names any."""
        named: dict[str, list[_Entry]] = {}
        common = list(lasting)
        for entry in longer:
            segment = entry.segments[depth]
            (common if segment is None else named.setdefault(segment, [])).append(entry)
        if not named and len(common) > len(lasting):
            yield _SOME_SEGMENT, common
        spare = self._budget - sum(entry.weight for entry in common)
        for segment in sorted(named, reverse=True):
            branch = named[segment]
            if sum(entry.weight for entry in branch) > spare:
                yield segment, [*branch, *common]


def _hosts(policy: Policy) -> list[PathPattern]:
    return [_host_pattern(host) for host in policy.match.hosts] or [_EVERYTHING]


def _routes(policy: Policy) -> list[tuple[PathPattern, frozenset[str]]]:
    """The policy's path patterns, each with its methods; none = all."""
    return [(_path_pattern(route), _methods(route)) for route in policy.match.routes] or [(_EVERYTHING, frozenset())]


def _methods(route: Route) -> frozenset[str]:
    return frozenset((*route.methods, "HEAD") if "GET" in route.methods else route.methods)  # GET covers HEAD


@functools.lru_cache(maxsize=65_536)  # arbitrary: all patterns of a large cluster, since most of them stay the same
def _host_pattern(host: str) -> PathPattern:
    if host == ANY_HOST:
        return _EVERYTHING
    labels = tuple(reversed(host.removeprefix("*.").split(".")))
    return (
        PathPattern((*labels, None), open_ended=True)
        if host.startswith("*.")
        else PathPattern(labels, open_ended=False)
    )


@functools.lru_cache(maxsize=65_536)
def _path_pattern(route: Route) -> PathPattern:
    pattern = parse_path(route.path, "")
    return pattern if isinstance(pattern, PathPattern) else _EVERYTHING  # compiled routes are well-formed
