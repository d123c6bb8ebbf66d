# SPDX-License-Identifier: Apache-2.0
"""Where the rules of one gateway's policies stand, from one turn to the next.

Owns what is decided when, and from which facts. The decisions themselves are `domain.rollout`'s, what is remembered is
`standings`', what is shown `rollout_report`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weir_operator.api.intervening import parse_interventions
from weir_operator.domain.compiler import Compiled
from weir_operator.domain.evidence import Evidence, Recent, RuleKey
from weir_operator.domain.interventions import ALL_RULES
from weir_operator.domain.limits import Mode
from weir_operator.domain.rollout import Facts, Note, is_due
from weir_operator.domain.rollout_rules import Plan, plan_rollout
from weir_operator.domain.rollout_state import RuleState
from weir_operator.domain.rollout_terms import PLAIN, RolloutTerms
from weir_operator.domain.ruleset import Policy, Rule, Ruleset
from weir_operator.domain.specs import PolicyInput, PolicySpec
from weir_operator.reconcile.evidence import Ledger
from weir_operator.reconcile.ports import LimiterReport, Object
from weir_operator.reconcile.standings import Standing, decisions, key_of, slot_text, taken_up

EVIDENCE_EVERY_S = 5.0  # arbitrary: nobody follows a rollout by the second in a status


class Rollouts:
    """The rollouts of one gateway."""

    def __init__(self, now_s: float) -> None:
        self.ledger = Ledger(now_s)
        self._standings: dict[str, Standing] = {}
        self._shown_s = now_s
        self._in_force = True
        self._glass: frozenset[str] = frozenset()

    def of(self, policy_id: str) -> Standing | None:
        """Return where a policy stands; None if it has not been compiled without problems so far."""
        return self._standings.get(policy_id)

    def take_notes(self) -> list[tuple[Object, str, Note]]:
        """Return what has happened since the last call: the policy, the rule and what it was."""
        taken = [(each.obj, rule, note) for each in self._standings.values() for rule, note in each.notes]
        for each in self._standings.values():
            each.notes = ()
        return taken

    def unwritten(self) -> list[str]:
        """Return the policies that were just decided about and whose status does not say so."""
        return [policy_id for policy_id, each in self._standings.items() if each.notes and not each.written]

    def has_news(self, now_s: float) -> bool:
        """Whether there is evidence that no status was written with, at most once in a while."""
        if not self.ledger.counted or now_s - self._shown_s < EVIDENCE_EVERY_S:
            return False
        self.ledger.counted, self._shown_s = False, now_s
        return True

    def fold(
        self,
        compiled: Compiled,
        policies: Iterable[PolicyInput],
        objects: Mapping[str, Object],
        previous: Ruleset,
        now_s: float,
    ) -> Compiled:
        """Return what was compiled as it shall run now. A version that was kept, since the spec is refused, runs on."""
        inputs = {policy.meta.id: policy for policy in policies}
        running = {piece.id: piece for piece in previous.policies}
        self._standings = {name: each for name, each in self._standings.items() if name in inputs}
        pieces = []
        for piece in compiled.ruleset.policies:
            spec = inputs[piece.id].spec
            if isinstance(spec, PolicySpec) and compiled.policies[piece.id].accepted:
                pieces.append(self._decide(piece, spec.rollout, objects[piece.id], running.get(piece.id), now_s))
                continue
            pieces.append(piece)
            if (standing := self._standings.get(piece.id)) is not None:
                standing.frozen = True
        self.ledger.keep_only(key_of(piece.id, rule) for piece in pieces for rule in piece.rules)
        return replace(compiled, ruleset=replace(compiled.ruleset, policies=tuple(pieces)))

    def hear(self, reports: Sequence[LimiterReport], *, published: bool) -> None:
        """Take the counts, and what tells whether what was decided is in force: else the stages' time stops."""
        self.ledger.hear(reports)
        self._in_force = published and (not reports or any(not report.error for report in reports))
        self._glass = frozenset(name for report in reports for name in report.break_glass)

    def is_due(self, now_s: float) -> bool:
        """Whether time or evidence would move any candidate now."""
        return not all(self._is_settled(*each, now_s) for each in self._standings.items())

    def _is_settled(self, policy_id: str, standing: Standing, now_s: float) -> bool:
        if standing.terms == PLAIN or standing.frozen:
            return True
        return not any(
            is_due(state.candidate, standing.terms, self._facts(policy_id, standing, state, now_s, None))
            for state in standing.states.values()
            if state.candidate is not None
        )

    def _decide(self, piece: Policy, terms: RolloutTerms, obj: Object, running: Policy | None, now_s: float) -> Policy:
        known = self._standings.get(piece.id)
        same = known is not None and not known.frozen and known.obj is obj and known.compiled is piece
        if known is not None and same and self._is_settled(piece.id, known, now_s):
            return known.planned or piece
        standing = self._standings[piece.id] = taken_up(known, terms, obj)
        numbers = {(rule.name, rule.slot): rule for rule in running.rules} if running is not None else {}
        standing.interventions = parse_interventions(obj.get("status"))
        standing.compiled, standing.frozen = piece, False

        def facts_of(name: str) -> Facts:
            state = standing.states.get(name, RuleState(name))
            active = numbers.get((name, state.active.slot)) if state.active is not None else None
            return self._facts(piece.id, standing, state, now_s, active)

        plan = plan_rollout(piece, terms, standing.states, facts_of)
        self._note(piece.id, standing, plan)
        return plan.policy

    def _facts(self, policy_id: str, standing: Standing, state: RuleState, now_s: float, running: Rule | None) -> Facts:
        mode = standing.compiled.rules[0].mode if standing.compiled is not None else Mode.SHADOW
        switches = (standing.interventions.kill_switches.get(name) for name in (state.name, ALL_RULES))
        switched = any(switch is not None and switch.is_live(now_s) for switch in switches)
        names = (ALL_RULES, policy_id, f"{policy_id}/{state.name}")
        evidence: Evidence | None = None
        recent: Recent | None = None
        candidate = state.candidate
        if candidate is not None and standing.terms != PLAIN:
            key = RuleKey(policy_id, state.name, slot_text(candidate.slot), candidate.version)
            evidence = self.ledger.evidence(key, candidate.since_s, standing.shown.get(state.name), now_s)
            if candidate.stage and standing.terms.rollback is not None:
                recent = self.ledger.recent(key, standing.terms.rollback.for_s, now_s)
        return Facts(
            now_s=now_s,
            generation=standing.obj["metadata"]["generation"],
            enforces=mode is Mode.ENFORCE and not switched and self._in_force and self._glass.isdisjoint(names),
            mode=mode,
            approval=standing.interventions.approvals.get(state.name),
            evidence=evidence,
            recent=recent,
            running=running,
        )

    def _note(self, policy_id: str, standing: Standing, plan: Plan) -> None:
        before, after = standing.states, {state.name: state for state in plan.states}
        for name, state in after.items():
            old = before.get(name, RuleState(name)).candidate
            if state.candidate is not None and state.candidate.stage and (old is None or not old.stage_since_s):
                self.ledger.start_watching(
                    RuleKey(policy_id, name, slot_text(state.candidate.slot), state.candidate.version)
                )
        if decisions(after) != decisions(before):
            standing.written = False
        standing.states, standing.rules, standing.planned, standing.said = after, plan.policy.rules, plan.policy, None
        standing.notes += plan.notes
