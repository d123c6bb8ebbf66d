# SPDX-License-Identifier: Apache-2.0
"""A store of counters, and one decision over several rules: all are charged, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from model.buckets import Bucket, LeakyBucket
from model.limit import Limit, Record, StaleEdgesError, ceil_div
from model.log import SlidingWindowLog

SLACK_MS = 1  # a key outlives its last record by this much
STALE = -1  # instead of allowed: the edges of a calendar rule do not enclose the time that follows


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a call. `id` has eight characters; `owed_before` is of a bucket's charge that is given back."""

    key: str
    id: str
    limit: Limit
    cost: int = 1
    enforcing: bool = True
    owed_before: int = 0

    @property
    def stored_under(self) -> str:
        """The key of its record: all rules of a key share one string, and each log has its own."""
        return f"{self.key}:{self.id}" if isinstance(self.limit, SlidingWindowLog) else self.key


@dataclass(slots=True)
class Model:
    """A store with its records by key and rule. `ttl_ms` is what the last charge of each key asked for."""

    records: dict[str, dict[str, Record]] = field(default_factory=dict)
    ttl_ms: dict[str, int] = field(default_factory=dict)

    def decide(self, now_us: int, rules: Sequence[Rule]) -> list[int]:
        """Charge all rules or none.

        Reply: allowed, now_us, then per rule ok, remaining, wait_us, reset_us; or STALE and the time in question.
        """
        seen = [self.records.get(rule.stored_under, {}).get(rule.id) for rule in rules]
        try:
            said = [rule.limit.ask(record, rule.cost, now_us) for rule, record in zip(rules, seen, strict=True)]
        except StaleEdgesError as stale:
            return [STALE, stale.time_us]
        allowed = all(verdict.ok for rule, verdict in zip(rules, said, strict=True) if rule.enforcing)
        charged: set[str] = set()
        reply = [int(allowed), now_us]
        for rule, record, before in zip(rules, seen, said, strict=True):
            verdict = before
            if allowed and before.ok and rule.cost > 0:
                after = rule.limit.charge(record, rule.cost, now_us)
                self.records.setdefault(rule.stored_under, {})[rule.id] = after
                charged.add(rule.stored_under)
                verdict = rule.limit.ask(after, 0, now_us)
                if isinstance(rule.limit, LeakyBucket):
                    verdict = verdict._replace(wait_us=rule.limit.hold_us(record, now_us))
            reply += map(int, verdict)
        for key in charged:
            self._write(key, now_us)
        return reply

    def decide_all(self, calls: Sequence[tuple[int, Sequence[Rule]]]) -> list[list[int]]:
        """The replies of calls (now_us, rules) made one after the other."""
        return [self.decide(now_us, rules) for now_us, rules in calls]

    def refund(self, now_us: int, charged_at_us: int, rules: Sequence[Rule]) -> None:
        """Give back what a call of these rules has charged, which was answered with that time."""
        for rule in rules:
            bucket = self.records.get(rule.stored_under, {})
            if rule.id in bucket:
                left = rule.limit.refund(bucket.pop(rule.id), rule.cost, rule.owed_before, charged_at_us, now_us)
                if left is not None:
                    bucket[rule.id] = left

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Raise AssertionError unless the last charge of `key` asked for this TTL."""
        assert self.ttl_ms[key] == ttl_ms, f"key {key} is kept for {self.ttl_ms[key]} ms, not {ttl_ms}"

    def _write(self, key: str, now_us: int) -> None:
        """Drop what has nothing left to say; keep the key for the longest of the rest."""
        self.records[key] = {name: record for name, record in self.records[key].items() if record.ends_us > now_us}
        longest_us = max(record.ends_us - now_us for record in self.records[key].values())
        self.ttl_ms[key] = ceil_div(longest_us, 1000) + SLACK_MS


def charged(rules: Sequence[Rule], reply: Sequence[int]) -> list[Rule]:
    """The rules that a call has charged, by its reply: what may be refunded."""
    if reply[0] != 1:
        return []
    taken: list[Rule] = []
    for place, rule in enumerate(rules):
        ok, _, _, reset_us = reply[2 + 4 * place : 6 + 4 * place]
        if ok == 1 and rule.cost > 0:
            before = rule.limit.owed_before(rule.cost, reset_us) if isinstance(rule.limit, Bucket) else 0
            taken.append(replace(rule, owed_before=before))
    return taken
