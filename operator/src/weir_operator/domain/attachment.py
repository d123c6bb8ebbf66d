# SPDX-License-Identifier: Apache-2.0
"""Which gateway is responsible for which object.

A policy belongs to the gateway that it names, an override to its policy's. An object whose reference leads
nowhere stays with the gateway that still runs its last accepted version, so that a typo ends no limit; where
none does, its outcome is settled here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weir_operator.domain.compiler import unknown_gateway
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.overrides import names_by_namespace, policy_not_found, policy_not_running
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Ruleset
from weir_operator.domain.specs import OverrideInput, PolicyInput


@dataclass(frozen=True, slots=True)
class Group:
    """The objects that are one gateway's business."""

    policies: tuple[PolicyInput, ...] = ()
    overrides: tuple[OverrideInput, ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """Which gateway compiles which objects (every gateway is a key), and the outcome of those that none can take."""

    groups: Mapping[str, Group]
    policies: Mapping[str, Outcome] = field(default_factory=dict)
    overrides: Mapping[str, Outcome] = field(default_factory=dict)


def attach(
    policies: Iterable[PolicyInput],
    overrides: Iterable[OverrideInput],
    gateways: Sequence[Gateway],
    previous: Mapping[str, Ruleset],
) -> Attachment:
    """Sort all objects of the cluster by gateway. `previous` are the live rulesets by gateway name.

    A policy that moves to another gateway leaves the old one at once, whether or not the new one accepts it.
    """
    names = {gateway.name for gateway in gateways}
    runs = {p.id: name for name, ruleset in previous.items() if name in names for p in ruleset.policies}
    overridden = {o.id: name for name, ruleset in previous.items() if name in names for o in ruleset.overrides}
    groups: dict[str, tuple[list[PolicyInput], list[OverrideInput]]] = {name: ([], []) for name in sorted(names)}
    lost_policies: dict[str, Outcome] = {}
    lost_overrides: dict[str, Outcome] = {}
    home: dict[str, str] = {}
    for policy in sorted(policies, key=lambda item: item.meta.id):
        known = policy.gateway in names
        blamed = policy if known else _blame_policy(policy, unknown_gateway(policy.gateway, names))
        where = policy.gateway if known else runs.get(policy.meta.id, "")
        home[policy.meta.id] = where
        if where:
            groups[where][0].append(blamed)
        else:
            lost_policies[policy.meta.id] = Outcome(_problems(blamed.spec))
    beside = names_by_namespace(home)
    for override in sorted(overrides, key=lambda item: item.meta.id):
        target = home.get(override.policy_id, "")
        stray = override if target else _blame_override(override, _no_policy(override, home, beside))
        where = target or overridden.get(override.meta.id, "")
        if where:
            groups[where][1].append(stray)
        else:
            lost_overrides[override.meta.id] = Outcome(_problems(stray.spec))
    return Attachment(
        {name: Group(tuple(own), tuple(theirs)) for name, (own, theirs) in groups.items()},
        lost_policies,
        lost_overrides,
    )


def _no_policy(override: OverrideInput, home: Mapping[str, str], names: Mapping[str, tuple[str, ...]]) -> Problem:
    if override.policy_id not in home:
        return policy_not_found(override, names.get(override.meta.namespace, ()))
    return policy_not_running(override.policy_id)


def _blame_policy(policy: PolicyInput, problem: Problem) -> PolicyInput:
    # An unreadable reference has its own problem already, from parsing.
    return replace(policy, spec=(*_problems(policy.spec), *((problem,) if policy.gateway else ())))


def _blame_override(override: OverrideInput, problem: Problem) -> OverrideInput:
    return replace(override, spec=(*_problems(override.spec), *((problem,) if override.policy else ())))


def _problems(spec: object) -> tuple[Problem, ...]:
    return spec if isinstance(spec, tuple) else ()
