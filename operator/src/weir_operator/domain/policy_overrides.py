# SPDX-License-Identifier: Apache-2.0
"""All overrides of one policy, compiled together: what each of them is, and in which order they hold.

Overrides of different policies never meet, so that after an edit only those of one policy are looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir_operator.domain.override_compiler import compile_override, subject_places
from weir_operator.domain.override_target import Target
from weir_operator.domain.overriding import Override
from weir_operator.domain.precedence import Defeat, defeats, in_order
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.specs import OverrideInput, OverrideSpec

MAX_REMARKS = 8  # on one object; more would not be read

Found = Override | tuple[Problem, ...]
Judge = Target | Callable[[OverrideInput], Problem]


@dataclass(frozen=True, slots=True)
class PolicyOverrides:
    """What became of the overrides that refer to one policy, by id."""

    policy: Policy | None
    """What they were compiled against; None where no version runs."""
    inputs: Mapping[str, OverrideInput]
    good: Mapping[str, Override]
    faulty: Mapping[str, tuple[Problem, ...]]

    def without(self, refused: Mapping[str, Problem]) -> PolicyOverrides:
        """The same, but for those that find no room."""
        if self.good.keys().isdisjoint(refused):
            return self
        good = {name: override for name, override in self.good.items() if name not in refused}
        faulty = {name: (refused[name],) for name in self.good if name in refused}
        return PolicyOverrides(self.policy, self.inputs, good, {**self.faulty, **faulty})


@dataclass(frozen=True, slots=True)
class Ranking:
    """The overrides that hold for one policy by precedence, and the remarks on those that lose, by id."""

    ordered: tuple[Override, ...]
    remarks: Mapping[str, tuple[str, ...]]


def compile_overrides(
    inputs: Iterable[OverrideInput], judge: Judge, before: PolicyOverrides | None = None
) -> PolicyOverrides:
    """Compile them against their policy as it runs; without one, `judge` gives the problem of each.

    Those that were found good `before`, against the same rules, stay as they were.
    """
    policy = judge.policy if isinstance(judge, Target) else None
    known = before if before is not None and _same_rules(before.policy, policy) else None

    def find(override: OverrideInput) -> Found:
        if isinstance(override.spec, tuple):
            return override.spec
        return (
            compile_override(override.meta, override.spec, judge) if isinstance(judge, Target) else (judge(override),)
        )

    by_id = {override.meta.id: override for override in inputs}
    good: dict[str, Override] = {}
    faulty: dict[str, tuple[Problem, ...]] = {}
    for name, override in by_id.items():
        stays = known is not None and known.inputs.get(name) is override and name in known.good
        found = known.good[name] if known is not None and stays else find(override)
        if isinstance(found, Override):
            good[name] = found
        else:
            faulty[name] = found
    return PolicyOverrides(policy, by_id, good, faulty)


def rank(own: PolicyOverrides | None, kept: Sequence[tuple[Override, OverrideInput]], target: Target) -> Ranking:
    """Put a policy's overrides in order, with those that are `kept` as last accepted, each with its object."""
    good, objects = (own.good, own.inputs) if own is not None else ({}, {})
    created_at = {name: objects[name].meta.created_at for name in good}
    created_at |= {override.id: item.meta.created_at for override, item in kept}
    ordered = in_order([*good.values(), *(override for override, _ in kept)], created_at)
    # A kept version is not what its object says, and that has problems of its own.
    lost = {name: found for name, found in defeats(ordered, created_at).items() if name in good}
    return Ranking(ordered, {name: _remarks(found, objects[name], target) for name, found in lost.items()})


def _same_rules(before: Policy | None, now: Policy | None) -> bool:
    """Whether overrides that were good beside one are the same beside the other."""
    return before is not None and now is not None and (before.id, before.rules) == (now.id, now.rules)


def _remarks(lost: Iterable[Defeat], loser: OverrideInput, target: Target) -> tuple[str, ...]:
    places = subject_places(loser.spec, target) if isinstance(loser.spec, OverrideSpec) else {}
    remarks = list(dict.fromkeys(defeat.remark(places[defeat.subject]) for defeat in lost if defeat.subject in places))
    more = len(remarks) - MAX_REMARKS
    return (*remarks[:MAX_REMARKS], *([f"and {more} more such"] if more > 0 else []))
