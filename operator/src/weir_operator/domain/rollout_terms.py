# SPDX-License-Identifier: Apache-2.0
"""How a policy wants its changed limits to come into force: the spec's `rollout` in domain terms.

Values and their texts only. What follows from them is `rollout`, what can be wrong with them `rollout_checks`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

WHOLE = 100_000  # a hundred percent in thousandths of a percent
PERCENT_FORM = r"^(100(\.0{1,3})?|[0-9]{1,2}(\.[0-9]{1,3})?)%$"
WATCH_FACTOR = 10  # arbitrary: a fault that shows in one `for` shows in ten
MANY_ENOUGH = 20  # requests without which a share says nothing: one refusal of 20 is 5 %


class OnChange(StrEnum):
    """What happens to a rule that is new or whose limit has changed."""

    IMMEDIATE = "Immediate"
    """It is enforced at once."""
    SHADOW = "Shadow"
    """It counts in shadow, beside the version that is still enforced, until it is promoted."""


class Promote(StrEnum):
    """Who promotes a rule from shadow."""

    MANUAL = "Manual"
    """A person: `weir promote`."""
    AUTOMATIC = "Automatic"
    """The evidence; a person may do it earlier."""


@dataclass(frozen=True, slots=True)
class StageTerms:
    """Requests of some plans, or a share of the subjects, that get the new limit first, and for how long they alone."""

    hold_s: float
    plans: tuple[str, ...] = ()
    percent: int = 0


@dataclass(frozen=True, slots=True)
class RollbackTerms:
    """A share of refused requests, in thousandths of a percent, that over this time is more than was meant."""

    rejected: int
    for_s: float


@dataclass(frozen=True, slots=True)
class RolloutTerms:
    """The whole of it; None = left out. `max_would_reject` is in thousandths of a percent."""

    on_change: OnChange = OnChange.IMMEDIATE
    promote: Promote | None = None
    after_s: float | None = None
    min_requests: int | None = None
    max_would_reject: int | None = None
    stages: tuple[StageTerms, ...] = ()
    rollback: RollbackTerms | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every change is simply enforced at once."""
        return self.on_change is OnChange.IMMEDIATE and self.rollback is None

    @property
    def all_stages(self) -> tuple[StageTerms, ...]:
        """The stages, with the last one for everybody, in which only the rollback is still watched for."""
        stages = self.stages if self.on_change is OnChange.SHADOW else ()
        if stages and stages[-1].percent == 100:  # noqa: PLR2004  percent
            return stages
        watch_s = self.rollback.for_s * WATCH_FACTOR if self.rollback is not None else 0
        return (*stages, StageTerms(watch_s, percent=100))


PLAIN = RolloutTerms()


def parse_percent(text: str) -> int | None:
    """Thousandths of a percent of a text like `0.1%`; None if it is none."""
    if re.fullmatch(PERCENT_FORM, text) is None:
        return None
    whole, _, fraction = text.removesuffix("%").partition(".")
    return int(whole) * 1000 + int(fraction.ljust(3, "0"))


def percent_text(thousandths: int) -> str:
    """A share as users write it, like `0.1%`."""
    whole, fraction = divmod(thousandths, 1000)
    decimals = f".{fraction:03}".rstrip("0").rstrip(".")
    return f"{whole}{decimals}%"
