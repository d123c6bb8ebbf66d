# SPDX-License-Identifier: Apache-2.0
"""Which limiters apply one policy, and which version of it: what the limiters themselves say they run.

Owns the joining of a limiter's standing with its own list of rules. Must not judge what that means. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weir_operator.domain.limits import Mode
from weir_operator.reconcile.fleet import Standing
from weir_operator.reconcile.ports import LimiterReport


@dataclass(frozen=True, slots=True)
class Coverage:
    """The limiters of a gateway, by name, each in one of the four lists."""

    whole: tuple[str, ...] = ()
    """They run the version that is asked about."""
    earlier: tuple[str, ...] = ()
    """They enforce an earlier version of the policy."""
    idle: tuple[str, ...] = ()
    """They answer and enforce nothing of it: they lack it, start or drain, or an earlier version enforces nothing."""
    silent: tuple[str, ...] = ()
    """They do not answer, so nothing is known."""
    storeless: tuple[str, ...] = ()
    """Those of all that answer which lack their store."""
    unasked_since_ms: int | None = None
    """Since when no limiter of the gateway has been asked about any request, if that is too long."""
    unmatched_since_ms: int | None = None
    """Since when no request has matched the policy, if that is too long."""

    @property
    def total(self) -> int:
        """How many limiters there are."""
        return len(self.whole) + len(self.earlier) + len(self.idle) + len(self.silent)


NOWHERE = Coverage()


def coverage_of(
    policy_id: str, reports: Sequence[LimiterReport], standings: Sequence[Standing], *, runs_whole: bool
) -> Coverage:
    """Sort the limiters. Without `standings` nothing was published; `runs_whole` False: no version is asked about."""
    lists: dict[str, list[str]] = {"whole": [], "earlier": [], "idle": [], "silent": []}
    for place, report in enumerate(reports):
        standing = standings[place] if place < len(standings) else Standing.BEHIND
        lists[_list_for(policy_id, report, standing, runs_whole=runs_whole)].append(report.name)
    storeless = tuple(report.name for report in reports if report.store_down)
    whole, earlier, idle, silent = (tuple(names) for names in lists.values())
    return Coverage(whole, earlier, idle, silent, storeless)


def _list_for(policy_id: str, report: LimiterReport, standing: Standing, *, runs_whole: bool) -> str:
    if report.error:
        return "silent"
    if not report.ready:
        return "idle"
    if runs_whole and standing is Standing.RUNS:
        return "whole"
    run = report.policies.get(policy_id)
    return "earlier" if run is not None and enforces(run.modes.values()) else "idle"


def enforces(modes: Iterable[Mode]) -> bool:
    """Whether any of these modes refuses requests."""
    return Mode.ENFORCE in modes
