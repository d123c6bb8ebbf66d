# SPDX-License-Identifier: Apache-2.0
"""How a rule's mode differs by request and by time: slots, stages and switches, as the ruleset carries them.

Owns their wire types and the order of the modes. Who sets them is decided elsewhere; the limiter judges each request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from weir_operator.domain.limits import Mode
from weir_operator.domain.wire import member

_ALL_PERCENT = 100
_BY_STRENGTH = (Mode.DISABLED, Mode.SHADOW, Mode.ENFORCE)


def weakest(modes: Iterable[Mode]) -> Mode:
    """The mode that holds where several do; Enforce where none does."""
    return min(modes, key=_BY_STRENGTH.index, default=Mode.ENFORCE)


def strongest(modes: Iterable[Mode]) -> Mode:
    """The mode that does most; Disabled where there is none."""
    return max(modes, key=_BY_STRENGTH.index, default=Mode.DISABLED)


def at_most(mode: Mode, other: Mode) -> bool:
    """Whether `mode` does no more than `other`."""
    return _BY_STRENGTH.index(mode) <= _BY_STRENGTH.index(other)


class Slot(StrEnum):
    """The second entry of a rule's name; the first has none."""

    B = "b"


@dataclass(frozen=True, slots=True)
class Stage:
    """Requests that get this mode instead of the rule's: those of the plans, and a share of the subjects."""

    mode: Mode = member("Enforce or Shadow.", enum=[Mode.ENFORCE.value, Mode.SHADOW.value])
    plans: tuple[str, ...] = member("Plans of the rule.")
    percent: int = member("Of the subjects, by a hash that never moves a subject.", minimum=0, maximum=100)


@dataclass(frozen=True, slots=True)
class Switch:
    """What weakens a rule until its time is over; the limiter looks at the clock itself."""

    mode: Mode = member("Shadow or Disabled.", enum=[Mode.SHADOW.value, Mode.DISABLED.value])
    not_after: int | None = member("Unix seconds, exclusive; absent = until it is taken away.", default=None)


def mode_for_all(mode: Mode, stage: Stage | None, switches: Iterable[Switch]) -> Mode:
    """What holds for each request that no stage takes out, while these switches are live; a stage of all is for all."""
    base = stage.mode if stage is not None and stage.percent >= _ALL_PERCENT else mode
    return weakest((base, *(switch.mode for switch in switches)))
