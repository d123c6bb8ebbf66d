# SPDX-License-Identifier: Apache-2.0
"""The wire types of overrides, and what one makes of a limit's numbers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from weir_operator.domain.algorithms import Limit
from weir_operator.domain.limits import (
    MAX_COUNT,
    MAX_EXACT,
    MAX_FACTOR_MILLI,
    MAX_QUEUE,
    MIN_FACTOR_MILLI,
    MIN_PERIOD_US,
    Action,
)
from weir_operator.domain.wire import member

_SHA256 = "^[0-9a-f]{64}$"
_SOURCE = r"^(clientIP|principal|host|method|header:[!#$%&'*+.^_`|~0-9a-z-]+|(cookie|query|claim|path):.+)$"
_LEAST: Mapping[str, int] = {"requests": 1, "burst": 1, "queue": 0}  # what a factor multiplies, and never goes below


@dataclass(frozen=True, slots=True)
class Subject:
    """One source of an override's subject and the value it must have."""

    source: str = member(
        "`header:<name>`, `cookie:<name>`, `query:<name>`, `claim:<members, dotted>`, `path:<name>`, `clientIP`, "
        "`principal`, `host` or `method`. A dot or backslash within a claim's member follows a backslash.",
        pattern=_SOURCE,
    )
    sha256: str = member("Of the value; for clientIP of the canonical text of the masked address.", pattern=_SHA256)


@dataclass(frozen=True, slots=True)
class NewLimit:
    """The numbers that a `Set` override replaces; at least one, and only such as the rule's algorithm has."""

    requests: int | None = member("Absent = the rule's.", default=None, minimum=1, maximum=MAX_COUNT)
    period_us: int | None = member("Absent = the rule's.", default=None, minimum=MIN_PERIOD_US, maximum=MAX_EXACT)
    burst: int | None = member("Absent = the rule's.", default=None, minimum=1, maximum=MAX_COUNT)
    queue: int | None = member("Absent = the rule's.", default=None, minimum=0, maximum=MAX_QUEUE)
    max_delay_us: int | None = member("Absent = the rule's.", default=None, minimum=0, maximum=MAX_EXACT)

    def given(self) -> dict[str, int]:
        """The numbers that it names, by attribute."""
        return {name: value for name in _attributes(NewLimit) if (value := getattr(self, name)) is not None}

    def foreign(self, limit: Limit) -> list[str]:
        """The attributes that it names and `limit`'s algorithm does not have."""
        return [name for name in self.given() if name not in _attributes(limit.__class__)]

    def over(self, limit: Limit) -> Limit:
        """`limit` with the replaced numbers; nothing may be `foreign` to it."""
        numbers: dict[str, Any] = dict(self.given())
        return replace(limit, **numbers)


@dataclass(frozen=True, slots=True)
class Override:
    """One RateLimitOverride, compiled."""

    id: str = member("namespace/name", pattern="^[^/]+/[^/]+$")
    policy: str = member("The policy's id.", pattern="^[^/]+/[^/]+$")
    rules: tuple[str, ...] = member("Names of the policy's rules.", minItems=1)
    subjects: tuple[tuple[Subject, ...], ...] = member("Any of these; within one, all sources must agree.", minItems=1)
    action: Action = member("What it does.")
    limit: NewLimit | None = member("Only for `Set`.", minProperties=1)
    not_before: int | None = member("Unix seconds, inclusive; absent = from the start.", minimum=0)
    not_after: int | None = member("Unix seconds, exclusive; absent = for ever.", minimum=0)
    factor_milli: int | None = member(
        "Only for `Multiply`: thousandths by which requests, burst and queue are multiplied; the result is rounded "
        "down, to at least 1 (queue: 0).",
        default=None,
        minimum=MIN_FACTOR_MILLI,
        maximum=MAX_FACTOR_MILLI,
    )

    def over(self, limit: Limit) -> Limit:
        """The limit that its subjects have instead of `limit`."""
        if self.limit is not None:
            return self.limit.over(limit)
        return limit if self.factor_milli is None else multiplied(limit, self.factor_milli)


def multiplied(limit: Limit, factor_milli: int) -> Limit:
    """`limit` with `requests`, `burst` and `queue` times a factor in thousandths."""
    numbers: dict[str, Any] = {
        name: max(least, getattr(limit, name) * factor_milli // 1000)
        for name, least in _LEAST.items()
        if name in _attributes(limit.__class__)
    }
    if numbers.get("queue") == 0:
        numbers["max_delay_us"] = 0  # where nobody waits, nobody waits for long
    return replace(limit, **numbers)


def _attributes(kind: Any) -> tuple[str, ...]:
    """The attributes of a dataclass; asked for once for each of 12,000 overrides, hence remembered."""
    return _fields(kind)


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
