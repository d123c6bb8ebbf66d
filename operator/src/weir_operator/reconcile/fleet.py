# SPDX-License-Identifier: Apache-2.0
"""A gateway's limiters at one moment, and where each of them stands against one revision of the rules.

Owns the reading of a limiter's report: what counts as running a revision. Must not know conditions or words. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from weir_operator.reconcile.ports import AppliedRuleset, LimiterReport
from weir_operator.render.ruleset_config import Live


@dataclass(frozen=True, slots=True)
class Fleet:
    """A gateway's limiters as they are now, and what they were told."""

    gateway: str
    ruleset_name: str
    published: Live
    """Revision 0 = nothing yet."""
    reports: tuple[LimiterReport, ...] = ()
    publish_error: str = ""
    """Why the wanted ruleset could not be published; empty when it was."""
    unasked_since_ms: int | None = None
    """Since when no limiter has been asked about any request, if that is too long."""


class Standing(Enum):
    """How one limiter relates to a revision."""

    RUNS = auto()
    """It decides by that revision, or by a later one."""
    BEHIND = auto()
    """It decides by an older one, by somebody else's, or has none yet."""
    UNREADY = auto()
    """It has the revision and does not decide: it starts or drains."""
    REFUSED = auto()
    """It refused the revision and keeps an older one."""
    UNREACHABLE = auto()
    """It does not answer, so nothing is known."""


def standings(fleet: Fleet, required: int) -> tuple[Standing, ...]:
    """Return where each limiter stands, in the order of the reports."""
    return tuple(_standing(report, fleet, required) for report in fleet.reports)


def _standing(report: LimiterReport, fleet: Fleet, required: int) -> Standing:
    if report.error:
        return Standing.UNREACHABLE
    applied = report.rulesets.get(fleet.ruleset_name)
    if applied is not None and applied.revision < required <= (applied.rejected_revision or 0):
        return Standing.REFUSED
    if applied is None or applied.revision < required or _is_foreign(applied, fleet.published):
        return Standing.BEHIND
    return Standing.RUNS if report.ready else Standing.UNREADY


def _is_foreign(applied: AppliedRuleset, published: Live) -> bool:
    """Whether it was not written here: it proves nothing, and the loop publishes above it."""
    if applied.revision == published.revision:
        return applied.digest != published.digest
    return applied.revision > published.revision


def of(running: int, total: int) -> str:
    """`2 of 3 limiters`."""
    return f"{running} of {total} limiter{'' if total == 1 else 's'}"


def some(names: Sequence[str], shown: int) -> str:
    """The first few names; the rest is counted."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
