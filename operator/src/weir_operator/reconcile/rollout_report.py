# SPDX-License-Identifier: Apache-2.0
"""What a policy's status says of its rules: where each stands, why, and what was counted.

Owns the words. Pure, and without numbers that move by themselves: what counts up stands in the evidence, which changes
only when a person would see the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weir_operator.api.rule_states import state_members
from weir_operator.domain.evidence import Evidence, shown
from weir_operator.domain.interventions import ALL_RULES
from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import weakest
from weir_operator.domain.rollout_gates import shadow_waits, stage_wait
from weir_operator.domain.rollout_state import Candidate, RuleState
from weir_operator.domain.rollout_terms import OnChange, RolloutTerms, percent_text
from weir_operator.domain.ruleset import Rule
from weir_operator.domain.times import time_text
from weir_operator.reconcile.rollouts import Rollouts
from weir_operator.reconcile.standings import Standing, key_of

MAX_WHY = 1024


def rule_members(policy_id: str, rollouts: Rollouts, now_s: float) -> Mapping[str, Any]:
    """Return the members of a policy's status that are about its rules; none while it is not accepted."""
    standing = rollouts.of(policy_id)
    if standing is None or standing.frozen:
        return {}
    heard = rollouts.ledger.heard
    if standing.said is not None and standing.heard == heard and now_s < standing.reword_s:
        return standing.said
    standing.heard, before = heard, dict(standing.shown)
    found = {state.name: _evidence(policy_id, standing, state, rollouts, now_s) for state in standing.states.values()}
    same = all(found[name] is before.get(name) for name in found)
    if standing.said is not None and same and now_s < standing.reword_s:
        return standing.said
    states = [replace(state, evidence=found[state.name]) for state in standing.states.values()]
    share = max((evidence.share for evidence in found.values()), default=0)
    standing.said = {
        "rules": [_entry(standing, state, now_s) for state in states],
        "wouldReject": percent_text(share),
    }
    standing.reword_s = min(_turns(standing, states, now_s), default=float("inf"))
    return standing.said


def _turns(standing: Standing, states: Sequence[RuleState], now_s: float) -> Iterator[float]:
    """Yield the times at which what is said changes by itself."""
    for switch in standing.interventions.kill_switches.values():
        if switch.not_after is not None and switch.is_live(now_s):
            yield float(switch.not_after)
    for state in states:
        if state.candidate is None or state.candidate.stage:
            continue
        for wait in shadow_waits(standing.terms, state.candidate, state.evidence, now_s):
            if wait.until_s is not None:
                yield wait.until_s


def _entry(standing: Standing, state: RuleState, now_s: float) -> dict[str, Any]:
    mode = standing.compiled.rules[0].mode if standing.compiled is not None else Mode.SHADOW
    switches = standing.interventions.kill_switches
    live = [
        switch.mode
        for name in (state.name, ALL_RULES)
        if (switch := switches.get(name)) is not None and switch.is_live(now_s)
    ]
    first = next(rule for rule in standing.rules if rule.name == state.name)
    kept = state
    if state.active is not None and standing.terms.on_change is OnChange.IMMEDIATE and state.candidate is None:
        kept = replace(state, active=replace(state.active, rule=None))  # the spec has them
    return {
        "name": state.name,
        "mode": str(mode),
        "effectiveMode": str(weakest((first.mode, *live))),
        "stage": _stage(mode, standing.terms, state),
        "why": _why(mode, standing.terms, state, now_s)[:MAX_WHY],
        **state_members(kept),
    }


def _stage(mode: Mode, terms: RolloutTerms, state: RuleState) -> str:
    candidate = state.candidate
    if mode is not Mode.ENFORCE:
        return str(mode)
    if candidate is None:
        return "Enforced"
    if candidate.refusal is not None:
        return "RolledBack"
    return f"{candidate.stage}/{len(terms.all_stages)}" if candidate.stage else "Shadow"


def _why(mode: Mode, terms: RolloutTerms, state: RuleState, now_s: float) -> str:
    candidate, active = state.candidate, state.active
    if mode is not Mode.ENFORCE:
        return f"the policy's mode is {mode}"
    if candidate is None:
        return f"enforced for everybody since generation {active.generation}" if active is not None else ""
    beside = f"; meanwhile generation {active.generation} is enforced" if active is not None else ""
    return _waiting(terms, candidate, state.evidence, now_s) + beside


def _waiting(terms: RolloutTerms, candidate: Candidate, evidence: Evidence | None, now_s: float) -> str:
    if candidate.refusal is not None:
        refusal = candidate.refusal
        return (
            f"rolled back at {time_text(refusal.at_s)} from stage {refusal.stage}: it refused "
            f"{percent_text(refusal.rejected)} of the requests it decided; "
            "waits for a new generation, or for a person to promote it again"
        )
    if candidate.stage:
        wait = stage_wait(terms, candidate, now_s)
        return f"promoted by {candidate.promoted_by}; " + (wait.message if wait is not None else "goes on")
    return "; ".join(wait.message for wait in shadow_waits(terms, candidate, evidence, now_s)) or "goes on"


def _evidence(policy_id: str, standing: Standing, state: RuleState, rollouts: Rollouts, now_s: float) -> Evidence:
    """Return the evidence of the newest version, as it shall stand in the status."""
    rule = _newest(standing, state)
    key, before = key_of(policy_id, rule), standing.shown.get(state.name)
    if state.candidate is not None:
        since_s = state.candidate.since_s
    else:
        since_s = before.since_s if before is not None and before.version == key.version else int(now_s)
    current = rollouts.ledger.evidence(key, since_s, before, now_s)
    standing.shown[state.name] = shown(before, current)
    return standing.shown[state.name]


def _newest(standing: Standing, state: RuleState) -> Rule:
    version: Mapping[object, Rule] = {rule.slot: rule for rule in standing.rules if rule.name == state.name}
    known = state.candidate or state.active
    return version[known.slot if known is not None else None]
