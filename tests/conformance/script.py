# SPDX-License-Identifier: Apache-2.0
"""The scripts in a real store, with a clock that the test gives: an implementation that vectors can be played on.

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

import wire
from model import BucketRecord, CounterRecord, LogRecord, Model, Record, Rule, WindowRecord
from vector import Call

LUA = Path(__file__).parents[2] / "lua"
DECIDE = (LUA / "decide.lua").read_text(encoding="utf-8")
REFUND = (LUA / "refund.lua").read_text(encoding="utf-8")

_RECORD = struct.Struct(">8sBdddd")
_LOG_HEAD = struct.Struct(">ddd")


@dataclass(slots=True)
class Script:
    """The scripts over one client. Keys are given a namespace of their own, so that tests can share a server.

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
        sha = self.client.script_load(DECIDE)
        pipe = self.client.pipeline(transaction=True)
        for now_us, rules in calls:
            keys = wire.keys(rules)
            pipe.evalsha(sha, len(keys), *map(self.stored_key, keys), wire.plan(rules), str(now_us))
            for key in keys:
                pipe.pttl(self.stored_key(key))
                pipe.persist(self.stored_key(key))
        results = iter(pipe.execute())
        return [self._reply(results, rules) for _, rules in calls]

    def refund(self, now_us: int, charged_at_us: int, rules: Sequence[Rule]) -> None:
        """Give back what a call of these rules has charged."""
        keys = map(self.stored_key, wire.keys(rules))
        argv = (wire.plan(rules, refund=True), wire.double(charged_at_us), str(now_us))
        assert self.client.eval(REFUND, len(wire.keys(rules)), *keys, *argv) == 1

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Raise AssertionError unless the last charge of `key` asked for this TTL."""
        actual = self.ttl_ms[key]
        assert ttl_ms - self.ttl_tolerance_ms <= actual <= ttl_ms, f"key {key} is kept for {actual} ms, not {ttl_ms}"

    def check_same_state(self, model: Model) -> None:
        """Raise AssertionError unless the store holds exactly what the model holds, and for as long."""
        for key, records in model.records.items():
            assert self.records(key) == records
        for key, ttl_ms in model.ttl_ms.items():
            self.check_ttl(key, ttl_ms)

    def records(self, key: str) -> dict[str, Record]:
        """What the store holds of a key, by rule id."""
        value: Any = self.client.get(self.stored_key(key)) or b""
        _, is_log, name = key.partition(":")
        if is_log:
            return {name: _log(value)} if value else {}
        rows = [_RECORD.unpack(value[at : at + _RECORD.size]) for at in range(0, len(value), _RECORD.size)]
        return {name.decode(): _record(kind, *map(int, row)) for name, kind, *row in rows}

    def stored_key(self, key: str) -> str:
        """The key's name in the store: one hash tag for the whole namespace."""
        return f"weir:2:{{{self.namespace}}}:{key}"

    def _reply(self, results: Any, rules: Sequence[Rule]) -> list[int]:
        reply = wire.integers(next(results))
        for key in wire.keys(rules):
            ttl_ms, _persisted = next(results), next(results)
            if ttl_ms >= 0:  # a refusal writes nothing, so the key is still persistent
                self.ttl_ms[key] = ttl_ms
                self.writes += 1
        return reply


def _record(kind: int, at_us: int, x: int, y: int, z: int) -> Record:
    if kind in {1, 2}:
        return BucketRecord(at_us, x, y, z)
    if kind == 3:
        assert z == 0
        return WindowRecord(at_us, x, y)
    assert kind == 4
    return CounterRecord(at_us, x, y, z)


def _log(value: bytes) -> LogRecord:
    at_us, period_us, outside = map(int, _LOG_HEAD.unpack_from(value))
    times = struct.unpack(f">{(len(value) - _LOG_HEAD.size) // 8}d", value[_LOG_HEAD.size :])
    return LogRecord(at_us, period_us, tuple(map(int, times[outside:])))
