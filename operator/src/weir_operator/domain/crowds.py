# SPDX-License-Identifier: Apache-2.0
"""Which policies meet in one request, where together they have more rules than a request may meet.

Exact: a request counts, not a sum over pairs of policies. Patterns are walked segment by segment, so that only requests
are looked at that meet as many policies as any of their neighbours; a host is walked like a path, from its last label
to its first.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weir_operator.domain.gateways import ANY_HOST
from weir_operator.domain.matching import PathPattern, methods_with_head, parse_path
from weir_operator.domain.ruleset import Policy, Route

# Patterns with parameters at different places can meet in more ways than can be walked, and compiling must not keep the
# operator from its other work. Beyond so many steps (a few microseconds each) what is left of a walk is taken to fit:
# it would be wrong to refuse a policy for a request that nobody has found. Each host's paths have an allowance of their
# own, so that one team's patterns do not use up what another team's hosts need; ordinary ones take a few dozen steps.
HOST_STEPS = 100_000
MAX_STEPS = 500_000  # over the paths of all hosts, those with the fewest patterns first
_EVERYTHING = PathPattern((), open_ended=True)
_ANY_METHOD = ""
_SOME_SEGMENT = "x"


@dataclass(frozen=True, slots=True)
class Crowd:
    """The policies that one request meets, by their places in the list; `request` is it, for people."""

    request: str
    members: tuple[int, ...]


def find_crowds(policies: Sequence[Policy], weights: Sequence[int], budget: int) -> list[Crowd]:
    """Every crowd of more than `budget` rules that is no part of another one (and some that are), in a fixed order.

    `weights` gives how many rules of each policy count; policies of which none does are in no crowd.
    """
    return _Walk(policies, weights, budget).crowds()


class _Entry(NamedTuple):
    """A pattern on the walk; `owner` is the policy behind it, of `weight` rules, `tag` tells its routes apart."""

    segments: tuple[str | None, ...]
    open_ended: bool
    owner: int
    weight: int
    tag: int = 0


class _Fork(NamedTuple):
    """What the patterns that are alive after some segments say about the next one."""

    ended: list[_Entry]
    """They match here and no longer."""
    lasting: list[_Entry]
    """They match here and whatever follows."""
    unnamed: list[_Entry]
    """They go on with any segment."""
    named: dict[str, list[_Entry]]
    """They go on with this segment."""


class _Walk:
    """The search for the crowds among some policies."""

    def __init__(self, policies: Sequence[Policy], weights: Sequence[int], budget: int) -> None:
        self._budget = budget
        self._weights = weights
        self._methods: list[frozenset[str]] = []  # by tag of a path's entry
        self._hosts: dict[int, list[_Entry]] = {}
        self._paths: dict[int, list[_Entry]] = {}
        self._left = 0  # steps of the walk that is under way
        for index, (policy, weight) in enumerate(zip(policies, weights, strict=True)):
            if weight:
                self._add(index, policy)

    def crowds(self) -> list[Crowd]:
        """Return what `find_crowds` does."""
        found: dict[tuple[int, ...], Crowd] = {}
        left = MAX_STEPS
        for host, members in self._hosts_to_walk():
            self._left = allowance = min(HOST_STEPS, left)
            for crowd in self._on_host(host, members):
                found.setdefault(crowd.members, crowd)
            left -= allowance - self._left
        return [found[members] for members in sorted(found)]

    def _hosts_to_walk(self) -> list[tuple[str, tuple[int, ...]]]:
        """One host for each set of policies that see the same hosts and may be a crowd, the easiest to walk first."""
        suspects = self._suspects()
        self._left = MAX_STEPS
        hosts: dict[tuple[int, ...], str] = {}
        for labels, alive in self._ends([entry for index in suspects for entry in self._hosts[index]]):
            members = tuple(sorted({entry.owner for entry in alive}))
            hosts.setdefault(members, ".".join(reversed(labels)) or ANY_HOST)
        size = {members: sum(len(self._paths[index]) for index in members) for members in hosts}
        return [(hosts[members], members) for members in sorted(hosts, key=lambda members: (size[members], members))]

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
        self._left = HOST_STEPS
        suspects = {entry.owner for _, alive in self._ends(everybody) for entry in alive}
        return sorted(suspects if self._left > 0 else self._paths)

    def _on_host(self, host: str, members: Sequence[int]) -> Iterator[Crowd]:
        """The crowds among policies that all see this host."""
        for segments, alive in self._ends([entry for index in members for entry in self._paths[index]]):
            met = [(entry.owner, self._methods[entry.tag]) for entry in alive]
            for method in sorted(set().union(*(methods for _, methods in met))) or [_ANY_METHOD]:
                crowd = tuple(sorted({index for index, methods in met if not methods or method in methods}))
                if sum(self._weights[index] for index in crowd) > self._budget:
                    request = f"{method or 'a request for'} {host}/{'/'.join(segments)}"
                    yield Crowd(request, crowd)

    def _ends(self, entries: Sequence[_Entry]) -> Iterator[tuple[list[str], Sequence[_Entry]]]:
        """Where to look: segments that as many patterns match as any near them, and those patterns.

        Left out is whatever cannot be a crowd.
        """
        # The patterns of a place are kept in two parts: those of its own, and those that it shares with its neighbours.
        stack: list[tuple[list[str], Sequence[_Entry], Sequence[_Entry]]] = [([], entries, ())]
        while stack and self._left > 0:
            segments, own, shared = stack.pop()
            alive = [*own, *shared]
            self._left -= len(alive)
            if _weigh(alive) <= self._budget:
                continue
            fork = _fork(alive, len(segments))
            goes_on = fork.named or fork.unnamed
            if fork.ended or not goes_on:
                yield segments, [*fork.ended, *fork.lasting]
            shared = [*fork.unnamed, *fork.lasting]
            if goes_on and not fork.named:  # a segment that no pattern names matters only where none names any
                stack.append(([*segments, _SOME_SEGMENT], (), shared))
                continue
            spare = self._budget - _weigh(fork.lasting) - self._most(fork.unnamed, len(segments) + 1)
            worthwhile = (segment for segment, group in fork.named.items() if _weigh(group) > spare)
            stack += [
                ([*segments, segment], fork.named[segment], shared) for segment in sorted(worthwhile, reverse=True)
            ]

    def _most(self, entries: Sequence[_Entry], depth: int) -> int:
        """A bound on the rules that any one request meets of these patterns, from this segment on."""
        bounds = [0]
        lasting = 0
        while entries:
            self._left -= len(entries)
            fork = _fork(entries, depth)
            lasting += _weigh(fork.lasting)
            bounds.append(lasting + _weigh(fork.ended))
            # Whatever is named here goes on somehow; at most all of one name together.
            lasting += max((_weigh(group) for group in fork.named.values()), default=0)
            bounds.append(lasting)
            entries, depth = fork.unnamed, depth + 1
        return max(bounds)


def _fork(alive: Iterable[_Entry], depth: int) -> _Fork:
    fork = _Fork([], [], [], {})
    for entry in alive:
        if len(entry.segments) <= depth:
            (fork.lasting if entry.open_ended else fork.ended).append(entry)
        elif (segment := entry.segments[depth]) is None:
            fork.unnamed.append(entry)
        else:
            fork.named.setdefault(segment, []).append(entry)
    return fork


def _weigh(entries: Iterable[_Entry]) -> int:
    """The rules of the policies behind some patterns, each policy counted once."""
    return sum({entry.owner: entry.weight for entry in entries}.values())


def _hosts(policy: Policy) -> list[PathPattern]:
    return [_host_pattern(host) for host in policy.match.hosts] or [_EVERYTHING]


def _routes(policy: Policy) -> list[tuple[PathPattern, frozenset[str]]]:
    """The policy's path patterns, each with its methods; none = all."""
    return [(_path_pattern(route), methods_with_head(route.methods)) for route in policy.match.routes] or [
        (_EVERYTHING, frozenset())
    ]


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
