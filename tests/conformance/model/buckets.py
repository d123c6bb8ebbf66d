# SPDX-License-Identifier: Apache-2.0
"""Token bucket and leaky bucket: a debt that drains evenly.

Debt is counted in 1/l us: a token weighs `p`, and `l` drains per microsecond, so that no rate is ever rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from model.limit import MAX_EXACT, NEVER, Said, ceil_div, later


@dataclass(frozen=True, slots=True)
class BucketRecord:
    """The debt at a time, and the units that it is counted in."""

    at_us: int
    debt: int
    p: int
    l: int  # noqa: E741 - the letter of the formula, here and in the script

    @property
    def ends_us(self) -> int:
        """When it has drained."""
        return self.at_us + ceil_div(self.debt, self.l)


@dataclass(frozen=True, slots=True)
class Owed:
    """What a subject owes now, perhaps more than the capacity, and how that drains."""

    debt: int
    p: int
    l: int  # noqa: E741
    behind_us: int = 0  # nothing drains until the clock has reached the record's time
    faster: BucketRecord | None = None  # the record that it drains by, if written under a faster rate than the limit's

    def drains_in_us(self, units: int) -> int:
        """How long `units` of it take to drain.

        By an old rate: in doubles as in the script, and a microsecond more for the rounding of the conversion.
        """
        if self.faster is None:
            return self.behind_us + ceil_div(units, self.l)
        old_p, old_l = float(self.faster.p), float(self.faster.l)
        return self.behind_us + math.ceil(float(units) * old_p / (old_l * float(self.p))) + 1


class Bucket:
    """What both buckets share; they differ in their capacity and in what a cost needs to pass."""

    requests: int
    period_us: int

    @property
    def p(self) -> int:
        """What one token weighs."""
        return self.period_us // math.gcd(self.period_us, self.requests)

    @property
    def l(self) -> int:  # noqa: E743
        """What drains per microsecond."""
        return self.requests // math.gcd(self.period_us, self.requests)

    @property
    def capacity(self) -> int:
        """The debt that may not be exceeded by what a request needs."""
        raise NotImplementedError

    def need(self, cost: int) -> int:
        """How much room must be left for a request of this cost."""
        raise NotImplementedError

    def ask(self, record: BucketRecord | None, cost: int, now_us: int) -> Said:
        """See Limit."""
        owed = self.owed(record, now_us)
        need = self.need(cost)
        lacking = owed.debt + need - self.capacity
        ok = cost == 0 or lacking <= 0
        wait_us = 0 if ok else NEVER if need > self.capacity else owed.drains_in_us(lacking)
        return Said(ok, max(0, self.capacity - owed.debt) // self.p, wait_us, owed.drains_in_us(owed.debt))

    def charge(self, record: BucketRecord | None, cost: int, now_us: int) -> BucketRecord:
        """See Limit."""
        debt = self.owed(record, now_us).debt + cost * self.p
        return BucketRecord(later(now_us, record), debt, self.p, self.l)

    def refund(
        self, record: BucketRecord, cost: int, owed_before: int, charged_at_us: int, now_us: int
    ) -> BucketRecord | None:
        """See Limit. Nothing after a changed limit, nor what may have drained: what was owed before drains first."""
        if record.at_us < charged_at_us or (record.p, record.l) != (self.p, self.l):
            return record
        drained = max(0, later(now_us, record) - charged_at_us) * self.l
        debt = record.debt - max(0, cost * self.p - max(0, drained - owed_before))
        left = BucketRecord(record.at_us, debt, record.p, record.l)
        return left if debt > 0 and left.ends_us > now_us else None

    def owed_before(self, cost: int, reset_us: int) -> int:
        """What was owed before a charge whose reply told that reset: less than a microsecond's drain too little.

        If the clock was behind, the time until it had caught up is in it, as in what drains from the reply's time on.
        """
        return min(MAX_EXACT, max(0, (reset_us - 1) * self.l - cost * self.p))

    def owed(self, record: BucketRecord | None, now_us: int) -> Owed:
        """The debt at the faster of the rates under which the record was charged and by which it is asked for now."""
        if record is None:
            return Owed(0, self.p, self.l)
        elapsed_us, behind_us = max(0, now_us - record.at_us), max(0, record.at_us - now_us)
        if is_faster(record, self):
            old_debt = max(0, record.debt - elapsed_us * record.l)
            faster = record if old_debt > 0 else None
            return Owed(convert(old_debt, record.p, self.p), self.p, self.l, behind_us, faster)
        same = (record.p, record.l) == (self.p, self.l)
        debt = record.debt if same else convert(record.debt, record.p, self.p)
        return Owed(max(0, debt - elapsed_us * self.l), self.p, self.l, behind_us)


@dataclass(frozen=True, slots=True)
class TokenBucket(Bucket):
    """`requests` per `period_us`, at most `burst` at once."""

    requests: int
    period_us: int
    burst: int

    @property
    def capacity(self) -> int:
        """A bucket of `burst` tokens."""
        return self.burst * self.p

    def need(self, cost: int) -> int:
        """As many tokens as it costs."""
        return cost * self.p


@dataclass(frozen=True, slots=True)
class LeakyBucket(Bucket):
    """Leaves evenly, one token every `period_us / requests`; at most `queue` wait, and none longer than `max_delay_us`.

    With a queue of 0 nobody waits: whoever comes too early is refused.
    """

    requests: int
    period_us: int
    queue: int = 0
    max_delay_us: int = 0

    @property
    def tolerance(self) -> int:
        """The largest debt before a request that may still come."""
        return min(self.queue * self.p, self.max_delay_us * self.l)

    @property
    def capacity(self) -> int:
        """The tolerance, and the token of whoever comes."""
        return self.tolerance + self.p

    def need(self, cost: int) -> int:
        """One token, whatever it costs: it may leave once those before it have left. What is not exact never passes."""
        return min(cost, 1) * self.p if self.tolerance + cost * self.p <= MAX_EXACT else self.capacity + 1

    def hold_us(self, record: Any, now_us: int) -> int:
        """For how long a request that passes has to be held: until all before it have left."""
        return ceil_div(self.owed(record, now_us).debt, self.l)


def convert(debt: int, old_p: int, new_p: int) -> int:
    """The same tokens used, in the units of another limit.

    Whole tokens stay whole. The started one is computed in a double, as the script can do no other, and rounded up.
    """
    used, started = divmod(debt, old_p)
    return used * new_p + math.ceil(float(started) * float(new_p) / float(old_p))


def is_faster(record: BucketRecord, limit: Bucket) -> bool:
    """Whether tokens come back faster by the record than by the limit; compared in doubles, as in the script."""
    return float(record.l) * float(limit.p) > float(limit.l) * float(record.p)
