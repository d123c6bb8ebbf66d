# SPDX-License-Identifier: Apache-2.0
"""What one version of a rule did, or would have done: the numbers that a rollout is judged by.

Values and their shares only; where they come from is `reconcile.evidence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import NamedTuple

from weir_operator.domain.rollout_terms import WHOLE

MAX_TOP = 5  # subjects that are named; who looks for one noisy job finds it among the first
SIGNIFICANT = 2  # digits of a count that a person reads
STALE_AFTER_S = 300  # how much evidence a restart of the operator loses at most


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counts since `since_s`, as they were at `as_of_s` (Unix seconds)."""

    version: str
    """Of the rule."""
    since_s: int
    as_of_s: int
    requests: int = 0
    would_reject: int = 0
    """In shadow: what would have been refused."""
    rejected: int = 0
    """Where it is enforced: what was refused."""
    subjects: int = 0
    """How many subjects that concerns, at least."""
    top: tuple[tuple[str, int], ...] = ()
    """The most affected of them, each with how often."""

    @property
    def share(self) -> int:
        """The share of requests that are over the limit, in thousandths of a percent, rounded up."""
        over = self.would_reject + self.rejected
        return -(-over * WHOLE // self.requests) if self.requests else 0


class RuleKey(NamedTuple):
    """Which version of which rule a count is of."""

    policy: str
    """Its id."""
    rule: str
    slot: str | None
    version: str


class RuleCounts(NamedTuple):
    """What one limiter has counted of a version since `since_ms` (epoch)."""

    since_ms: int
    requests: int = 0
    would_reject: int = 0
    rejected: int = 0
    enforced: int = 0
    """Requests that the version decided, whether it refused them or not."""
    subjects: int = 0
    top: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Recent:
    """What a version decided, not only counted, in the last `covers_s` seconds."""

    covers_s: float
    enforced: int = 0
    rejected: int = 0


def shown(persisted: Evidence | None, current: Evidence) -> Evidence:
    """What stands in a status: the present counts if a person would see the difference, else what stands there.

    Differences that are too small to see are written all the same after `STALE_AFTER_S`, so that no restart loses more.
    """
    if persisted is None or (persisted.version, persisted.since_s) != (current.version, current.since_s):
        return current
    if _counts(persisted) == _counts(current):
        return persisted
    is_old = current.as_of_s - persisted.as_of_s >= STALE_AFTER_S
    return current if is_old or _seen(persisted) != _seen(current) else persisted


def _counts(evidence: Evidence) -> tuple[int, int, int]:
    return evidence.requests, evidence.would_reject, evidence.rejected


def _seen(evidence: Evidence) -> tuple[int, ...]:
    return (*(_rounded(count) for count in _counts(evidence)), _rounded(evidence.share), evidence.subjects > 0)


def _rounded(count: int) -> int:
    """A count with as many digits as are read."""
    if count < 10**SIGNIFICANT:
        return count
    unit = 10 ** (floor(log10(count)) - SIGNIFICANT + 1)
    return int(count // unit * unit)
