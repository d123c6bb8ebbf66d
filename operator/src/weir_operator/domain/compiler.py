# SPDX-License-Identifier: Apache-2.0
"""Policies and overrides to the ruleset of their gateway, and what is wrong with each of them.

Pure and independent of the order of its input; a bad object never changes what is compiled from another one, and a good
one only by the rules that it takes from the gateway's budget. Which objects are a gateway's is `attachment`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from weir_operator.domain.budget import Applicant, Budget
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.gateways import Jwt as JwtSettings
from weir_operator.domain.memory import Memory
from weir_operator.domain.outcomes import ACCEPTED, Outcome
from weir_operator.domain.overrides import OverrideCompiler
from weir_operator.domain.policy_checks import still_allowed
from weir_operator.domain.policy_compiler import compile_policy
from weir_operator.domain.problems import Problem, did_you_mean
from weir_operator.domain.ruleset import Jwt, Policy, Ruleset
from weir_operator.domain.shares import Shares
from weir_operator.domain.specs import OverrideInput, PolicyInput
from weir_operator.domain.wire_text import Texts


@dataclass(frozen=True, slots=True)
class Compiled:
    """A gateway's ruleset and the outcome of every object that went in, by its id (`namespace/name`)."""

    ruleset: Ruleset
    policies: Mapping[str, Outcome]
    overrides: Mapping[str, Outcome]


def compile_ruleset(
    policies: Iterable[PolicyInput],
    overrides: Iterable[OverrideInput],
    gateway: Gateway,
    previous: Ruleset | None,
    limiters: int = 1,
) -> Compiled:
    """What a new `Compiler` makes of one gateway's group."""
    return Compiler(gateway).compile(policies, overrides, previous, limiters)


class Compiler:
    """Compiles one gateway's group (`attachment.attach`) again and again, and anew only what has changed since.

    Its memory never shows: a new Compiler makes the same of the same input.
    """

    def __init__(
        self, gateway: Gateway, texts: Texts | None = None, closed_size: Callable[[Policy], int] = lambda _: 0
    ) -> None:
        """Take the gateway, what remembers the pieces' texts, and what Envoy's Closed list needs for a policy."""
        self._gateway = gateway
        self._own_texts = Texts() if texts is None else None  # whoever renders, sees to his himself
        self._shares = Shares(gateway.namespace_budget, texts or self._own_texts or Texts(), closed_size)
        self._compiled: Memory[Policy | tuple[Problem, ...]] = Memory()
        self._lasts: Memory[Policy | None] = Memory()
        self._budget = Budget(gateway.rule_budget)
        self._overrides = OverrideCompiler(gateway, self._shares)

    def compile(
        self,
        policies: Iterable[PolicyInput],
        overrides: Iterable[OverrideInput],
        previous: Ruleset | None,
        limiters: int = 1,
    ) -> Compiled:
        """Compile the group. `limiters`: how many share a limit that is split.

        `previous` is the live ruleset. From it the last accepted version of an object with problems is kept, as long
        as the gateway's settings still allow it and, for an override, as long as its policy still has such rules.
        """
        before = previous or Ruleset(self._gateway.name)
        pieces, outcomes = self._policies(policies, {piece.id: piece for piece in before.policies})
        placed = self._overrides.compile(overrides, pieces, outcomes, before.overrides)
        split = any(rule.is_split for piece in pieces.values() for rule in piece.rules)
        crowd = limiters if split else None  # where nothing is split, their number must not rewrite the rules
        ruleset = Ruleset(self._gateway.name, tuple(pieces.values()), placed.ordered, _jwt(self._gateway), crowd)
        if self._own_texts is not None:
            self._own_texts.keep((*ruleset.policies, *ruleset.overrides))
        return Compiled(ruleset, outcomes, placed.outcomes)

    def _policies(
        self, policies: Iterable[PolicyInput], running: Mapping[str, Policy]
    ) -> tuple[dict[str, Policy], dict[str, Outcome]]:
        """The compiled policies, sorted, and the outcome of each, by id."""
        self._compiled.begin_pass()
        self._lasts.begin_pass()
        inputs = {item.meta.id: item for item in sorted(policies, key=lambda item: item.meta.id)}
        pieces: dict[str, Policy] = {}
        outcomes: dict[str, Outcome] = {}
        applicants: list[Applicant] = []
        lasts = {name: self._last_version(policy, running.get(name)) for name, policy in inputs.items()}
        for name, policy in inputs.items():
            result, last = self._compile(policy), lasts[name]
            if isinstance(result, Policy):
                pieces[name], outcomes[name] = result, ACCEPTED
                applicants.append(Applicant(result, policy.meta.created_at, instead=last))
                continue
            outcomes[name] = _refused(result, last)
            if last is not None:
                pieces[name] = last
                applicants.append(Applicant(last, policy.meta.created_at, fixed=True))
        for judge in (self._shares.policies_over, self._budget.exceeded_by):
            refused = judge(applicants)
            for name, problem in refused.items():
                outcomes[name] = _refused((problem,), lasts[name])
                if (last := lasts[name]) is not None:
                    pieces[name] = last
                else:
                    del pieces[name]
            if refused:
                applicants = [left for a in applicants if (left := a.left_over(a.policy.id in refused)) is not None]
        return pieces, outcomes

    def _compile(self, policy: PolicyInput) -> Policy | tuple[Problem, ...]:
        def make(_: object) -> Policy | tuple[Problem, ...]:
            if isinstance(policy.spec, tuple):
                return policy.spec
            if policy.gateway != self._gateway.name:
                return (unknown_gateway(policy.gateway, [self._gateway.name]),)
            return compile_policy(policy.meta, policy.spec, self._gateway)

        return self._compiled.recall(policy.meta.id, (policy,), make)

    def _last_version(self, policy: PolicyInput, running: Policy | None) -> Policy | None:
        """The version that stays if the policy is refused as it is now."""
        # A later generation than the object's own is of an object of the same name that was deleted since.
        if running is None or running.generation > policy.meta.generation:
            return None

        def make(_: object) -> Policy | None:
            return running if still_allowed(running, policy.meta.namespace, self._gateway) else None

        return self._lasts.recall(policy.meta.id, (running,), make)


def unknown_gateway(name: str, known: Iterable[str]) -> Problem:
    """The problem of a policy whose gateway does not exist."""
    return Problem("spec.gateway", Reason.UNKNOWN_GATEWAY, f'there is no gateway "{name}"', did_you_mean(name, known))


def _refused(problems: tuple[Problem, ...], last: Policy | None) -> Outcome:
    return Outcome(problems) if last is None else Outcome(problems, kept=True, kept_generation=last.generation)


def _jwt(gateway: Gateway) -> Jwt | None:
    settings = gateway.jwt
    return None if settings == JwtSettings() else Jwt(settings.metadata_namespace, settings.payload_key)
