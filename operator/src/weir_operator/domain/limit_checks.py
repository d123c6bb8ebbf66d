# SPDX-License-Identifier: Apache-2.0
"""A limit as it was written to the algorithm's numbers, or what is wrong with it: alone, and on its gateway."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weir_operator.domain.algorithms import (
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    Limit,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
    check_limit,
)
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import Algorithm
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.specs import LimitSpec
from weir_operator.domain.time_zones import time_zones, zone_hint

DEFAULT_ZONE = "UTC"
US_PER_MS = 1000
_OWNERS = (
    ("burst", "burst", Algorithm.TOKEN_BUCKET),
    ("queue", "queue", Algorithm.LEAKY_BUCKET),
    ("max_delay_us", "maxDelay", Algorithm.LEAKY_BUCKET),
    ("calendar", "calendar", Algorithm.FIXED_WINDOW),
)


def parse_limit(spec: LimitSpec, path: str, gateway: Gateway) -> Limit | tuple[Problem, ...]:
    """The limit with its defaults filled in, or every problem that it has; `path` is where it stands."""
    problems = [*_check_members(spec, path), *_check_window(spec, path), *_check_queue(spec, path)]
    if problems:
        return tuple(problems)
    limit = limit_of(spec)
    found = (*check_limit(limit, path), *check_holding(limit, path, gateway))
    if isinstance(limit, TokenBucket) and spec.burst is None:
        found = tuple(_with_default_burst(problem) if problem.path == f"{path}.burst" else problem for problem in found)
    return found or limit


def _with_default_burst(problem: Problem) -> Problem:
    return replace(problem, message=f"{problem.message} (burst, left out, is as much as requests)")


def limit_of(spec: LimitSpec) -> Limit:
    """The limit of a spec that `parse_limit` finds nothing wrong with."""
    period_us = spec.period_us or 0
    match spec.algorithm:
        case Algorithm.TOKEN_BUCKET:
            return TokenBucket(spec.requests, period_us, spec.requests if spec.burst is None else spec.burst)
        case Algorithm.LEAKY_BUCKET:
            return LeakyBucket(spec.requests, period_us, spec.queue or 0, spec.max_delay_us or 0)
        case Algorithm.FIXED_WINDOW if spec.calendar is not None:
            return CalendarWindow(spec.requests, spec.calendar, spec.time_zone or DEFAULT_ZONE)
        case Algorithm.FIXED_WINDOW:
            return FixedWindow(spec.requests, period_us)
        case Algorithm.SLIDING_WINDOW_COUNTER:
            return SlidingWindowCounter(spec.requests, period_us)
        case Algorithm.SLIDING_WINDOW_LOG:
            return SlidingWindowLog(spec.requests, period_us)


def check_holding(limit: Limit, path: str, gateway: Gateway) -> list[Problem]:
    """Whether the gateway holds requests for as long as the limit may ask it to."""
    if not isinstance(limit, LeakyBucket) or limit.queue == 0:
        return []
    longest_us = gateway.max_delay_ms * US_PER_MS
    ask = "ask the gateway's administrator for a longer queueing.maxDelay"
    if longest_us == 0:
        message = f'gateway "{gateway.name}" holds no request (its queueing.maxDelay is 0)'
        return [invalid(f"{path}.queue", message, f"leave queue and maxDelay out, or {ask}")]
    if limit.max_delay_us > longest_us:
        message = f'gateway "{gateway.name}" holds a request for at most {gateway.max_delay_ms}ms'
        return [invalid(f"{path}.maxDelay", message, f"write at most {gateway.max_delay_ms}ms, or {ask}")]
    return []


def _check_members(spec: LimitSpec, path: str) -> Iterator[Problem]:
    for attribute, name, owner in _OWNERS:
        if getattr(spec, attribute) is not None and spec.algorithm is not owner:
            hint = f"leave it out, or write algorithm: {owner}"
            yield invalid(f"{path}.{name}", f"means nothing with algorithm {spec.algorithm}", hint)


def _check_window(spec: LimitSpec, path: str) -> Iterator[Problem]:
    windowed = spec.algorithm is Algorithm.FIXED_WINDOW
    if spec.period_us is None and (spec.calendar is None or not windowed):
        yield invalid(f"{path}.period", "is missing", "write a period, like 1m" + (", or a calendar" * windowed))
    if spec.period_us is not None and spec.calendar is not None and windowed:
        hint = "write one of them: a window of the calendar has its own length"
        yield invalid(f"{path}.calendar", "stands beside a period", hint)
    if spec.time_zone is not None and spec.calendar is None:
        yield invalid(f"{path}.timeZone", "means nothing without calendar", "leave it out, or write a calendar")
    elif spec.time_zone is not None and spec.time_zone not in time_zones():
        yield invalid(f"{path}.timeZone", f'"{spec.time_zone}" is no time zone', zone_hint(spec.time_zone))


def _check_queue(spec: LimitSpec, path: str) -> Iterator[Problem]:
    if spec.algorithm is not Algorithm.LEAKY_BUCKET:
        return
    if spec.queue and spec.max_delay_us is None:
        yield invalid(f"{path}.maxDelay", "is missing", "say how long a request may wait in the queue, like 500ms")
    if not spec.queue and spec.max_delay_us is not None:
        yield invalid(f"{path}.maxDelay", "means nothing without a queue", "leave it out, or write a queue")
    if spec.queue and spec.max_delay_us is not None and spec.max_delay_us <= 0:
        yield invalid(f"{path}.maxDelay", "lets nobody wait", "write how long a request may wait, or queue: 0")
