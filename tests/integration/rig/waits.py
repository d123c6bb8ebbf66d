# SPDX-License-Identifier: Apache-2.0
"""How long limiters took to decide, as they measured it themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from lab.client import sample
from rig.sidecar import Sidecar

_METRIC = "weir_decision_seconds"
_BUDGET_S, _LONG_S = "0.006", "0.025"  # the deadline and a millisecond, and the histogram's highest bound


@dataclass(frozen=True, slots=True)
class Waits:
    """Decisions so far, and how many of them took longer than promised, and how many much longer."""

    decisions: int
    late: int
    long: int

    @classmethod
    def of(cls, sidecars: Iterable[Sidecar]) -> Self:
        """The sum over sidecars; one that is away has nothing to say."""
        rows = [row for row in map(_read, sidecars) if row is not None]
        return cls(sum(row[0] for row in rows), sum(row[1] for row in rows), sum(row[2] for row in rows))

    def __sub__(self, earlier: Waits) -> Waits:
        """What was measured since; a limiter that was restarted began anew."""
        if self.decisions < earlier.decisions:
            return self
        return Waits(self.decisions - earlier.decisions, self.late - earlier.late, self.long - earlier.long)


NOTHING = Waits(0, 0, 0)


def _read(sidecar: Sidecar) -> tuple[int, int, int] | None:
    try:
        page = sidecar.get("/metrics")[1]  # once: all three are of one moment
    except OSError:
        return None
    decisions = sample(page, f"{_METRIC}_count")
    within = [sample(page, f"{_METRIC}_bucket", le=bound) for bound in (_BUDGET_S, _LONG_S)]
    return int(decisions), int(decisions - within[0]), int(decisions - within[1])
