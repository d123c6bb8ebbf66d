# SPDX-License-Identifier: Apache-2.0
"""Which of several overrides that fit one request wins, and who is told that they do not.

The order is total: the override whose subjects name more sources, then the newer, then the smaller id. The
limiter takes the first in this order whose time it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from weir_operator.domain.overriding import Override, Subject
from weir_operator.domain.times import time_text

_Shape = tuple[str, ...]
_Place = tuple[str, str, tuple[Subject, ...]]


def in_order(overrides: Iterable[Override], created_at: Mapping[str, int]) -> tuple[Override, ...]:
    """`overrides` by precedence, the winner first. `created_at` gives Unix seconds by id."""
    return tuple(sorted(overrides, key=lambda override: (-_sources(override), -created_at[override.id], override.id)))


class Rank(StrEnum):
    """Why one override comes before another one."""

    MORE_SPECIFIC = "more specific"
    """It names further sources, and so wins for some of the other's requests only."""
    NEWER = "newer"
    """It has the very same subject, so the other one never holds for it while this one does."""
    FIRST_BY_NAME = "first by name"
    """The same, but both were created in the same second."""


@dataclass(frozen=True, slots=True)
class Defeat:
    """An override that loses against another one with a subject of its own, for a rule, at a common time.

    `since` and `until` (Unix seconds) say when that is, where it is not the loser's whole time.
    """

    rule: str
    subject: tuple[Subject, ...]
    winner: str
    rank: Rank
    since: int | None = None
    until: int | None = None

    def remark(self, place: int) -> str:
        """What the loser is told; `place` is the subject's in its spec. The value is never named."""
        start = f'spec.subjects[{place}]: for rule "{self.rule}" the'
        match self.rank:
            case Rank.MORE_SPECIFIC:
                return f'{start} more specific override "{self.winner}" wins for some of its requests{self._when()}'
            case Rank.NEWER:
                return f'{start} newer override "{self.winner}" wins{self._when()}'
            case Rank.FIRST_BY_NAME:
                why = "created in the same second, it comes first by name"
                return f'{start} override "{self.winner}" wins{self._when()}: {why}'

    def _when(self) -> str:
        since = "" if self.since is None else f" from {time_text(self.since)}"
        until = "" if self.until is None else f" {'to' if since else 'until'} {time_text(self.until)}"
        return since + until


def defeats(ordered: Sequence[Override], created_at: Mapping[str, int]) -> dict[str, list[Defeat]]:
    """By override, what it loses to which other one; `ordered` is by precedence, `created_at` as for `in_order`."""
    holders: dict[_Place, list[Override]] = {}
    shapes: dict[tuple[str, str], set[_Shape]] = {}
    for override in ordered:
        for rule, subject in itertools.product(override.rules, override.subjects):
            holders.setdefault((override.policy, rule, subject), []).append(override)
            shapes.setdefault((override.policy, rule), set()).add(_shape(subject))
    found: dict[str, list[Defeat]] = {}
    for (policy, rule, subject), holding in holders.items():
        for winner, loser in _pairs(holding, holding):
            rank = Rank.NEWER if created_at[winner.id] > created_at[loser.id] else Rank.FIRST_BY_NAME
            found.setdefault(loser.id, []).append(_defeat(rule, subject, winner, loser, rank))
        for part in _parts(subject, shapes[policy, rule]):
            for winner, loser in _pairs(holding, holders.get((policy, rule, part), [])):
                found.setdefault(loser.id, []).append(_defeat(rule, part, winner, loser, Rank.MORE_SPECIFIC))
    return found


def _pairs(winners: Sequence[Override], losers: Sequence[Override]) -> Iterator[tuple[Override, Override]]:
    """For each loser the first winner before it in precedence whose time it shares."""
    for loser in losers:
        before = itertools.takewhile(lambda winner, loser=loser: winner is not loser, winners)  # type: ignore[misc]
        winner = next((winner for winner in before if _share_time(winner, loser)), None)
        if winner is not None:
            yield winner, loser


def _defeat(rule: str, subject: tuple[Subject, ...], winner: Override, loser: Override, rank: Rank) -> Defeat:
    since = winner.not_before if (winner.not_before or 0) > (loser.not_before or 0) else None
    until = winner.not_after if _end(winner) < _end(loser) else None
    return Defeat(rule, subject, winner.id, rank, since, until)


def _parts(subject: tuple[Subject, ...], shapes: set[_Shape]) -> Iterator[tuple[Subject, ...]]:
    """The subjects that name only some of the sources, with the same values, among the shapes that exist."""
    own = _shape(subject)
    for shape in shapes:
        if len(shape) < len(own) and set(shape) <= set(own):
            yield tuple(item for item in subject if item.source in shape)


def _shape(subject: tuple[Subject, ...]) -> _Shape:
    return tuple(item.source for item in subject)


def _sources(override: Override) -> int:
    return max(len(subject) for subject in override.subjects)


def _share_time(one: Override, other: Override) -> bool:
    start = max(one.not_before or 0, other.not_before or 0)
    end = min(_end(one), _end(other))
    return start < end


def _end(override: Override) -> float:
    return math.inf if override.not_after is None else override.not_after
