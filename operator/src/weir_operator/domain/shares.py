# SPDX-License-Identifier: Apache-2.0
"""The namespace budget: how much of a gateway's documents one namespace may fill, and who has to give way.

All namespaces of a gateway share documents that have room for so much and no more. Without a share for each, two legal
policies of one team could end every later edit of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir_operator.domain.budget import Applicant
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import NamespaceBudget
from weir_operator.domain.overriding import Override
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.wire_text import Texts

_ASK = "or ask the gateway's administrator for a larger namespaceBudget"


@dataclass(frozen=True, slots=True)
class Load:
    """What something takes of the documents."""

    rules: int = 0
    document_bytes: int = 0
    closed_bytes: int = 0

    def plus(self, other: Load) -> Load:
        """Both together."""
        return Load(
            self.rules + other.rules,
            self.document_bytes + other.document_bytes,
            self.closed_bytes + other.closed_bytes,
        )


class Shares:
    """Judges who finds room in the share of its namespace. `closed_size`: bytes of a policy in Envoy's Closed list."""

    def __init__(self, budget: NamespaceBudget, texts: Texts, closed_size: Callable[[Policy], int]) -> None:
        self._budget = budget
        self._texts = texts
        self._closed_size = closed_size

    def policies_over(self, applicants: Iterable[Applicant]) -> dict[str, Problem]:
        """The policies that find no room beside the older ones of their namespace, by id, each with what it is told.

        The order of `applicants` does not matter. The version that stays instead of one that is refused has its room.
        """
        taken: dict[str, Load] = {}
        refused: dict[str, Problem] = {}
        for applicant in sorted(applicants, key=lambda applicant: applicant.rank):
            namespace = namespace_of(applicant.policy.id)
            before = taken.get(namespace, Load())
            after = before.plus(self.load_of(applicant.policy))
            problem = None if applicant.fixed else self._excess(namespace, before, after)
            if problem is not None:
                refused[applicant.policy.id] = problem
                after = before.plus(self.load_of(applicant.instead)) if applicant.instead is not None else before
            taken[namespace] = after
        return refused

    def room_for_overrides(self, policies: Iterable[Policy]) -> dict[str, int]:
        """The bytes of the document that each namespace's policies leave for its overrides; not above 0 = none."""
        room: dict[str, int] = {}
        for policy in policies:
            namespace = namespace_of(policy.id)
            room[namespace] = room.get(namespace, self._budget.document_bytes) - self._text_size(policy)
        return room

    def size_of(self, overrides: Iterable[Override]) -> int:
        """The bytes that overrides take in the document."""
        return sum(self._text_size(override) for override in overrides)

    def overrides_over(
        self,
        room: int,
        youth: Sequence[Override],
        running: Mapping[str, Override],
    ) -> dict[str, Problem]:
        """The overrides of one namespace that find no room in `room` bytes, by id; `youth` are all, the oldest first.

        One that is in force as it is keeps its place, and of one that is changed the version in force (`running`).
        """
        refused: dict[str, Problem] = {}
        taken = 0
        for override in youth:
            size = self._text_size(override)
            last = running.get(override.id)
            if last == override or taken + size <= room:
                taken += size
                continue
            refused[override.id] = self._override_problem(override, taken, size, room)
            taken += self._text_size(last) if last is not None else 0
        return refused

    def load_of(self, policy: Policy) -> Load:
        """What one policy takes."""
        return Load(len(policy.rules), self._text_size(policy), self._closed_size(policy))

    def _text_size(self, piece: Policy | Override) -> int:
        return len(self._texts.of(piece).encode())

    def _excess(self, namespace: str, before: Load, after: Load) -> Problem | None:
        budget = self._budget
        for setting, what, taken, wanted, most in (
            ("rules", "rules", before.rules, after.rules, budget.rules),
            ("documentBytes", "bytes of rules", before.document_bytes, after.document_bytes, budget.document_bytes),
            ("closedBytes", "bytes of Closed rules", before.closed_bytes, after.closed_bytes, budget.closed_bytes),
        ):
            if wanted > most:
                message = (
                    f'the namespace "{namespace}" would have {wanted} {what} on this gateway, and at most {most} are '
                    f"allowed; {taken} of them are of older policies"
                )
                hint = f"write fewer or shorter ones, {_ASK}.{setting}"
                return Problem("spec.rules", Reason.BUDGET_EXCEEDED, message, hint)
        return None

    def _override_problem(self, override: Override, taken: int, size: int, room: int) -> Problem:
        most = self._budget.document_bytes
        message = (
            f'the namespace "{namespace_of(override.id)}" would have {most - room + taken + size} bytes of rules on '
            f"this gateway, and at most {most} are allowed; {taken} of them are of other overrides"
        )
        hint = f"delete overrides that have expired, {_ASK}.documentBytes"
        return Problem("spec.subjects", Reason.BUDGET_EXCEEDED, message, hint)


def namespace_of(object_id: str) -> str:
    """The namespace of an object by its id."""
    return object_id.partition("/")[0]
