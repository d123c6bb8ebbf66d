# SPDX-License-Identifier: Apache-2.0
"""Policies and overrides to the ruleset of their gateway, and what is wrong with each of them.

Pure and independent of the order of its input; a bad object never changes what is compiled from another one, and a good
one only by the rules that it takes from the gateway's budget. Which objects are a gateway's is `attachment`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from weir_operator.domain.budget import Applicant, over_budget
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.gateways import Jwt as JwtSettings
from weir_operator.domain.override_compiler import compile_override, still_fits, subject_places
from weir_operator.domain.overriding import Override
from weir_operator.domain.policy_checks import still_allowed
from weir_operator.domain.policy_compiler import compile_policy
from weir_operator.domain.precedence import Defeat, defeats, in_order
from weir_operator.domain.problems import Problem, did_you_mean
from weir_operator.domain.ruleset import Jwt, Policy, Ruleset
from weir_operator.domain.specs import OverrideInput, OverrideSpec, PolicyInput

MAX_REMARKS = 8  # on one object; more would not be read


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
    policies: Iterable[PolicyInput],
    overrides: Iterable[OverrideInput],
    gateway: Gateway,
    previous: Ruleset | None,
    limiters: int = 1,
) -> Compiled:
    """Compile one gateway's group (`attachment.attach`). `limiters`: how many share a limit that is split.

    `previous` is the live ruleset. From it the last accepted version of an object with problems is kept, as long
    as the gateway's settings still allow it and, for an override, as long as its policy still has such rules.
    """
    before = previous or Ruleset(gateway.name)
    pieces, policy_outcomes = _policies(policies, gateway, {piece.id: piece for piece in before.policies})
    kept_overrides = {piece.id: piece for piece in before.overrides}
    inputs = {item.meta.id: item for item in sorted(overrides, key=lambda item: item.meta.id)}
    found: list[Override] = []
    outcomes: dict[str, Outcome] = {}
    for name, override in inputs.items():
        compiled, outcomes[name] = _override(override, pieces, policy_outcomes, kept_overrides.get(name), gateway)
        if compiled is not None:
            found.append(compiled)
    created_at = {name: item.meta.created_at for name, item in inputs.items()}
    ordered = in_order(found, created_at)
    for loser, lost in defeats(ordered, created_at).items():
        if outcomes[loser].accepted:  # a kept version is not what its object says, and that has problems of its own
            outcomes[loser] = replace(outcomes[loser], notes=_remarks(lost, inputs[loser], pieces))
    split = any(rule.is_split for piece in pieces.values() for rule in piece.rules)
    crowd = limiters if split else None  # where nothing is split, their number must not rewrite the rules
    ruleset = Ruleset(gateway.name, tuple(pieces.values()), ordered, _jwt(gateway), crowd)
    return Compiled(ruleset, policy_outcomes, outcomes)


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


def _policies(
    policies: Iterable[PolicyInput], gateway: Gateway, running: Mapping[str, Policy]
) -> tuple[dict[str, Policy], dict[str, Outcome]]:
    """The compiled policies and the outcome of each, by id."""
    inputs = {item.meta.id: item for item in sorted(policies, key=lambda item: item.meta.id)}
    pieces: dict[str, Policy] = {}
    outcomes: dict[str, Outcome] = {}
    applicants: list[Applicant] = []
    lasts = {name: _last_version(policy, gateway, running.get(name)) for name, policy in inputs.items()}
    for name, policy in inputs.items():
        result, last = _compile(policy, gateway), lasts[name]
        if isinstance(result, Policy):
            pieces[name], outcomes[name] = result, Outcome()
            applicants.append(Applicant(result, policy.meta.created_at, instead=last))
            continue
        outcomes[name] = _refused(result, last)
        if last is not None:
            pieces[name] = last
            applicants.append(Applicant(last, policy.meta.created_at, fixed=True))
    for name, problem in over_budget(applicants, gateway.rule_budget).items():
        outcomes[name] = _refused((problem,), lasts[name])
        if (last := lasts[name]) is not None:
            pieces[name] = last
        else:
            del pieces[name]
    return pieces, outcomes


def _compile(policy: PolicyInput, gateway: Gateway) -> Policy | tuple[Problem, ...]:
    if isinstance(policy.spec, tuple):
        return policy.spec
    if policy.gateway != gateway.name:
        return (unknown_gateway(policy.gateway, [gateway.name]),)
    return compile_policy(policy.meta, policy.spec, gateway)


def _last_version(policy: PolicyInput, gateway: Gateway, running: Policy | None) -> Policy | None:
    """The version that stays if the policy is refused as it is now."""
    # A later generation than the object's own is of an object of the same name that was deleted since.
    if running is None or running.generation > policy.meta.generation:
        return None
    return running if still_allowed(running, policy.meta.namespace, gateway) else None


def _refused(problems: tuple[Problem, ...], last: Policy | None) -> Outcome:
    return Outcome(problems) if last is None else Outcome(problems, kept=True, kept_generation=last.generation)


def _remarks(lost: Iterable[Defeat], loser: OverrideInput, policies: Mapping[str, Policy]) -> tuple[str, ...]:
    places = subject_places(loser.spec, policies[loser.policy_id]) if isinstance(loser.spec, OverrideSpec) else {}
    remarks = list(dict.fromkeys(defeat.remark(places[defeat.subject]) for defeat in lost if defeat.subject in places))
    more = len(remarks) - MAX_REMARKS
    return (*remarks[:MAX_REMARKS], *([f"and {more} more such"] if more > 0 else []))


def _jwt(gateway: Gateway) -> Jwt | None:
    settings = gateway.jwt
    return None if settings == JwtSettings() else Jwt(settings.metadata_namespace, settings.payload_key)


def _override(
    override: OverrideInput,
    policies: Mapping[str, Policy],
    known: Iterable[str],
    running: Override | None,
    gateway: Gateway,
) -> tuple[Override | None, Outcome]:
    target = policies.get(override.policy_id)
    if isinstance(override.spec, tuple):
        result: Override | tuple[Problem, ...] = override.spec
    elif target is not None:
        result = compile_override(override.meta, override.spec, target, gateway)
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
