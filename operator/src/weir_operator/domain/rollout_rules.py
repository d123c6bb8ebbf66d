# SPDX-License-Identifier: Apache-2.0
"""A policy's rules as its rollout has them run: one entry for a rule, or the enforced version and its candidate.

Owns modes, stages and slots of both, so that each request is enforced by exactly one of them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import Stage
from weir_operator.domain.rollout import Facts, Note, advance
from weir_operator.domain.rollout_gates import reached
from weir_operator.domain.rollout_state import RuleState
from weir_operator.domain.rollout_terms import RolloutTerms
from weir_operator.domain.ruleset import Policy, Rule
from weir_operator.domain.versions import limit_version, rule_version

EVERYBODY = 100  # percent


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy as it shall run, where its rules stand, and what happened to each."""

    policy: Policy
    states: tuple[RuleState, ...]
    notes: tuple[tuple[str, Note], ...] = ()


def plan_rollout(
    policy: Policy, terms: RolloutTerms, states: Mapping[str, RuleState], facts_of: Callable[[str], Facts]
) -> Plan:
    """Decide about every rule of a compiled policy; `facts_of` is asked by the rule's name."""
    rules: list[Rule] = []
    after: list[RuleState] = []
    notes: list[tuple[str, Note]] = []
    for rule in policy.rules:
        step = advance(rule, terms, states.get(rule.name, RuleState(rule.name)), facts_of(rule.name))
        rules += entries(rule, policy, terms, step.state)
        after.append(step.state)
        notes += ((rule.name, note) for note in step.notes)
    whole = policy if tuple(rules) == policy.rules else replace(policy, rules=tuple(rules))
    return Plan(whole, tuple(after), tuple(notes))


def entries(wanted: Rule, policy: Policy, terms: RolloutTerms, state: RuleState) -> list[Rule]:
    """The rule's one or two entries."""
    active, candidate = state.active, state.candidate
    if candidate is None:
        return [replace(wanted, slot=active.slot if active is not None else None)]
    new = replace(wanted, slot=candidate.slot)
    old = None
    if active is not None and active.rule is not None and active.limit != limit_version(wanted):
        numbers = replace(active.rule, name=wanted.name, mode=wanted.mode, slot=active.slot, version=None)
        old = replace(numbers, version=rule_version(numbers, policy))
    pair = _share_out(new, old, terms, candidate.stage) if wanted.mode is Mode.ENFORCE else (old, new)
    return [entry for entry in pair if entry is not None]


def _share_out(new: Rule, old: Rule | None, terms: RolloutTerms, stage: int) -> tuple[Rule | None, Rule]:
    """The two in mode Enforce: the candidate has those of its stages, the active version everybody else."""
    if stage == 0:
        return old, replace(new, mode=Mode.SHADOW)
    who = reached(terms, stage)
    if who.percent >= EVERYBODY:
        return replace(old, mode=Mode.SHADOW) if old is not None else None, new
    inside = Stage(Mode.ENFORCE, who.plans, who.percent)
    outside = replace(old, stage=replace(inside, mode=Mode.SHADOW)) if old is not None else None
    return outside, replace(new, mode=Mode.SHADOW, stage=inside)
