# SPDX-License-Identifier: Apache-2.0
"""What must hold of steady traffic whatever was broken under it, and the table of how long it waited."""

from __future__ import annotations

import asyncio
import math

from rig.modes import BUDGET, UNDECIDED, Mode, Outcome
from rig.traffic import HOT, Phase, Traffic

_HANG_S = 1.0  # no wait for a processor on the busiest machine, and shorter than the wait for any dead connection

HEADER = f"{'':<58}{'':<7}{'':>6}{'decided':>9} │{'limiter':>8}{'':>9} │{'client, ms':>11}{'':>14}\n" + (
    f"{'fault':<58}{'phase':<7}{'asked':>6}{'by store':>9} │{'> 6 ms':>8}{'> 25 ms':>9} │{'p50':>7}{'p99':>9}{'max':>9}"
)


async def judge(traffic: Traffic, *, lives: int = 1, restarted: bool = False) -> None:
    """Whatever has happened: every answer was one that its rule allows, no budget was exceeded, counters are true.

    `lives`: of the store's memory, which can begin anew empty. `restarted`: the limiter was, before `after` began.
    """
    for phase in traffic.phases:
        for mode in Mode:
            judge_answers(phase, mode, unanswered=restarted)
            assert phase.count(Outcome.ALLOWED, mode=mode, subject=phase.name) <= BUDGET, f"{phase.name} {mode}"
    for mode in Mode:
        hot = sum(phase.count(Outcome.ALLOWED, mode=mode, subject=HOT) for phase in traffic.phases)
        assert hot <= lives * BUDGET, f"{hot} of {lives * BUDGET} admitted for {mode}"
    await asyncio.to_thread(judge_counters, traffic, traffic.phases[2:] if restarted else traffic.phases)


def judge_answers(phase: Phase, mode: Mode, *, unanswered: bool) -> None:
    """Decided, or left to the rule's own failure mode; whole, and nothing else."""
    allowed = {Outcome.ALLOWED, Outcome.REFUSED, UNDECIDED[mode]} | ({Outcome.UNANSWERED} if unanswered else set())
    odd = {outcome for its_mode, _subject, outcome in phase.seen if its_mode is mode} - allowed
    assert not odd, f"{phase.name}: {mode} got {odd}: {dict(phase.seen)}"


def judge_recovery(phase: Phase) -> None:
    """The budget of a subject that began after the fault is admitted, or was charged for requests left undecided."""
    for mode, undecided in UNDECIDED.items():
        admitted = phase.count(Outcome.ALLOWED, mode=mode, subject=phase.name)
        assert admitted <= BUDGET <= admitted + phase.count(undecided, mode=mode, subject=phase.name), mode


def judge_waits(phase: Phase) -> None:
    """Nobody waited for a store that does not answer. How long they really took is in the table, beside the canary."""
    assert 2 * phase.limiter.long < phase.limiter.decisions, phase.limiter
    assert max(phase.waits) < _HANG_S


def judge_counters(traffic: Traffic, phases: list[Phase]) -> None:
    """The sum of the limiters' evidence and metrics is what clients saw in these phases."""
    for mode, undecided in UNDECIDED.items():
        allowed, refused, failed = (
            sum(phase.count(outcome, mode=mode) for phase in phases)
            for outcome in (Outcome.ALLOWED, Outcome.REFUSED, undecided)
        )
        evidence = [sidecar.rule(mode) for sidecar in traffic.sidecars]
        counted = [sum(row[name] for row in evidence) for name in ("requests", "rejected", "storeFailures")]
        assert counted == [allowed + refused + failed, refused, failed], f"evidence of {mode}"
        outcomes = ("allowed", "rejected", f"store_failure_{mode}")
        series = [
            sum(sidecar.metric("weir_rule_decisions_total", rule=mode, outcome=name) for sidecar in traffic.sidecars)
            for name in outcomes
        ]
        assert series == [allowed, refused, failed], f"series of {mode}"
    for decision in (Outcome.ALLOWED, Outcome.REFUSED, Outcome.OPEN, Outcome.CLOSED):
        seen = sum(phase.count(decision) for phase in phases)
        assert sum(sidecar.metric("weir_requests_total", decision=decision) for sidecar in traffic.sidecars) == seen


def lines(fault: str, traffic: Traffic) -> list[str]:
    """The rows of one fault: the same traffic before it, which is the canary, while it lasts, and after it."""
    return [_line(fault, phase) for phase in traffic.phases if phase.waits]


def _line(fault: str, phase: Phase) -> str:
    decided = phase.count(Outcome.ALLOWED, Outcome.REFUSED)
    waits = sorted(phase.waits)
    p50, p99, most = (waits[math.ceil(share * len(waits)) - 1] * 1e3 for share in (0.5, 0.99, 1))
    limiter = f"{phase.limiter.late:>8}{phase.limiter.long:>9}"
    return f"{fault:<58}{phase.name:<7}{len(waits):>6}{decided:>9} │{limiter} │{p50:>7.1f}{p99:>9.1f}{most:>9.1f}"
