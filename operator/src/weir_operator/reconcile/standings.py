# SPDX-License-Identifier: Apache-2.0
"""What is remembered of one policy's rollout, and how it is taken up from the object's status.

Owns which of the two holds: the status, once it has said what was decided here; until then, what was decided here. So a
lost or slow status write decides nothing anew, and a status that was deleted is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weir_operator.api.rule_states import parse_rule_states
from weir_operator.domain.evidence import Evidence, RuleKey
from weir_operator.domain.interventions import NO_INTERVENTIONS, Interventions
from weir_operator.domain.modes import Slot
from weir_operator.domain.rollout import Note
from weir_operator.domain.rollout_gates import refit
from weir_operator.domain.rollout_state import RuleState
from weir_operator.domain.rollout_terms import RolloutTerms
from weir_operator.domain.ruleset import Policy, Rule
from weir_operator.reconcile.ports import Object

States = Mapping[str, RuleState]


@dataclass(slots=True)
class Standing:
    """One policy's rollout as it was last decided."""

    uid: str
    obj: Object
    terms: RolloutTerms
    states: States
    written: bool
    """Whether the object's status has said so since; if not, it is older than what was decided."""
    rules: tuple[Rule, ...] = ()
    interventions: Interventions = NO_INTERVENTIONS
    notes: tuple[tuple[str, Note], ...] = ()
    """What nobody has been told yet."""
    compiled: Policy | None = None
    planned: Policy | None = None
    """What became of `compiled`."""
    frozen: bool = False
    """Whether the spec is refused now: what runs, runs on as it is."""
    shown: dict[str, Evidence] = field(default_factory=dict)
    """What was last said of each rule's evidence."""
    said: Mapping[str, Any] | None = None
    """What was last said of the rules; None: something has changed since."""
    heard: int = 0
    """How much had been counted by then: `Ledger.heard`."""
    reword_s: float = float("inf")
    """When time alone changes it."""


def taken_up(known: Standing | None, terms: RolloutTerms, obj: Object) -> Standing:
    """Return the standing to go on from: what is remembered, or what the object's status says."""
    uid, said = str(obj["metadata"]["uid"]), parse_rule_states(obj.get("status"))
    if known is None or known.uid != uid:
        known = Standing(uid, obj, terms, said, written=True)
        known.shown = {name: state.evidence for name, state in said.items() if state.evidence is not None}
    elif known.written or decisions(said) == decisions(known.states):
        known.states, known.written = _with_numbers(said, known.states), True
    if known.terms != terms:
        refitted = {name: _refit(state, known.terms, terms) for name, state in known.states.items()}
        if refitted != known.states:
            known.states, known.written = refitted, False
    known.obj, known.terms = obj, terms
    return known


def key_of(policy_id: str, rule: Rule) -> RuleKey:
    """Return what the counts of a rule's entry go by."""
    return RuleKey(policy_id, rule.name, slot_text(rule.slot), rule.version or "")


def decisions(states: States) -> dict[str, RuleState]:
    """Return what was decided, without what is only counted, and numbers that stand in the spec as well."""
    return {
        name: replace(state, evidence=None, active=state.active and replace(state.active, rule=None))
        for name, state in states.items()
    }


def _refit(state: RuleState, before: RolloutTerms, now: RolloutTerms) -> RuleState:
    return replace(state, candidate=state.candidate and refit(state.candidate, before, now))


def _with_numbers(said: States, known: States) -> States:
    """Return what the status says, with the numbers that are remembered where it leaves them out."""
    whole = dict(said)
    for name, state in said.items():
        ours = known.get(name)
        if state.active is None or ours is None or ours.active is None or state.active.rule is not None:
            continue
        if ours.active.limit == state.active.limit:
            whole[name] = replace(state, active=ours.active)
    return whole


def slot_text(slot: Slot | None) -> str | None:
    """Return a slot as limiters and statuses spell it."""
    return None if slot is None else str(slot)
