# SPDX-License-Identifier: Apache-2.0
"""Policies and overrides to the ruleset of their gateway, and what is wrong with each of them.

Pure and independent of the order of its input; a bad object never changes what is compiled from another one.
Which objects are a gateway's is `attachment`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.override_compiler import compile_override, still_fits
from weir_operator.domain.policy_checks import still_allowed
from weir_operator.domain.policy_compiler import compile_policy
from weir_operator.domain.precedence import in_order, outranked
from weir_operator.domain.problems import Problem, did_you_mean
from weir_operator.domain.ruleset import Override, Policy, Ruleset
from weir_operator.domain.specs import OverrideInput, PolicyInput


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one object.

    No `problems`: it is in the ruleset as written. Else `kept` says whether its last accepted version is still
    there, and `kept_generation` which one that is (policies only: the document has none for overrides).
    `notes` are remarks on an accepted object, such as who outranks it.
    """

    problems: tuple[Problem, ...] = ()
    kept: bool = False
    kept_generation: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the object is in the ruleset as written."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Compiled:
    """A gateway's ruleset and the outcome of every object that went in, by its id (`namespace/name`)."""

    ruleset: Ruleset
    policies: Mapping[str, Outcome]
    overrides: Mapping[str, Outcome]


def compile_ruleset(
    policies: Iterable[PolicyInput], overrides: Iterable[OverrideInput], gateway: Gateway, previous: Ruleset | None
) -> Compiled:
    """Compile one gateway's group (`attachment.attach`).

    `previous` is the live ruleset. From it the last accepted version of an object with problems is kept, as long
    as the gateway's settings still allow it and, for an override, as long as its policy still has such rules.
    """
    before = previous or Ruleset(gateway.name)
    kept_policies = {piece.id: piece for piece in before.policies}
    kept_overrides = {piece.id: piece for piece in before.overrides}
    pieces: dict[str, Policy] = {}
    policy_outcomes: dict[str, Outcome] = {}
    for policy in sorted(policies, key=lambda item: item.meta.id):
        piece, outcome = _policy(policy, gateway, kept_policies.get(policy.meta.id))
        policy_outcomes[policy.meta.id] = outcome
        if piece is not None:
            pieces[piece.id] = piece
    found: list[Override] = []
    override_outcomes: dict[str, Outcome] = {}
    created_at: dict[str, int] = {}
    for override in sorted(overrides, key=lambda item: item.meta.id):
        compiled, outcome = _override(override, pieces, policy_outcomes, kept_overrides.get(override.meta.id))
        override_outcomes[override.meta.id] = outcome
        created_at[override.meta.id] = override.meta.created_at
        if compiled is not None:
            found.append(compiled)
    ordered = in_order(found, created_at)
    for loser, notes in outranked(ordered).items():
        override_outcomes[loser] = replace(override_outcomes[loser], notes=notes)
    return Compiled(Ruleset(gateway.name, tuple(pieces.values()), ordered), policy_outcomes, override_outcomes)


def unknown_gateway(name: str, known: Iterable[str]) -> Problem:
    """The problem of a policy whose gateway does not exist."""
    return Problem("spec.gateway", Reason.UNKNOWN_GATEWAY, f'there is no gateway "{name}"', did_you_mean(name, known))


def policy_not_found(override: OverrideInput, ids: Iterable[str]) -> Problem:
    """The problem of an override whose policy does not exist in its namespace; `ids` are the policies that do."""
    namespace = override.meta.namespace
    names = [policy.removeprefix(f"{namespace}/") for policy in ids if policy.startswith(f"{namespace}/")]
    message = f'the namespace "{namespace}" has no policy "{override.policy}"'
    return Problem("spec.policyRef.name", Reason.POLICY_NOT_FOUND, message, did_you_mean(override.policy, names))


def policy_not_running(policy_id: str) -> Problem:
    """The problem of an override whose policy exists, but in no version that any gateway runs."""
    message = f'the policy "{policy_id}" is not accepted, so there is nothing to override'
    return Problem("spec.policyRef.name", Reason.CONFLICTED, message, "see the policy's own conditions")


def _policy(policy: PolicyInput, gateway: Gateway, running: Policy | None) -> tuple[Policy | None, Outcome]:
    if isinstance(policy.spec, tuple):
        result: Policy | tuple[Problem, ...] = policy.spec
    elif policy.gateway != gateway.name:
        result = (unknown_gateway(policy.gateway, [gateway.name]),)
    else:
        result = compile_policy(policy.meta, policy.spec, gateway)
    if isinstance(result, Policy):
        return result, Outcome()
    # A later generation than the object's own is of an object of the same name that was deleted since.
    if running is None or running.generation > policy.meta.generation:
        return None, Outcome(result)
    if not still_allowed(running, policy.meta.namespace, gateway):
        return None, Outcome(result)
    return running, Outcome(result, kept=True, kept_generation=running.generation)


def _override(
    override: OverrideInput, policies: Mapping[str, Policy], known: Iterable[str], running: Override | None
) -> tuple[Override | None, Outcome]:
    target = policies.get(override.policy_id)
    if isinstance(override.spec, tuple):
        result: Override | tuple[Problem, ...] = override.spec
    elif target is not None:
        result = compile_override(override.meta, override.spec, target)
    elif override.policy_id in known:
        result = (policy_not_running(override.policy_id),)
    else:
        result = (policy_not_found(override, known),)
    if isinstance(result, Override):
        return result, Outcome()
    host = policies.get(running.policy) if running is not None else None
    if running is None or host is None or not still_fits(running, host):
        return None, Outcome(result)
    return running, Outcome(result, kept=True)
