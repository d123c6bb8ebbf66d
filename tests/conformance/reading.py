# SPDX-License-Identifier: Apache-2.0
"""The words of a vector in the integers of the model: durations, instants, limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import calendars
from model import (
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    Limit,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)

START_US = 1_764_547_200_000_000  # 2025-12-01 00:00 UTC, so that times have as many digits as in production

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}


def limit(rule: Mapping[str, Any], limiter_us: int) -> Limit:
    """The limit of a rule; the edges of a calendar are those around `limiter_us`."""
    requests, period_us = rule["requests"], duration_us(rule.get("period", "0s"))
    algorithm = rule.get("algorithm", "TokenBucket")
    if algorithm == "TokenBucket":
        return TokenBucket(requests, period_us, rule["burst"])
    if algorithm == "LeakyBucket":
        return LeakyBucket(requests, period_us, rule.get("queue", 0), duration_us(rule.get("max_delay", "0s")))
    if algorithm == "SlidingWindowCounter":
        return SlidingWindowCounter(requests, period_us)
    if algorithm == "SlidingWindowLog":
        return SlidingWindowLog(requests, period_us)
    if "calendar" in rule:
        zone = rule.get("time_zone", "UTC")
        return CalendarWindow(requests, calendars.edges(rule["calendar"], zone, limiter_us))
    return FixedWindow(requests, period_us)


def instant_us(fields: Mapping[str, Any], name: str) -> int:
    """A time: `name` in RFC 3339, or `name_us` or `name_ms` after the start."""
    if name in fields:
        return int(datetime.fromisoformat(fields[name]).timestamp()) * 1_000_000
    return START_US + span_us(fields, name)


def span_us(fields: Mapping[str, Any], name: str) -> int:
    """`name_us` or `name_ms`; 0 when absent."""
    return int(fields.get(f"{name}_us", fields.get(f"{name}_ms", 0) * 1000))


def duration_us(duration: str) -> int:
    """`1h30m` in microseconds."""
    return sum(int(count) * _UNITS_US[unit] for count, unit in re.findall(r"(\d+)(us|ms|s|m|h)", duration))
