# SPDX-License-Identifier: Apache-2.0
"""One rule's way from shadow to enforced: what is decided now, from where it stands and what is known.

Owns the decisions. Nothing is ever enforced that was neither approved, nor passed the gates, nor is Immediate, nor only
admits more than what is enforced already; and what is enforced stays so until one of these takes its place. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from weir_operator.domain.evidence import Evidence, Recent
from weir_operator.domain.interventions import Approval
from weir_operator.domain.limits import Mode
from weir_operator.domain.loosening import only_admits_more
from weir_operator.domain.modes import Slot
from weir_operator.domain.rollout_gates import approval_name, is_for, rollback_share, shadow_waits, stage_wait
from weir_operator.domain.rollout_state import Active, Candidate, Refusal, RuleState, numbers_of
from weir_operator.domain.rollout_terms import OnChange, RolloutTerms, percent_text
from weir_operator.domain.ruleset import Rule
from weir_operator.domain.versions import limit_version

BY_EVIDENCE = "evidence"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one rule at one moment."""

    now_s: float
    generation: int
    enforces: bool
    """Whether the policy's mode and everything above it allow to enforce, and the limiters run what was decided."""
    mode: Mode = Mode.ENFORCE
    """The policy's own mode."""
    approval: Approval | None = None
    evidence: Evidence | None = None
    recent: Recent | None = None
    running: Rule | None = None
    """What the live rules have under the active version's name, in case that the state does not have its numbers."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that people must hear of."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A rule's new state and what happened to it."""

    state: RuleState
    notes: tuple[Note, ...] = ()


def advance(wanted: Rule, terms: RolloutTerms, state: RuleState, facts: Facts) -> Step:
    """Decide about one rule; the same again at the same moment changes nothing."""
    step = _adopt(wanted, terms, state, facts)
    candidate = step.state.candidate
    if candidate is None:
        return step
    if not facts.enforces:  # a stage that nobody is held to proves nothing: its time stops, and begins anew
        held = replace(candidate, stage_since_s=0) if candidate.stage else candidate
        return Step(replace(step.state, candidate=held), step.notes)
    if candidate.stage and not candidate.stage_since_s:
        candidate = replace(candidate, stage_since_s=int(facts.now_s))
        facts = replace(facts, recent=None)
    if (
        state.candidate is None
        or candidate.since_s != state.candidate.since_s
        or candidate.version != state.candidate.version
    ):
        facts = replace(facts, evidence=None, recent=None)  # of what the candidate was before
    notes = list(step.notes)
    for _ in range(len(terms.all_stages) + 2):
        moved = _promote(candidate, terms, facts) if candidate.stage == 0 else _go_on(candidate, terms, facts)
        if moved is None:
            break
        candidate, note = moved
        notes.append(note)
        if candidate.stage > len(terms.all_stages):
            active = Active(candidate.limit, facts.generation, candidate.slot, numbers_of(wanted))
            return Step(replace(step.state, active=active, candidate=None), tuple(notes))
    return Step(replace(step.state, candidate=candidate), tuple(notes))


def is_due(candidate: Candidate, terms: RolloutTerms, facts: Facts) -> bool:
    """Whether a candidate that the spec still wants would move now."""
    running = bool(candidate.stage and candidate.stage_since_s)
    if not facts.enforces:
        return running
    if candidate.stage and not running:
        return True
    move = _promote if candidate.stage == 0 else _go_on
    return move(candidate, terms, facts) is not None


def _adopt(wanted: Rule, terms: RolloutTerms, state: RuleState, facts: Facts) -> Step:
    """Take what the spec says now into the state."""
    limit = limit_version(wanted)
    active, notes = _known(state.active, wanted, limit, facts)
    state = replace(state, active=active)
    if active is not None and active.limit == limit:
        return Step(replace(state, candidate=None), notes)
    if active is not None and active.rule is not None and only_admits_more(wanted, active.rule):
        looser = Active(limit, facts.generation, active.slot, numbers_of(wanted))
        note = Note("LimitRaised", "it can only admit more than before, so it is applied at once")
        return Step(replace(state, active=looser, candidate=None), (*notes, note))
    if terms.is_plain and facts.mode is Mode.ENFORCE:
        at_once = Active(limit, facts.generation, state.sure_slot(), numbers_of(wanted))
        return Step(replace(state, active=at_once, candidate=None), notes)
    if terms.is_plain:  # in shadow by the spec's own mode: nothing is kept enforced beside it
        state = replace(state, active=None, candidate=_fresh(state, wanted, limit, facts, state.sure_slot()))
        return Step(state, notes)
    return Step(replace(state, candidate=_fresh(state, wanted, limit, facts, state.free_slot())), notes)


def _known(active: Active | None, wanted: Rule, limit: str, facts: Facts) -> tuple[Active | None, tuple[Note, ...]]:
    """The active version with its numbers."""
    if active is None:
        return None, ()
    if active.limit == limit:
        return replace(active, rule=numbers_of(wanted)), ()
    if active.rule is not None:
        return active, ()
    if facts.running is not None and limit_version(facts.running) == active.limit:
        return replace(active, rule=numbers_of(facts.running)), ()
    message = "the numbers that were enforced are lost, so nothing is until the new ones are promoted"
    return None, (Note("EnforcedLimitLost", message, warning=True),)


def _fresh(state: RuleState, wanted: Rule, limit: str, facts: Facts, slot: Slot | None) -> Candidate:
    """The candidate as it was, or from the beginning if it is another one, or a new attempt."""
    version, now_s = wanted.version or "", int(facts.now_s)
    old = state.candidate
    if old is None or old.limit != limit or old.slot != slot:
        return Candidate(limit, version, now_s, slot)
    if old.refusal is not None and old.refusal.generation != facts.generation:
        return Candidate(limit, version, now_s, old.slot)
    return old if old.version == version else replace(old, version=version, since_s=now_s)


def _promote(candidate: Candidate, terms: RolloutTerms, facts: Facts) -> tuple[Candidate, Note] | None:
    """The first stage, if something opens it."""
    approved = is_for(facts.approval, facts.generation)
    if candidate.refusal is not None:
        approved = approved and approval_name(facts.approval) != candidate.refusal.approval
        if not approved:
            return None
    if approved and facts.approval is not None:
        by = facts.approval.by or "somebody"
    elif terms.on_change is OnChange.IMMEDIATE:
        by = str(OnChange.IMMEDIATE)
    elif not shadow_waits(terms, candidate, facts.evidence, facts.now_s):
        by = BY_EVIDENCE
    else:
        return None
    return _to_stage(1, replace(candidate, promoted_by=by, refusal=None), terms, facts)


def _go_on(candidate: Candidate, terms: RolloutTerms, facts: Facts) -> tuple[Candidate, Note] | None:
    """Back to shadow, or on to the next stage."""
    share = rollback_share(terms, facts.recent)
    if share is not None and terms.rollback is not None:
        refusal = Refusal(int(facts.now_s), candidate.stage, facts.generation, share, approval_name(facts.approval))
        back = replace(candidate, stage=0, stage_since_s=0, promoted_by="", refusal=refusal)
        most = percent_text(terms.rollback.rejected)
        message = f"it refused {percent_text(share)} of the requests it decided, more than {most}: back to shadow"
        return back, Note("RolledBack", message, warning=True)
    if stage_wait(terms, candidate, facts.now_s) is not None:
        return None
    return _to_stage(candidate.stage + 1, candidate, terms, facts)


def _to_stage(stage: int, candidate: Candidate, terms: RolloutTerms, facts: Facts) -> tuple[Candidate, Note]:
    stages = terms.all_stages
    moved = replace(candidate, stage=stage, stage_since_s=int(facts.now_s))
    if stage > len(stages):
        return moved, Note("Promoted", f"enforced for everybody, promoted by {candidate.promoted_by}")
    chosen = stages[stage - 1]
    who = f"plans {', '.join(chosen.plans)}" if chosen.plans else f"{chosen.percent} % of the subjects"
    return moved, Note("StageReached", f"stage {stage} of {len(stages)}: enforced for {who}")
