# SPDX-License-Identifier: Apache-2.0
"""`lua/decide.lua` in a real store, with a clock that the test gives: an implementation that vectors can be played on.

The store's own clock still runs, and it would expire keys while the injected one stands still. So each call is one
transaction that makes the key persistent again after reading for how long the script asked to keep it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from model import Model, Record, Rule
from vector import Call

SOURCE = (Path(__file__).parents[2] / "lua" / "decide.lua").read_text(encoding="utf-8")

_RECORD = struct.Struct(">8sBdddd")


@dataclass(slots=True)
class Script:
    """The script over one client. Keys are given a namespace of their own, so that tests can share a server.

    `ttl_tolerance_ms`: how much of a TTL may have passed before it can be read. In Redis 7.0 the clock goes on within
    a transaction; in Valkey it stands, and TTLs are read as they were written.
    """

    client: redis.Redis
    namespace: str
    ttl_tolerance_ms: int
    ttl_ms: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    def decide(self, now_us: int, rules: Sequence[Rule]) -> list[int]:
        """The reply of one call."""
        return self.decide_all([(now_us, rules)])[0]

    def decide_all(self, calls: Sequence[Call]) -> list[list[int]]:
        """The replies of calls made one after the other, in one transaction."""
        sha = self.client.script_load(SOURCE)
        pipe = self.client.pipeline(transaction=True)
        for now_us, rules in calls:
            keys = self.keys(rules)
            pipe.evalsha(sha, len(keys), *map(self.stored_key, keys), *arguments(str(now_us), rules))
            for key in keys:
                pipe.pttl(self.stored_key(key))
                pipe.persist(self.stored_key(key))
        results = iter(pipe.execute())
        return [self._reply(results, rules) for _, rules in calls]

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Raise AssertionError unless the last write to `key` asked for this TTL."""
        actual = self.ttl_ms[key]
        assert ttl_ms - self.ttl_tolerance_ms <= actual <= ttl_ms, f"key {key} is kept for {actual} ms, not {ttl_ms}"

    def check_same_state(self, model: Model) -> None:
        """Raise AssertionError unless the store holds exactly what the model holds, and for as long."""
        for key, bucket in model.buckets.items():
            assert self.records(key) == bucket
            self.check_ttl(key, model.ttl_ms[key])

    def records(self, key: str) -> dict[str, Record]:
        """What the store holds of a key, by rule id."""
        value: Any = self.client.get(self.stored_key(key)) or b""
        unpacked = [_RECORD.unpack(value[at : at + _RECORD.size]) for at in range(0, len(value), _RECORD.size)]
        assert all(kind == 1 for _, kind, *_ in unpacked)
        return {row[0].decode(): Record(*map(int, row[2:])) for row in unpacked}

    def stored_key(self, key: str) -> str:
        """The key's name in the store: one hash tag for the whole namespace."""
        return f"weir:1:{{{self.namespace}}}:{key}"

    @staticmethod
    def keys(rules: Sequence[Rule]) -> list[str]:
        """The distinct keys of a call, in the order of its rules."""
        return list(dict.fromkeys(rule.key for rule in rules))

    def _reply(self, results: Any, rules: Sequence[Rule]) -> list[int]:
        reply: list[int] = next(results)
        for key in self.keys(rules):
            ttl_ms, _persisted = next(results), next(results)
            if ttl_ms >= 0:  # a refusal writes nothing, so the key is still persistent
                self.ttl_ms[key] = ttl_ms
                self.writes += 1
        return reply


def arguments(now_us: str, rules: Sequence[Rule]) -> list[str | int]:
    """ARGV of a call; `now_us` empty for the store's own clock."""
    keys = Script.keys(rules)
    argv: list[str | int] = [now_us, len(rules)]
    for rule in rules:
        argv += [keys.index(rule.key) + 1, rule.id, rule.p, rule.l, rule.capacity, rule.increment, int(rule.enforcing)]
    return argv
