# SPDX-License-Identifier: Apache-2.0
"""A rule in the numbers of the script's plan, and as the bytes of it; `lua/decide.lua` says what they mean."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from model import (
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    Rule,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)


def numbers(rule: Rule, *, refund: bool = False) -> tuple[int, list[int]]:
    """The kind of a rule, and its four numbers, or eight for a calendar."""
    limit: object = rule.limit
    match limit:
        case TokenBucket() | LeakyBucket():
            kind = 1 if isinstance(limit, TokenBucket) else 2
            return kind, [rule.cost * limit.p, rule.owed_before if refund else limit.capacity, limit.p, limit.l]
        case FixedWindow():
            return 3, [rule.cost, limit.requests, limit.period_us, 0]
        case SlidingWindowCounter():
            return 4, [rule.cost, limit.requests, limit.period_us, 0]
        case SlidingWindowLog():
            return 5, [rule.cost, limit.requests, limit.period_us, 0]
        case CalendarWindow():
            return 6, [rule.cost, limit.requests, 0, 0, *limit.edges_us]
        case _:
            raise TypeError(f"no limit of the script: {limit!r}")


def keys(rules: Sequence[Rule]) -> list[str]:
    """The distinct keys of a call, in the order of its rules."""
    return list(dict.fromkeys(rule.stored_under for rule in rules))


def plan(rules: Sequence[Rule], *, refund: bool = False) -> bytes:
    """ARGV[1] of a call."""
    indices = {key: index for index, key in enumerate(keys(rules), start=1)}
    packed = b""
    for rule in rules:
        kind, row = numbers(rule, refund=refund)
        head = struct.pack(">BBB8s", kind, indices[rule.stored_under], rule.enforcing, rule.id.encode())
        packed += head + struct.pack(f">{len(row)}d", *row)
    return packed


def double(number: int) -> bytes:
    """ARGV[2] of a refund."""
    return struct.pack(">d", number)


def integers(reply: bytes) -> list[int]:
    """The numbers of a reply. Raises AssertionError for one that is no integer."""
    fields = struct.unpack(f">{len(reply) // 8}d", reply)
    assert all(field.is_integer() for field in fields), f"the script replied {fields}"
    return [int(field) for field in fields]
