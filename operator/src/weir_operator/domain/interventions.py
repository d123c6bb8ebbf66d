# SPDX-License-Identifier: Apache-2.0
"""What people said about a policy by hand, beside its spec: kill switches and approvals.

Owns the values and when a switch ends. What follows from them for a rule is `effective`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir_operator.domain.limits import Mode

ALL_RULES = "*"
"""Stands for every rule of a policy where a rule's name is asked for."""


@dataclass(frozen=True, slots=True)
class KillSwitch:
    """Weakens a rule to `mode` until `not_after` (Unix seconds, exclusive; None = until it is removed)."""

    mode: Mode
    not_after: int | None = None
    reason: str = ""
    by: str = ""

    def is_live(self, now_s: float) -> bool:
        """Whether it has an effect at that time."""
        return self.not_after is None or now_s < self.not_after


@dataclass(frozen=True, slots=True)
class Approval:
    """Promotes a rule of one generation; `at` is Unix seconds as its author wrote them."""

    generation: int
    by: str = ""
    reason: str = ""
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Interventions:
    """All that stands in one policy's status by hand, by rule (switches also by `ALL_RULES`).

    `unusable` says for each entry that could not be read, by its path, why it is ignored.
    """

    kill_switches: Mapping[str, KillSwitch] = field(default_factory=dict)
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    unusable: Mapping[str, str] = field(default_factory=dict)


NO_INTERVENTIONS = Interventions()
