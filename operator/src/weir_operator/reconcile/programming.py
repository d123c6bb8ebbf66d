# SPDX-License-Identifier: Apache-2.0
"""How far one revision of the rules has come: the facts and the words of `Programmed`.

Owns the precedence of what holds a revision up. Pure, without ages or attempts in its messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from weir_operator.domain.conditions import Reason, Status
from weir_operator.reconcile.fleet import Fleet, Standing, of, some, standings
from weir_operator.reconcile.ports import LimiterReport

STALE_AFTER_MS = 10_000  # a change is live within 2 s normally; five times that is no longer normal
NAMED_LIMITERS = 3  # in a message; the rest is counted


@dataclass(frozen=True, slots=True)
class Programming:
    """How far one revision has come."""

    status: Status
    reason: Reason
    message: str
    running: int = 0
    total: int = 0
    standings: tuple[Standing, ...] = ()
    """Of each limiter, in the order of the reports; empty when nothing was published."""
    store_faults: tuple[tuple[str, int], ...] = ()
    """What is wrong with the limiters' stores, each with how many limiters say so."""
    glass_faults: tuple[tuple[str, int], ...] = ()
    """Why break glass could not be read, likewise."""

    @property
    def limiters(self) -> str:
        """`2/3`: how many limiters run it, of how many."""
        return f"{self.running}/{self.total}"


def programming_of(fleet: Fleet, required_revision: int | None, now_ms: int) -> Programming:
    """Return how many limiters run at least `required_revision` (None = it is not published)."""
    total = len(fleet.reports)
    if required_revision is None and fleet.publish_error:
        return Programming(Status.FALSE, Reason.RENDER_FAILED, fleet.publish_error, 0, total)
    if required_revision is None:
        return Programming(Status.FALSE, Reason.PROPAGATING, "not published yet", 0, total)
    if not fleet.reports:
        message = f"the operator's settings list no limiter for gateway {fleet.gateway}, so nothing is enforced"
        return Programming(Status.FALSE, Reason.NO_LIMITERS, message)
    found = standings(fleet, required_revision)
    running = found.count(Standing.RUNS)
    faults = Counter(fault for report in fleet.reports for fault in report.store_faults)
    glass = Counter(report.break_glass_error for report in fleet.reports if report.break_glass_error)
    message = f"{of(running, total)} run this generation"
    status, reason = Status.TRUE, Reason.PROGRAMMED
    if running < total:
        stale = now_ms - required_revision > STALE_AFTER_MS
        reason, why = _holdup(fleet.reports, found, fleet.ruleset_name, stale=stale)
        status, message = Status.FALSE, f"{message}; {why}"
    told = tuple(sorted(faults.items())), tuple(sorted(glass.items()))
    return Programming(status, reason, message, running, total, found, *told)


def _holdup(
    reports: Sequence[LimiterReport], found: Sequence[Standing], ruleset_name: str, *, stale: bool
) -> tuple[Reason, str]:
    """Say what matters most of what holds the revision up: a refusal never ends by itself, silence may."""
    late = list(zip(reports, found, strict=True))
    if Standing.REFUSED in found:
        names = [
            f"{report.name} ({report.rulesets[ruleset_name].rejected_error})"
            for report, standing in late
            if standing is Standing.REFUSED
        ]
        return Reason.LIMITER_REFUSED, "refused by " + some(names, NAMED_LIMITERS)
    if Standing.UNREACHABLE in found:
        names = [f"{report.name} ({report.error})" for report, standing in late if standing is Standing.UNREACHABLE]
        return Reason.LIMITER_UNREACHABLE, "no answer from " + some(names, NAMED_LIMITERS)
    names = [
        report.name + (" (not ready)" if standing is Standing.UNREADY else "")
        for report, standing in late
        if standing is not Standing.RUNS
    ]
    if stale:
        return Reason.LIMITER_STALE, "still on older rules: " + some(names, NAMED_LIMITERS)
    return Reason.PROPAGATING, "on its way to " + some(names, NAMED_LIMITERS)
