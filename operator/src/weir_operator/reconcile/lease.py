# SPDX-License-Identifier: Apache-2.0
"""Who of several replicas may write, judged by one record that all of them see.

Owns the rule: nobody takes a lease from a holder before having watched the same record for as long as it is promised,
and a holder stops writing well before that. Only spans of one's own monotonic clock are compared, never the clocks of
two machines. Pure: reading, writing and waiting are `election`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

DURATION_S = 10.0  # what a holder is promised: with looking and the first pass, a failover stays under 15 s
WRITE_FOR_S = 6.0  # how long a holder writes after asking for its last renewal; the rest is for slow clocks and nets
ASK_EVERY_S = 1.5  # a holder may fail to renew three times in a row
NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Identity:
    """A replica: its name, which it may share with its predecessor, and a nonce that no other process has."""

    name: str
    """Empty if nothing keeps two living processes from bearing one name."""
    nonce: str

    @property
    def holder(self) -> str:
        """What stands in the record."""
        return f"{self.name}_{self.nonce}"

    def succeeds(self, holder: str) -> bool:
        """Whether a holder is an earlier process of the same name, which is dead if we are here."""
        return bool(self.name) and holder.rpartition("_")[0] == self.name


@dataclass(frozen=True, slots=True)
class Record:
    """The record as the API server stores it."""

    holder: str
    """Empty after a release."""
    duration_s: float
    version: str
    """Changes with every write."""
    transitions: int = 0
    acquired: str = ""
    """Since when the holder has it, for people."""


class Step(Enum):
    """What to do about the record now."""

    WAIT = auto()
    TAKE = auto()
    RENEW = auto()


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What one replica knows. `seen` is None as long as there is no record."""

    me: Identity
    seen: Record | None = None
    seen_at_s: float = NEVER
    """When this version was first seen, or asked for."""
    looked: bool = False
    held_from_s: float = NEVER
    """When the last granted write of the record was begun."""
    newcomer: bool = True
    """Whether only one record was seen so far, so that its holder may be our predecessor."""

    def see(self, record: Record | None, now_s: float) -> Candidacy:
        """Take what the API server shows; `now_s` is when it had answered, so later than it was written."""
        if self.looked and _version(record) == _version(self.seen):
            return self
        mine = record is not None and record.holder == self.me.holder
        held_from_s = self.held_from_s if mine else NEVER
        return replace(
            self, seen=record, seen_at_s=now_s, looked=True, newcomer=not self.looked, held_from_s=held_from_s
        )

    def step(self, now_s: float) -> Step:
        """Decide."""
        if self.seen is None or not self.seen.holder:
            return Step.TAKE
        if self.seen.holder == self.me.holder:
            return Step.RENEW
        if self.newcomer and self.me.succeeds(self.seen.holder):
            return Step.TAKE
        return Step.TAKE if self.free_in_s(now_s) <= 0 else Step.WAIT

    def granted(self, record: Record, begun_s: float, now_s: float) -> Candidacy:
        """The record was written with our name in it, by a request that was begun at `begun_s`."""
        return replace(self, seen=record, seen_at_s=now_s, looked=True, newcomer=False, held_from_s=begun_s)

    def writes_for_s(self, now_s: float) -> float:
        """Return for how long this replica may still write; not above 0 = not at all."""
        return self.held_from_s + WRITE_FOR_S - now_s

    def free_in_s(self, now_s: float) -> float:
        """Return how long the holder must be left alone."""
        if self.seen is None or not self.seen.holder:
            return 0.0
        # Whatever the record promises: a holder of our own kind counts on our own figure.
        return self.seen_at_s + max(self.seen.duration_s, DURATION_S) - now_s

    def wait_s(self, now_s: float) -> float:
        """Return when to look again."""
        if self.step(now_s) is Step.WAIT:
            return min(ASK_EVERY_S, self.free_in_s(now_s))
        return ASK_EVERY_S


def _version(record: Record | None) -> str | None:
    return record.version if record is not None else None
