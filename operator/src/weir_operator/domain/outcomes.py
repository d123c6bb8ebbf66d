# SPDX-License-Identifier: Apache-2.0
"""What became of one object: in force as written, or why not and what stays instead."""

from __future__ import annotations

from dataclasses import dataclass

from weir_operator.domain.problems import Problem


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


ACCEPTED = Outcome()
"""In the ruleset as written, and nothing to remark."""
