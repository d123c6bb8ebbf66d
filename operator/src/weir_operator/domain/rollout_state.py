# SPDX-License-Identifier: Apache-2.0
"""Where each rule of a policy stands on its way from shadow to enforced: what must survive a restart.

Values only. How they change is `rollout`, how they stand in an object's status `api.rollout_status`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from weir_operator.domain.evidence import Evidence
from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import Slot
from weir_operator.domain.ruleset import Rule


@dataclass(frozen=True, slots=True)
class Active:
    """The version that is enforced, or would be in mode Enforce."""

    limit: str
    """Names its numbers: `versions.limit_version`."""
    generation: int
    """Of the policy that brought it."""
    slot: Slot | None = None
    rule: Rule | None = None
    """The numbers, so that they can be enforced while the spec says others already. None: the spec has them."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rollback: when, at which stage, why, and what it takes not to count any more."""

    at_s: int
    stage: int
    generation: int
    """A later one is a new attempt."""
    rejected: int
    """The share that was refused, in thousandths of a percent."""
    approval: str = ""
    """Names the approval that held then: another one is a new attempt."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The version of the spec while it is not enforced for everybody."""

    limit: str
    version: str
    """Names what its evidence is about: its numbers and the requests it sees."""
    since_s: int
    """Since when there has been evidence of that."""
    slot: Slot | None = None
    stage: int = 0
    """0 = in shadow, else which of the stages it has reached, counted from 1."""
    stage_since_s: int = 0
    """0 while nobody is held to the stage."""
    promoted_by: str = ""
    """Who, or the evidence."""
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class RuleState:
    """One rule's. With neither version it is new."""

    name: str
    active: Active | None = None
    candidate: Candidate | None = None
    evidence: Evidence | None = None
    """Of the candidate, else of the active version."""

    def sure_slot(self) -> Slot | None:
        """The slot of whatever there is, so that a rule that needs only one goes on counting where it did."""
        known = self.active or self.candidate
        return known.slot if known is not None else None

    def free_slot(self) -> Slot | None:
        """The slot that the active version does not have; without one, the candidate's own."""
        if self.active is None:
            return self.sure_slot()
        return Slot.B if self.active.slot is None else None


def numbers_of(rule: Rule) -> Rule:
    """A rule without what says for whom it counts: what an active version keeps of it."""
    return replace(rule, mode=Mode.ENFORCE, version=None, slot=None, stage=None, switches=None)
