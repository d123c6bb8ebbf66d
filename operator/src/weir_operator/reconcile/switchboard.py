# SPDX-License-Identifier: Apache-2.0
"""What people said about policies by hand, from the objects' status into the compiled rules.

Owns the joining of the two and what is told about entries that mean nothing. A status that nobody touched is not read
again. What an entry does to a rule is `domain.effective`; what becomes known of it is `reconcile.switch_news`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from weir_operator.api.intervening import APPROVALS, KILL_SWITCHES, interventions_digest, parse_interventions
from weir_operator.domain.compiler import Compiled
from weir_operator.domain.effective import effective_policy, next_expiry, unknown_rules
from weir_operator.domain.interventions import NO_INTERVENTIONS, Interventions
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.ruleset import Policy
from weir_operator.reconcile.ports import Object

MAX_REMARKS = 8  # on one object; more would not be read


@dataclass(frozen=True, slots=True)
class Read:
    """What stood in one object's status at one resource version."""

    version: str
    interventions: Interventions
    digest: str
    """What the object's status is to say once this was judged."""


NOTHING = Read("", NO_INTERVENTIONS, "")


class Switchboard:
    """The interventions of one gateway's policies as they were at the last `fold`."""

    def __init__(self) -> None:
        self._read: dict[str, Read] = {}
        self._meant: dict[str, Interventions] = {}
        self._next_expiry: int | None = None

    def of(self, policy_id: str) -> Read:
        """Return what was read of a policy."""
        return self._read.get(policy_id, NOTHING)

    def meant(self, policy_id: str) -> Interventions:
        """Return what of it names a rule that is there."""
        return self._meant.get(policy_id, NO_INTERVENTIONS)

    def is_due(self, now_s: float) -> bool:
        """Whether a switch that was live has ended by itself."""
        return self._next_expiry is not None and now_s >= self._next_expiry

    def due_in_s(self, now_s: float) -> float:
        """Return in how many seconds the next switch ends by itself; infinite if none does."""
        return float("inf") if self._next_expiry is None else max(0.0, self._next_expiry - now_s)

    def fold(self, compiled: Compiled, objects: Mapping[str, Object], now_s: float) -> Compiled:
        """Return what was compiled with what people said of it; `objects` are the policies by id."""
        self._read = {policy_id: self._reread(policy_id, obj) for policy_id, obj in objects.items()}
        expiries = (next_expiry(read.interventions.kill_switches, now_s) for read in self._read.values())
        self._next_expiry = min((expiry for expiry in expiries if expiry is not None), default=None)
        pieces = compiled.ruleset.policies
        policies = tuple(
            effective_policy(piece, self.of(piece.id).interventions.kill_switches, now_s) for piece in pieces
        )
        self._meant = {piece.id: _known(piece, self.of(piece.id).interventions) for piece in pieces}
        told = dict(self._remarks(pieces))
        outcomes = {
            policy_id: _noting(outcome, told[policy_id]) if policy_id in told else outcome
            for policy_id, outcome in compiled.policies.items()
        }
        return replace(compiled, ruleset=replace(compiled.ruleset, policies=policies), policies=outcomes)

    def _reread(self, policy_id: str, obj: Object) -> Read:
        version = obj["metadata"]["resourceVersion"]
        known = self._read.get(policy_id)
        if known is not None and known.version == version:
            return known
        status = obj.get("status")
        return Read(version, parse_interventions(status), interventions_digest(status))

    def _remarks(self, pieces: Iterable[Policy]) -> Iterator[tuple[str, list[str]]]:
        """Yield what is to be said of each policy's entries that do nothing."""
        for piece in pieces:
            found = self.of(piece.id).interventions
            remarks = [f"{path} is ignored: {why}" for path, why in found.unusable.items()]
            names = ", ".join(rule.name for rule in piece.rules)
            for field, entries in ((KILL_SWITCHES, found.kill_switches), (APPROVALS, found.approvals)):
                remarks += [
                    f'status.{field}["{name[:63]}"] is ignored: there is no such rule, only {names}'
                    for name in unknown_rules(piece, entries)
                ]
            if remarks:
                yield piece.id, remarks


def _known(piece: Policy, found: Interventions) -> Interventions:
    if not found.kill_switches and not found.approvals:
        return NO_INTERVENTIONS
    unknown = {*unknown_rules(piece, found.kill_switches), *unknown_rules(piece, found.approvals)}
    switches = {name: each for name, each in found.kill_switches.items() if name not in unknown}
    return Interventions(switches, {name: each for name, each in found.approvals.items() if name not in unknown})


def _noting(outcome: Outcome, remarks: list[str]) -> Outcome:
    more = len(remarks) - MAX_REMARKS
    shown = (*remarks[:MAX_REMARKS], *([f"and {more} more such"] if more > 0 else []))
    return replace(outcome, notes=(*outcome.notes, *shown))
