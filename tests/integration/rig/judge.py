# SPDX-License-Identifier: Apache-2.0
"""What must hold of steady traffic whatever was broken under it, and the table of how long it waited."""

from __future__ import annotations

import asyncio
import math
from itertools import product

from rig.modes import BUDGET, SHARE, UNDECIDED, Mode, Outcome
from rig.traffic import HOT, Phase, Traffic

_HANG_S = 1.0  # no wait for a processor on the busiest machine, and shorter than the wait for any dead connection

_REFUSED = (Outcome.REFUSED, Outcome.LOCAL_REFUSED)
_LABELS = {
    Outcome.ALLOWED: "allowed", Outcome.REFUSED: "rejected", Outcome.OPEN: "store_failure_open",
    Outcome.CLOSED: "store_failure_closed", Outcome.LOCAL: "local_allowed", Outcome.LOCAL_REFUSED: "local_rejected",
}  # fmt: skip

_FAULT, _PHASE = 58, 7  # the widths of the first columns

HEADER = (
    f"{'':<{_FAULT + _PHASE}}{'':>6}{'decided':>9} │{'limiter':>8}{'':>9} │{'client, ms':>11}\n"
    f"{'fault':<{_FAULT}}{'phase':<{_PHASE}}{'asked':>6}{'by store':>9} │{'> 6 ms':>8}{'> 25 ms':>9} │"
    f"{'p50':>7}{'p99':>9}{'max':>9}"
)


async def judge(traffic: Traffic, *, lives: int = 1, cut_off: bool = False, since: int = 0) -> None:
    """Whatever has happened: every answer was one that its rule allows, no budget was exceeded, counters are true.

    `lives`: how often the store began with empty memory. `cut_off`: some requests may have had no answer. `since`: the
    phase in which the limiters that are asked for their counters were started.
    """
    for phase, mode in product(traffic.phases, Mode):
        judge_answers(phase, mode, unanswered=cut_off)
        assert phase.count(Outcome.ALLOWED, mode=mode, subject=phase.name) <= BUDGET, f"{phase.name} {mode}"
    for mode in Mode:
        hot = sum(phase.count(Outcome.ALLOWED, mode=mode, subject=HOT) for phase in traffic.phases)
        assert hot <= lives * BUDGET, f"{hot} of {lives * BUDGET} admitted for {mode}"
    for subject in {HOT, *(phase.name for phase in traffic.phases)}:
        granted = sum(phase.count(Outcome.LOCAL, subject=subject) for phase in traffic.phases)
        assert granted <= SHARE * len(traffic.sidecars) * (1 + cut_off), f"{granted} granted to {subject} by shares"
    await asyncio.to_thread(judge_counters, traffic, traffic.phases[since:])


def judge_answers(phase: Phase, mode: Mode, *, unanswered: bool) -> None:
    """Decided, or left to the rule's own failure mode; whole, and nothing else."""
    allowed = {Outcome.ALLOWED, Outcome.REFUSED, *UNDECIDED[mode]} | ({Outcome.UNANSWERED} if unanswered else set())
    odd = {outcome for its_mode, _subject, outcome in phase.seen if its_mode is mode} - allowed
    assert not odd, f"{phase.name}: {mode} got {odd}: {dict(phase.seen)}"


def judge_recovery(phase: Phase) -> None:
    """The budget of a subject that began after the fault is admitted, or was charged for requests left undecided."""
    for mode, undecided in UNDECIDED.items():
        admitted = phase.count(Outcome.ALLOWED, mode=mode, subject=phase.name)
        uncertain = phase.count(*undecided, Outcome.UNANSWERED, mode=mode, subject=phase.name)
        assert admitted <= BUDGET <= admitted + uncertain, mode


def judge_waits(phase: Phase) -> None:
    """Nobody waited for a store that does not answer. How long they really took is in the table, beside the canary."""
    assert 2 * phase.limiter.long < phase.limiter.decisions, phase.limiter
    assert max(phase.waits) < _HANG_S


def judge_counters(traffic: Traffic, phases: list[Phase]) -> None:
    """The sum of the limiters' evidence and metrics is what clients saw in these phases."""

    def seen(*outcomes: Outcome, mode: Mode | None = None) -> int:
        return sum(phase.count(*outcomes, mode=mode) for phase in phases)

    for mode, undecided in UNDECIDED.items():
        lost = seen(Outcome.UNANSWERED, mode=mode)
        evidence = [sidecar.rule(mode) for sidecar in traffic.sidecars]
        for name, outcomes in {
            "requests": (Outcome.ALLOWED, Outcome.REFUSED, *undecided),
            "rejected": _REFUSED,
            "storeFailures": undecided,
        }.items():
            _agree(sum(row[name] for row in evidence), seen(*outcomes, mode=mode), lost, f"{mode}: {name}")
        for outcome, label in _LABELS.items():
            counted = _sum(traffic, "weir_rule_decisions_total", rule=mode, outcome=label)
            _agree(counted, seen(outcome, mode=mode), lost, f"{mode}: {label}")
    for decision in (Outcome.ALLOWED, Outcome.REFUSED, Outcome.OPEN, Outcome.CLOSED, Outcome.LOCAL):
        outcomes = _REFUSED if decision is Outcome.REFUSED else (decision,)
        counted = _sum(traffic, "weir_requests_total", decision=decision)
        _agree(counted, seen(*outcomes), seen(Outcome.UNANSWERED), f"requests {decision}")


def _agree(counted: float, seen: int, lost: int, what: str) -> None:
    """Counted is what was seen; of requests whose answer was lost nobody knows whether they were decided."""
    assert seen <= counted <= seen + lost, f"{what}: {counted} counted, {seen} seen, {lost} lost"


def _sum(traffic: Traffic, metric: str, **labels: str) -> float:
    return sum(sidecar.metric(metric, **labels) for sidecar in traffic.sidecars)


def lines(fault: str, traffic: Traffic) -> list[str]:
    """The rows of one fault: the same traffic before it, which is the canary, while it lasts, and after it."""
    return [_line(fault, phase) for phase in traffic.phases if phase.waits]


def _line(fault: str, phase: Phase) -> str:
    decided = phase.count(Outcome.ALLOWED, Outcome.REFUSED)
    waits = sorted(phase.waits)
    p50, p99, most = (waits[math.ceil(share * len(waits)) - 1] * 1e3 for share in (0.5, 0.99, 1))
    limiter = f"{phase.limiter.late:>8}{phase.limiter.long:>9}"
    client = f"{p50:>7.1f}{p99:>9.1f}{most:>9.1f}"
    return f"{fault:<{_FAULT}}{phase.name:<{_PHASE}}{len(waits):>6}{decided:>9} │{limiter} │{client}"
