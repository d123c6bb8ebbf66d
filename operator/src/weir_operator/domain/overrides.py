# SPDX-License-Identifier: Apache-2.0
"""All overrides of a gateway to their part of the ruleset: by policy, and within one by precedence.

Owns what is remembered of them from one pass to the next, and which last accepted version stays. What happens among the
overrides of one policy is `policy_overrides`' business.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.memory import Memory
from weir_operator.domain.outcomes import ACCEPTED, Outcome
from weir_operator.domain.override_compiler import still_fits
from weir_operator.domain.override_target import Target
from weir_operator.domain.overriding import Override
from weir_operator.domain.policy_overrides import PolicyOverrides, Ranking, compile_overrides, rank
from weir_operator.domain.problems import Problem, did_you_mean
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.shares import Shares, namespace_of
from weir_operator.domain.specs import OverrideInput


@dataclass(frozen=True, slots=True)
class Placed:
    """The overrides in the document's order, and the outcome of each object by id."""

    ordered: tuple[Override, ...]
    outcomes: dict[str, Outcome]


class OverrideCompiler:
    """Compiles a gateway's overrides again and again, and anew only those of the policies where something changed."""

    def __init__(self, gateway: Gateway, shares: Shares) -> None:
        self._gateway = gateway
        self._shares = shares
        self._sizes: Memory[int] = Memory()
        self._targets: Memory[Target] = Memory()
        self._compiled: Memory[PolicyOverrides] = Memory()
        self._rankings: Memory[Ranking] = Memory()

    def compile(
        self,
        overrides: Iterable[OverrideInput],
        pieces: Mapping[str, Policy],
        known: Iterable[str],
        before: Sequence[Override],
    ) -> Placed:
        """Compile `overrides` against the policies that run (`pieces`); `known` are the ids of all that exist.

        `before` are the live ones, of which an override with problems keeps its last accepted version.
        """
        for memory in (self._targets, self._compiled, self._rankings, self._sizes):
            memory.begin_pass()
        inputs = {override.meta.id: override for override in overrides}
        compiled = self._find_room(self._compile_all(inputs, pieces, known), pieces, before)
        outcomes = {name: ACCEPTED for own in compiled.values() for name in own.inputs}
        faulty = {name: problems for own in compiled.values() for name, problems in own.faulty.items()}
        running = {piece.id: piece for piece in before if piece.id in faulty}
        kept: dict[str, list[Override]] = {}
        for name, problems in faulty.items():
            last = running.get(name)
            stays = last is not None and last.policy in pieces and still_fits(last, pieces[last.policy])
            outcomes[name] = Outcome(problems, kept=stays)
            if last is not None and stays:
                kept.setdefault(last.policy, []).append(last)
        ordered: list[Override] = []
        for policy in sorted(pieces.keys() & (compiled.keys() | kept.keys())):
            ranking = self._rank(pieces[policy], compiled.get(policy), kept.get(policy, []), inputs)
            ordered += ranking.ordered
            outcomes |= {name: replace(ACCEPTED, notes=remarks) for name, remarks in ranking.remarks.items()}
        return Placed(tuple(ordered), outcomes)

    def _compile_all(
        self, inputs: Mapping[str, OverrideInput], pieces: Mapping[str, Policy], known: Iterable[str]
    ) -> dict[str, PolicyOverrides]:
        """What became of the overrides of each policy that has any."""
        by_policy: dict[str, list[OverrideInput]] = {}
        for _, override in sorted(inputs.items()):
            by_policy.setdefault(override.policy_id, []).append(override)

        names = names_by_namespace(known)

        def without_policy(override: OverrideInput) -> Problem:
            beside = names.get(override.meta.namespace, ())
            there = override.policy in beside
            return policy_not_running(override.policy_id) if there else policy_not_found(override, beside)

        compiled = {}
        for policy, own in by_policy.items():
            piece = pieces.get(policy)
            if piece is None:
                compiled[policy] = compile_overrides(own, without_policy)
                continue
            target = self._target(piece)
            compiled[policy] = self._compiled.recall(
                policy,
                (target, *own),
                lambda before, own=own, target=target: compile_overrides(own, target, before),  # type: ignore[misc]
            )
        return compiled

    def _find_room(
        self, compiled: dict[str, PolicyOverrides], pieces: Mapping[str, Policy], before: Iterable[Override]
    ) -> dict[str, PolicyOverrides]:
        """The same, without the overrides for which the share of their namespace has no room."""
        room = self._shares.room_for_overrides(pieces.values())
        running = {piece.id: piece for piece in before} if any(own.faulty for own in compiled.values()) else {}
        for policy, own in compiled.items():
            if policy in pieces:
                # What is kept of objects with problems has its room; else breaking them would make some.
                room[namespace_of(policy)] -= self._shares.size_of(running[n] for n in own.faulty if n in running)
            if own.good:
                size = self._sizes.recall(policy, (own,), lambda _, own=own: self._shares.size_of(own.good.values()))  # type: ignore[misc]
                room[namespace_of(policy)] -= size
        for namespace in sorted(namespace for namespace, left in room.items() if left < 0):
            theirs = {policy: own for policy, own in compiled.items() if namespace_of(policy) == namespace}
            good = [(own.inputs[name].meta, override) for own in theirs.values() for name, override in own.good.items()]
            oldest_first = [override for _, override in sorted(good, key=lambda item: (item[0].created_at, item[0].id))]
            left = room[namespace] + self._shares.size_of(oldest_first)
            lasts = {piece.id: piece for piece in before if namespace_of(piece.id) == namespace}
            refused = self._shares.overrides_over(left, oldest_first, lasts)
            compiled |= {policy: own.without(refused) for policy, own in theirs.items()}
        return compiled

    def _target(self, piece: Policy) -> Target:
        return self._targets.recall(piece.id, (piece,), lambda _: Target(piece, self._gateway))

    def _rank(
        self,
        piece: Policy,
        own: PolicyOverrides | None,
        kept: Sequence[Override],
        inputs: Mapping[str, OverrideInput],
    ) -> Ranking:
        objects = [inputs[override.id] for override in kept]
        target = self._target(piece)
        return self._rankings.recall(
            piece.id, (target, own, *kept, *objects), lambda _: rank(own, list(zip(kept, objects, strict=True)), target)
        )


def policy_not_found(override: OverrideInput, names: tuple[str, ...]) -> Problem:
    """The problem of an override whose policy does not exist in its namespace; `names` are the policies that do."""
    message = f'the namespace "{override.meta.namespace}" has no policy "{override.policy}"'
    return Problem("spec.policyRef.name", Reason.POLICY_NOT_FOUND, message, _suggestion(override.policy, names))


def names_by_namespace(ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The names of the policies of each namespace, by their ids."""
    found: dict[str, list[str]] = {}
    for policy_id in ids:
        namespace, _, name = policy_id.partition("/")
        found.setdefault(namespace, []).append(name)
    return {namespace: tuple(names) for namespace, names in found.items()}


@functools.lru_cache(maxsize=16_384)  # thousands of overrides without a policy must not cost a search each, every turn
def _suggestion(name: str, names: tuple[str, ...]) -> str:
    return did_you_mean(name, names)


def policy_not_running(policy_id: str) -> Problem:
    """The problem of an override whose policy exists, but in no version that any gateway runs."""
    message = f'the policy "{policy_id}" is not accepted, so there is nothing to override'
    return Problem("spec.policyRef.name", Reason.CONFLICTED, message, "see the policy's own conditions")
