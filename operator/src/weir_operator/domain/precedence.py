# SPDX-License-Identifier: Apache-2.0
"""Which of several overrides that fit one request wins, and who is told that they do not.

The order is total: the override whose subjects name more sources, then the newer, then the smaller id. The
limiter takes the first in this order whose time it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weir_operator.domain.overriding import Override, Subject

_Shape = tuple[str, ...]
_Place = tuple[str, str, tuple[Subject, ...]]


def in_order(overrides: Iterable[Override], created_at: Mapping[str, int]) -> tuple[Override, ...]:
    """`overrides` by precedence, the winner first. `created_at` gives Unix seconds by id."""
    return tuple(sorted(overrides, key=lambda override: (-_sources(override), -created_at[override.id], override.id)))


@dataclass(frozen=True, slots=True)
class Defeat:
    """An override that loses against another one with a subject of its own, for a rule, at a common time.

    `wholly`: the winner has the very same subject, so the loser never holds for it while the winner does. Otherwise
    the winner names further sources, and wins for some of the subject's requests.
    """

    rule: str
    subject: tuple[Subject, ...]
    winner: str
    wholly: bool

    def remark(self, place: int) -> str:
        """What the loser is told; `place` is the subject's in its spec. The value is never named."""
        how = "newer" if self.wholly else "more specific"
        share = "" if self.wholly else " for some of its requests"
        return f'spec.subjects[{place}]: for rule "{self.rule}" the {how} override "{self.winner}" wins{share}'


def defeats(ordered: Sequence[Override]) -> dict[str, list[Defeat]]:
    """By override, what it loses to which other one; `ordered` is by precedence."""
    holders: dict[_Place, list[Override]] = {}
    shapes: dict[tuple[str, str], set[_Shape]] = {}
    for override in ordered:
        for rule, subject in itertools.product(override.rules, override.subjects):
            holders.setdefault((override.policy, rule, subject), []).append(override)
            shapes.setdefault((override.policy, rule), set()).add(_shape(subject))
    found: dict[str, list[Defeat]] = {}
    for (policy, rule, subject), holding in holders.items():
        _note(found, holding, holding, Defeat(rule, subject, "", wholly=True))
        for part in _parts(subject, shapes[policy, rule]):
            _note(found, holding, holders.get((policy, rule, part), []), Defeat(rule, part, "", wholly=False))
    return found


def _note(
    found: dict[str, list[Defeat]], winners: Sequence[Override], losers: Sequence[Override], defeat: Defeat
) -> None:
    """Note for each loser the first winner before it in precedence whose time it shares."""
    for loser in losers:
        before = itertools.takewhile(lambda winner, loser=loser: winner is not loser, winners)  # type: ignore[misc]
        winner = next((winner for winner in before if _share_time(winner, loser)), None)
        if winner is not None:
            found.setdefault(loser.id, []).append(replace(defeat, winner=winner.id))


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
