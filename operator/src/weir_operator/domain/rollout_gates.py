# SPDX-License-Identifier: Apache-2.0
"""What a candidate waits for: each gate that is still closed, in words and with the time at which time opens it.

Owns when a promotion, the next stage and a rollback are due. Pure, and shared with `weir rollout`, so that what is
printed is what is decided by.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum

from weir_operator.domain.evidence import Evidence, Recent
from weir_operator.domain.interventions import Approval
from weir_operator.domain.limits import duration_text
from weir_operator.domain.rollout_state import Candidate
from weir_operator.domain.rollout_terms import MANY_ENOUGH, WHOLE, Promote, RolloutTerms, StageTerms, percent_text

_US_PER_S = 1_000_000


class Gate(StrEnum):
    """What can be waited for."""

    MODE = "Mode"
    """The policy, its gateway, a switch or the break glass allows no enforcement, or no limiter is known to enforce."""
    APPROVAL = "Approval"
    """A person has to promote it."""
    AFTER = "After"
    """There has not been evidence for long enough."""
    REQUESTS = "Requests"
    """There have not been enough requests."""
    WOULD_REJECT = "WouldReject"
    """It would refuse too many."""
    HOLD = "Hold"
    """The present stage lasts for some time yet."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One closed gate. `until_s`: the Unix time at which it opens by itself."""

    gate: Gate
    message: str
    until_s: float | None = None


def is_for(approval: Approval | None, generation: int) -> bool:
    """Whether somebody has promoted this very generation."""
    return approval is not None and approval.generation == generation


def approval_name(approval: Approval | None) -> str:
    """What tells one approval from the next; empty without one."""
    if approval is None:
        return ""
    text = f"{approval.generation} {approval.at} {approval.by} {approval.reason}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shadow_waits(terms: RolloutTerms, candidate: Candidate, evidence: Evidence | None, now_s: float) -> list[Wait]:
    """Why a candidate that nobody has approved stays in shadow; empty = the evidence promotes it."""
    if terms.promote is not Promote.AUTOMATIC:
        return [Wait(Gate.APPROVAL, "waits for a person to promote it")]
    waits: list[Wait] = []
    after_s = terms.after_s or 0
    if now_s < candidate.since_s + after_s:
        message = f"waits until there has been evidence for {_text(after_s)}"
        waits.append(Wait(Gate.AFTER, message, candidate.since_s + after_s))
    found = evidence or Evidence(candidate.version, candidate.since_s, candidate.since_s)
    least = terms.min_requests or 1
    if found.requests < least:
        waits.append(Wait(Gate.REQUESTS, f"waits for {least} requests"))
    if terms.max_would_reject is not None and found.share > terms.max_would_reject:
        message = f"would refuse more than {percent_text(terms.max_would_reject)} of the requests"
        waits.append(Wait(Gate.WOULD_REJECT, message))
    return waits


def stage_wait(terms: RolloutTerms, candidate: Candidate, now_s: float) -> Wait | None:
    """Why a candidate stays in its stage; None = the next one is due."""
    stages = terms.all_stages
    if candidate.stage > len(stages):
        return None  # the spec has fewer stages than it had
    if not candidate.stage_since_s:
        return Wait(Gate.MODE, f"stage {candidate.stage} of {len(stages)} begins anew when it is enforced again")
    until_s = candidate.stage_since_s + stages[candidate.stage - 1].hold_s
    if now_s >= until_s:
        return None
    return Wait(
        Gate.HOLD,
        f"stage {candidate.stage} of {len(stages)} holds for {_text(until_s - candidate.stage_since_s)}",
        until_s,
    )


def rollback_share(terms: RolloutTerms, recent: Recent | None) -> int | None:
    """The share that a candidate has refused, if it is so large that it must fall back to shadow."""
    rollback = terms.rollback
    if rollback is None or recent is None or recent.covers_s < rollback.for_s or recent.enforced < MANY_ENOUGH:
        return None
    share = recent.rejected * WHOLE // recent.enforced
    return share if share > rollback.rejected else None


def reached(terms: RolloutTerms, stage: int) -> StageTerms:
    """All requests that the stages up to this one have brought under the candidate."""
    stages = terms.all_stages[:stage]
    plans = tuple(sorted({plan for each in stages for plan in each.plans}))
    return StageTerms(0, plans, max((each.percent for each in stages), default=0))


def refit(candidate: Candidate, before: RolloutTerms, now: RolloutTerms) -> Candidate:
    """The candidate under other stages: at the last of them that enforces it for nobody new, else in shadow."""
    if not candidate.stage or before.all_stages == now.all_stages:
        return candidate
    had = reached(before, candidate.stage)
    stage = 0
    for number in range(1, len(now.all_stages) + 1):
        has = reached(now, number)
        if has.percent <= had.percent and set(has.plans) <= set(had.plans):
            stage = number
    return replace(candidate, stage=stage, stage_since_s=0, promoted_by=candidate.promoted_by if stage else "")


def _text(seconds: float) -> str:
    return duration_text(int(seconds * _US_PER_S))
