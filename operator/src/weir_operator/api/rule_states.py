# SPDX-License-Identifier: Apache-2.0
"""Where rules stand, from an object's `status.rules` and into it.

What cannot be read counts as not there: the rule falls back to shadow, which is the most that a status from another
version, or from somebody's hand, may do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from weir_operator.api.rollout_status import ActiveStatus, CandidateStatus, EvidenceStatus, RuleStatus
from weir_operator.api.types import parse_time_s
from weir_operator.domain.evidence import Evidence
from weir_operator.domain.modes import Slot
from weir_operator.domain.rollout_state import Active, Candidate, Refusal, RuleState
from weir_operator.domain.rollout_terms import parse_percent, percent_text
from weir_operator.domain.ruleset import Rule, canonical_json
from weir_operator.domain.times import time_text
from weir_operator.domain.wire import DocumentError, decode, encode


def parse_rule_states(status: Mapping[str, Any] | None) -> dict[str, RuleState]:
    """Return what a policy's status says, by rule."""
    found = (status or {}).get("rules")
    entries = found if isinstance(found, list) else ()
    states = (_state(entry) for entry in entries)
    return {state.name: state for state in states if state is not None}


def state_members(state: RuleState) -> dict[str, Any]:
    """Return the members of a rule's entry that its state is made of."""
    members = {
        "active": state.active and _active(state.active),
        "candidate": state.candidate and _shown(state.candidate),
    }
    evidence = state.evidence and _evidence(state.evidence)
    return {name: value for name, value in {**members, "evidence": evidence}.items() if value}


def _state(entry: object) -> RuleState | None:
    try:
        read = RuleStatus.model_validate_json(json.dumps(entry))
        active = _read_active(read.active) if read.active is not None else None
    except (ValidationError, DocumentError, ValueError, RecursionError):
        return None
    candidate = _read_candidate(read.candidate) if read.candidate is not None else None
    return RuleState(read.name, active, candidate, _read_evidence(read.evidence) if read.evidence else None)


def _active(active: Active) -> dict[str, Any]:
    rule = canonical_json(encode(active.rule)).decode() if active.rule is not None else None
    return _given(generation=active.generation, limit=active.limit, slot=_slot(active.slot), rule=rule)


def _read_active(read: ActiveStatus) -> Active:
    rule = decode(Rule, json.loads(read.rule)) if read.rule is not None else None
    return Active(read.limit, read.generation, read.slot, rule)


def _shown(candidate: Candidate) -> dict[str, Any]:
    refusal = candidate.refusal
    rolled_back = refusal and _given(
        at=time_text(refusal.at_s),
        stage=refusal.stage,
        generation=refusal.generation,
        rejected=percent_text(refusal.rejected),
        approval=refusal.approval or None,
    )
    return _given(
        limit=candidate.limit,
        version=candidate.version,
        since=time_text(candidate.since_s),
        slot=_slot(candidate.slot),
        stage=candidate.stage,
        stageSince=time_text(candidate.stage_since_s) if candidate.stage and candidate.stage_since_s else None,
        promotedBy=candidate.promoted_by or None,
        rolledBack=rolled_back,
    )


def _read_candidate(read: CandidateStatus) -> Candidate:
    back, refusal = read.rolled_back, None
    if back is not None:
        rejected = parse_percent(back.rejected) or 0
        refusal = Refusal(parse_time_s(back.at), back.stage, back.generation, rejected, back.approval or "")
    return Candidate(
        limit=read.limit,
        version=read.version,
        since_s=parse_time_s(read.since),
        slot=read.slot,
        stage=read.stage,
        stage_since_s=parse_time_s(read.stage_since) if read.stage_since else 0,
        promoted_by=read.promoted_by or "",
        refusal=refusal,
    )


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "version": evidence.version,
        "since": time_text(evidence.since_s),
        "asOf": time_text(evidence.as_of_s),
        "requests": evidence.requests,
        "wouldReject": evidence.would_reject,
        "rejected": evidence.rejected,
        "share": percent_text(evidence.share),
        "subjects": evidence.subjects,
        "top": [{"subject": subject, "count": count} for subject, count in evidence.top],
    }


def _read_evidence(read: EvidenceStatus) -> Evidence:
    return Evidence(
        version=read.version,
        since_s=parse_time_s(read.since),
        as_of_s=parse_time_s(read.as_of),
        requests=read.requests,
        would_reject=read.would_reject,
        rejected=read.rejected,
        subjects=read.subjects,
        top=tuple((each.subject, each.count) for each in read.top),
    )


def _slot(slot: Slot | None) -> str | None:
    return None if slot is None else str(slot)


def _given(**members: Any) -> dict[str, Any]:
    """Return what is there; the API server keeps no null."""
    return {name: value for name, value in members.items() if value is not None}
