# SPDX-License-Identifier: Apache-2.0
"""What a pass would make of one object if the API server stored it as it is now.

The same parsing, attachment and compiler as a real pass, over the same caches, so that nothing is refused here that a
pass would accept. Writes nothing and tells nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.attachment import attach
from weir_operator.domain.compiler import Compiler
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.neighbourhood import neighbours_of
from weir_operator.domain.problems import Problem
from weir_operator.domain.specs import OverrideInput, PolicyInput
from weir_operator.domain.surprises import surprises_of
from weir_operator.reconcile.ports import POLICIES, Object, Resource
from weir_operator.reconcile.store import Store


@dataclass(frozen=True, slots=True)
class Foresight:
    """What would become of the object: `problems` for which it would not be accepted, and what is only surprising."""

    problems: tuple[Problem, ...] = ()
    surprises: tuple[str, ...] = ()


class Rehearsal:
    """Rehearses one object after the other; remembers what was compiled, as a gateway's turn does."""

    def __init__(self, store: Store, gateways: Sequence[Gateway]) -> None:
        self._store = store
        self._gateways = tuple(gateways)
        self._compilers = {gateway.name: Compiler(gateway) for gateway in gateways}

    def of(self, resource: Resource, obj: Object) -> Foresight:
        """Rehearse a policy or an override."""
        return self._policy(parse_policy(obj)) if resource == POLICIES else self._override(parse_override(obj))

    def _policy(self, policy: PolicyInput) -> Foresight:
        others = neighbours_of(policy, (one for one in self._store.policies() if one.meta.id != policy.meta.id))
        attachment = attach((*others, policy), (), self._gateways, self._store.live)
        lost = attachment.policies.get(policy.meta.id)
        if lost is not None:
            return Foresight(lost.problems)
        for name, group in attachment.groups.items():
            if any(one.meta.id == policy.meta.id for one in group.policies):
                compiled = self._compilers[name].compile(group.policies, (), self._store.live.get(name))
                outcome = compiled.policies[policy.meta.id]
                if not outcome.accepted:
                    return Foresight(outcome.problems)
                pieces = {piece.id: piece for piece in compiled.ruleset.policies}
                piece = pieces.pop(policy.meta.id)
                return Foresight(surprises=tuple(surprises_of(piece, pieces.values())))
        return Foresight()

    def _override(self, override: OverrideInput) -> Foresight:
        policies = tuple(one for one in self._store.policies() if one.meta.id == override.policy_id)
        attachment = attach(policies, (override,), self._gateways, self._store.live)
        lost = attachment.overrides.get(override.meta.id)
        if lost is not None:
            return _patient(lost.problems)
        for gateway in self._gateways:
            group = attachment.groups[gateway.name]
            if group.overrides:
                # The policy alone: its neighbours change nothing of what an override may say.
                compiled = Compiler(gateway).compile(
                    group.policies, group.overrides, self._store.live.get(gateway.name)
                )
                return _patient(compiled.overrides[override.meta.id].problems)
        return Foresight()


def _patient(problems: tuple[Problem, ...]) -> Foresight:
    """Whoever applies a folder applies it in any order: the policy may be the next object."""
    absent = tuple(problem for problem in problems if problem.reason is Reason.POLICY_NOT_FOUND)
    wrong = tuple(problem for problem in problems if problem not in absent)
    return Foresight(wrong, () if wrong else tuple(str(replace(problem, hint="")) for problem in absent))
