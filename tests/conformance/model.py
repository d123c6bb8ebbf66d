# SPDX-License-Identifier: Apache-2.0
"""The algorithms in plain integers: what the Lua script and the Rust core must compute, written to be read.

It owns the meaning of a decision and nothing else: no store, no clock, no wire format. Where the others may be clever,
this one may only be obvious. Python's integers have no size, so nothing here depends on how large a figure gets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

NEVER = -1  # the wait for a cost that no amount of waiting makes affordable
SLACK_MS = 1  # a key outlives its last debt by this much


@dataclass(frozen=True, slots=True)
class Limit:
    """`requests` per `period_us`, at most `burst` at once."""

    requests: int
    period_us: int
    burst: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a call. Debt is counted in 1/l us: a token weighs `p`, and `l` drains per microsecond."""

    key: str
    id: str
    p: int
    l: int  # noqa: E741 - the letter of the formula, here and in the script
    capacity: int
    increment: int
    enforcing: bool = True

    @classmethod
    def of(cls, limit: Limit, *, key: str, name: str, cost: int = 1, enforcing: bool = True) -> Self:
        """The rule that charges `cost` tokens of `limit`."""
        divisor = math.gcd(limit.period_us, limit.requests)
        p, l = limit.period_us // divisor, limit.requests // divisor  # noqa: E741
        return cls(key, name, p, l, limit.burst * p, cost * p, enforcing)


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of one rule and subject: the debt at a time, and the units that it is counted in."""

    at_us: int
    debt: int
    p: int
    l: int  # noqa: E741


@dataclass(frozen=True, slots=True)
class Owed:
    """What a subject owes now in units of a rule, perhaps more than its capacity, and how that drains."""

    debt: int
    behind_us: int = 0  # nothing drains until the clock has reached the record's time
    faster: Record | None = None  # the record that it drains by, if it was written under a faster rate than the rule's

    def drains_in_us(self, units: int, rule: Rule) -> int:
        """How long `units` of it take to drain.

        By an old rate: in doubles as in the script, and a microsecond more for the rounding of the conversion.
        """
        if self.faster is None:
            return self.behind_us + ceil_div(units, rule.l)
        old_p, old_l = float(self.faster.p), float(self.faster.l)
        return self.behind_us + math.ceil(float(units) * old_p / (old_l * float(rule.p))) + 1


@dataclass(slots=True)
class Model:
    """A store with its buckets. `ttl_ms` is what the last write of each key asked for."""

    buckets: dict[str, dict[str, Record]] = field(default_factory=dict)
    ttl_ms: dict[str, int] = field(default_factory=dict)

    def decide(self, now_us: int, rules: Sequence[Rule]) -> list[int]:
        """Charge all rules or none. Reply: allowed, then per rule ok, remaining, retry_after_us, reset_us."""
        owed = [self._owed(rule, now_us) for rule in rules]
        # A lowered limit binds at once, so what costs nothing always passes.
        debts = [min(before.debt, rule.capacity) for rule, before in zip(rules, owed, strict=True)]
        passes = [debt + rule.increment <= rule.capacity for rule, debt in zip(rules, debts, strict=True)]
        allowed = all(ok for rule, ok in zip(rules, passes, strict=True) if rule.enforcing)
        reply = [int(allowed)]
        charged: set[str] = set()
        for rule, ok, before, debt in zip(rules, passes, owed, debts, strict=True):
            after = before
            if allowed and ok and rule.increment > 0:
                after = Owed(debt + rule.increment, before.behind_us)
                self._charge(rule, after.debt, now_us)
                charged.add(rule.key)
            remaining = max(0, rule.capacity - after.debt) // rule.p
            wait_us = 0 if ok else _wait_us(rule, before)
            reply += [int(ok), remaining, wait_us, after.drains_in_us(after.debt, rule)]
        for key in charged:
            self._write(key, now_us)
        return reply

    def decide_all(self, calls: Sequence[tuple[int, Sequence[Rule]]]) -> list[list[int]]:
        """The replies of calls (now_us, rules) made one after the other."""
        return [self.decide(now_us, rules) for now_us, rules in calls]

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Raise AssertionError unless the last write to `key` asked for this TTL."""
        assert self.ttl_ms[key] == ttl_ms, f"key {key} is kept for {self.ttl_ms[key]} ms, not {ttl_ms}"

    def _owed(self, rule: Rule, now_us: int) -> Owed:
        """The debt at the faster of the rates under which the record was charged and by which it is asked for now."""
        record = self.buckets.get(rule.key, {}).get(rule.id)
        if record is None:
            return Owed(0)
        elapsed_us, behind_us = max(0, now_us - record.at_us), max(0, record.at_us - now_us)
        if is_faster(record, rule):
            old_debt = max(0, record.debt - elapsed_us * record.l)
            return Owed(convert(old_debt, record.p, rule.p), behind_us, record) if old_debt > 0 else Owed(0, behind_us)
        same = (record.p, record.l) == (rule.p, rule.l)
        debt = record.debt if same else convert(record.debt, record.p, rule.p)
        return Owed(max(0, debt - elapsed_us * rule.l), behind_us)

    def _charge(self, rule: Rule, debt: int, now_us: int) -> None:
        bucket = self.buckets.setdefault(rule.key, {})
        at_us = max(now_us, bucket[rule.id].at_us) if rule.id in bucket else now_us
        bucket[rule.id] = Record(at_us, debt, rule.p, rule.l)

    def _write(self, key: str, now_us: int) -> None:
        owed = {name: record.debt - (now_us - record.at_us) * record.l for name, record in self.buckets[key].items()}
        self.buckets[key] = {name: record for name, record in self.buckets[key].items() if owed[name] > 0}
        longest_us = max(ceil_div(owed[name], record.l) for name, record in self.buckets[key].items())
        self.ttl_ms[key] = ceil_div(longest_us, 1000) + SLACK_MS


def ceil_div(dividend: int, divisor: int) -> int:
    """The quotient rounded up."""
    return -(-dividend // divisor)


def convert(debt: int, old_p: int, new_p: int) -> int:
    """The same tokens used, in the units of another limit.

    Whole tokens stay whole. The started one is computed in a double, as the script can do no other, and rounded up.
    """
    used, started = divmod(debt, old_p)
    return used * new_p + math.ceil(float(started) * float(new_p) / float(old_p))


def is_faster(record: Record, rule: Rule) -> bool:
    """Whether tokens come back faster by the record than by the rule; compared in doubles, as in the script."""
    return float(record.l) * float(rule.p) > float(rule.l) * float(record.p)


def _wait_us(rule: Rule, owed: Owed) -> int:
    if rule.increment > rule.capacity:
        return NEVER
    return owed.drains_in_us(owed.debt + rule.increment - rule.capacity, rule)
