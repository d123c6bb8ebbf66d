# SPDX-License-Identifier: Apache-2.0
"""The rule budget: how many rules one request may meet over all policies together, and who has to give way.

Which policies meet in a request is `crowds`' business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weir_operator.domain.conditions import Reason
from weir_operator.domain.crowds import Crowd, find_crowds
from weir_operator.domain.limits import Mode
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Match, Policy

NAMED = 8  # policies named in a message; with a budget of 8 rules there are not more
_ASK = "or ask the gateway's administrator for a larger ruleBudget"


@dataclass(frozen=True, slots=True)
class Applicant:
    """A policy that wants a place. `fixed`: it stays whatever the budget says, because it is running already.

    `instead` is the version that stays whatever the budget says if this one finds no place.
    """

    policy: Policy
    created_at: int
    fixed: bool = False
    instead: Policy | None = None

    @property
    def rank(self) -> tuple[int, str]:
        """Who came first has the first claim."""
        return self.created_at, self.policy.id

    @property
    def versions(self) -> tuple[Policy, ...]:
        """What may get its place, the first choice first."""
        last = self.instead
        if (
            last is None
            or last is self.policy
            or (last.match, _weight(last)) == (self.policy.match, _weight(self.policy))
        ):
            return (self.policy,)  # of two that need the same place, one is asked for
        return self.policy, last

    def left_over(self, refused: bool) -> Applicant | None:  # noqa: FBT001  a state, and nothing else is asked
        """What still wants a place when the first choice was refused: the version that stays, if there is one."""
        if not refused:
            return self
        return None if self.instead is None else Applicant(self.instead, self.created_at, fixed=True)


@dataclass(slots=True)
class _Room:
    """A crowd while places are given: those that have one, and how many rules they brought."""

    crowd: Crowd
    taken: int = 0
    placed: list[str] = field(default_factory=list)


class Budget:
    """How many rules one request may meet, `size`, and the crowds that were found last: most edits change none."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._walked: tuple[list[tuple[Match, int]], list[Crowd]] = [], []

    def exceeded_by(self, applicants: Iterable[Applicant]) -> dict[str, Problem]:
        """The policies that find no place beside those that came before them, by id, each with what it is told.

        The order of `applicants` does not matter. A policy that is refused takes no place from those after it, except
        for the version that stays instead.
        """
        ranked = sorted(applicants, key=lambda applicant: applicant.rank)
        versions = [version for applicant in ranked for version in applicant.versions]
        weights = [_weight(version) for version in versions]
        walked = [(version.match, weight) for version, weight in zip(versions, weights, strict=True)]
        if walked != self._walked[0]:
            self._walked = walked, find_crowds(versions, weights, self._size)
        return _give_places(ranked, weights, self._walked[1], self._size) if self._walked[1] else {}


def _give_places(
    ranked: Sequence[Applicant], weights: Sequence[int], crowds: Iterable[Crowd], budget: int
) -> dict[str, Problem]:
    rooms: list[list[_Room]] = [[] for _ in weights]
    for crowd in crowds:
        room = _Room(crowd)
        for index in crowd.members:
            rooms[index].append(room)
    refused: dict[str, Problem] = {}
    first = 0
    for applicant in ranked:
        index, last = first, first + len(applicant.versions) - 1
        first = last + 1
        full = next((room for room in rooms[index] if room.taken + weights[index] > budget), None)
        if full is not None and not applicant.fixed:
            refused[applicant.policy.id] = _problem(full, weights[index], budget)
            if applicant.instead is None:
                continue
            index = last
        for room in rooms[index]:
            room.taken += weights[index]
            room.placed.append(applicant.policy.id)
    return refused


def _weight(policy: Policy) -> int:
    """How many of its rules cost anything."""
    return sum(rule.mode is not Mode.DISABLED for rule in policy.rules)


def _problem(room: _Room, weight: int, budget: int) -> Problem:
    others: Sequence[str] = sorted(room.placed)
    if not others:
        message = f"has {weight} rules, and a request may meet at most {budget} on this gateway"
        hint = f"write fewer rules, or several policies for different routes, {_ASK}"
        return Problem("spec.rules", Reason.BUDGET_EXCEEDED, message, hint)
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    message = (
        f"{room.crowd.request} would meet {room.taken + weight} rules, and at most {budget} are allowed on this "
        f"gateway; {room.taken} of them are of older policies: {', '.join(others[:NAMED])}{more}"
    )
    hint = f"match fewer hosts or routes, or write fewer rules, {_ASK}"
    return Problem("spec.match", Reason.BUDGET_EXCEEDED, message, hint)
