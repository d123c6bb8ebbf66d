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


@dataclass(slots=True)
class Model:
    """A store with its buckets. `ttl_ms` is what the last write of each key asked for."""

    buckets: dict[str, dict[str, Record]] = field(default_factory=dict)
    ttl_ms: dict[str, int] = field(default_factory=dict)

    def decide(self, now_us: int, rules: Sequence[Rule]) -> list[int]:
        """Charge all rules or none. Reply: allowed, then per rule ok, remaining, retry_after_us, reset_us."""
        debts = [self._debt(rule, now_us) for rule in rules]
        passes = [debt + rule.increment <= rule.capacity for rule, debt in zip(rules, debts, strict=True)]
        allowed = all(ok for rule, ok in zip(rules, passes, strict=True) if rule.enforcing)
        reply = [int(allowed)]
        charged: set[str] = set()
        for rule, ok, before in zip(rules, passes, debts, strict=True):
            debt = before
            if allowed and ok and rule.increment > 0:
                debt = before + rule.increment
                self._charge(rule, debt, now_us)
                charged.add(rule.key)
            reply += [int(ok), (rule.capacity - debt) // rule.p, _wait_us(rule, before), ceil_div(debt, rule.l)]
        for key in charged:
            self._write(key, now_us)
        return reply

    def decide_all(self, calls: Sequence[tuple[int, Sequence[Rule]]]) -> list[list[int]]:
        """The replies of calls (now_us, rules) made one after the other."""
        return [self.decide(now_us, rules) for now_us, rules in calls]

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Raise AssertionError unless the last write to `key` asked for this TTL."""
        assert self.ttl_ms[key] == ttl_ms, f"key {key} is kept for {self.ttl_ms[key]} ms, not {ttl_ms}"

    def _debt(self, rule: Rule, now_us: int) -> int:
        record = self.buckets.get(rule.key, {}).get(rule.id)
        if record is None:
            return 0
        elapsed_us = max(0, now_us - record.at_us)
        debt = max(0, record.debt - elapsed_us * record.l)
        if (record.p, record.l) != (rule.p, rule.l):
            debt = convert(debt, record.p, rule.p)
        return min(debt, rule.capacity)

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


def _wait_us(rule: Rule, debt: int) -> int:
    if rule.increment > rule.capacity:
        return NEVER
    return max(0, ceil_div(debt + rule.increment - rule.capacity, rule.l))
