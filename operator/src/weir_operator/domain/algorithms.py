# SPDX-License-Identifier: Apache-2.0
"""The five algorithms' numbers as the limiters get them, and which of these can be counted exactly.

Owns the arithmetic of the bounds; never evaluates a limit (the store's script and the limiter do). Counts in the store
are doubles, so everything that is added up there must stay an integer below 2^53.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from weir_operator.domain.limits import (
    MAX_COUNT,
    MAX_EXACT,
    MAX_LOGGED,
    MAX_QUEUE,
    MIN_PERIOD_US,
    Algorithm,
    Calendar,
    duration_text,
)
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.wire import member


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """`requests` per `period_us` microseconds, at most `burst` at once."""

    requests: int = member("Tokens that are refilled in one period.", minimum=1, maximum=MAX_COUNT)
    period_us: int = member("The period in microseconds.", minimum=MIN_PERIOD_US, maximum=MAX_EXACT)
    burst: int = member("Tokens in a full bucket.", minimum=1, maximum=MAX_COUNT)
    algorithm: Algorithm = member("How it counts.", default=Algorithm.TOKEN_BUCKET, const="TokenBucket")

    @property
    def token_weight(self) -> int:
        """p: what one token weighs in the store's unit, 1/L µs of refill (period and requests reduced)."""
        return token_weight(self.requests, self.period_us)

    @property
    def drain_rate(self) -> int:
        """L: how many of those units one microsecond refills."""
        return self.requests // math.gcd(self.period_us, self.requests)

    @property
    def capacity(self) -> int:
        """The weight of a full bucket; exact in the store up to `MAX_EXACT`."""
        return self.burst * self.token_weight

    @property
    def largest_burst(self) -> int:
        """The largest burst that can be counted exactly at this rate."""
        return min(MAX_COUNT, MAX_EXACT // self.token_weight)

    @property
    def largest_cost(self) -> int:
        """The dearest request that can ever pass."""
        return self.burst


@dataclass(frozen=True, slots=True)
class LeakyBucket:
    """`requests` per `period_us` microseconds, evenly; `queue` of them may wait, each at most `max_delay_us`."""

    requests: int = member("Requests that leave in one period.", minimum=1, maximum=MAX_COUNT)
    period_us: int = member("The period in microseconds.", minimum=MIN_PERIOD_US, maximum=MAX_EXACT)
    queue: int = member(
        "Requests that may wait; 0 = none, who comes too early is refused.", minimum=0, maximum=MAX_QUEUE
    )
    max_delay_us: int = member("The longest wait in microseconds; 0 without a queue.", minimum=0, maximum=MAX_EXACT)
    algorithm: Algorithm = member("How it counts.", default=Algorithm.LEAKY_BUCKET, const="LeakyBucket")

    @property
    def largest_queue(self) -> int:
        """The longest queue that can be counted exactly at this rate."""
        return min(MAX_QUEUE, MAX_EXACT // token_weight(self.requests, self.period_us) - 1)

    @property
    def largest_cost(self) -> int:
        """The dearest request whose debt, on top of a full queue, is still counted exactly."""
        return min(MAX_QUEUE, MAX_EXACT // token_weight(self.requests, self.period_us) - self.queue)


@dataclass(frozen=True, slots=True)
class FixedWindow:
    """`requests` in each window of `period_us` microseconds, aligned to the Unix epoch."""

    requests: int = member("Requests in one window.", minimum=1, maximum=MAX_COUNT)
    period_us: int = member("The window's length in microseconds.", minimum=MIN_PERIOD_US, maximum=MAX_EXACT)
    algorithm: Algorithm = member("How it counts.", default=Algorithm.FIXED_WINDOW, const="FixedWindow")

    @property
    def largest_cost(self) -> int:
        """The dearest request that can ever pass."""
        return self.requests


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    """`requests` in each day, week or month of a time zone."""

    requests: int = member("Requests in one window.", minimum=1, maximum=MAX_COUNT)
    calendar: Calendar = member("The window; weeks begin on Monday.")
    time_zone: str = member("IANA name of the zone at whose midnight windows begin.", minLength=1)
    algorithm: Algorithm = member("How it counts.", default=Algorithm.FIXED_WINDOW, const="FixedWindow")

    @property
    def largest_cost(self) -> int:
        """The dearest request that can ever pass."""
        return self.requests


@dataclass(frozen=True, slots=True)
class SlidingWindowCounter:
    """`requests` in any `period_us` microseconds, estimated from the present and the previous window's counter."""

    requests: int = member("Requests in one period.", minimum=1, maximum=MAX_COUNT)
    period_us: int = member("The period in microseconds.", minimum=MIN_PERIOD_US, maximum=MAX_EXACT)
    algorithm: Algorithm = member(
        "How it counts.", default=Algorithm.SLIDING_WINDOW_COUNTER, const="SlidingWindowCounter"
    )

    @property
    def largest_requests(self) -> int:
        """The highest limit whose estimate is exact: it multiplies a count with a time within the period."""
        return min(MAX_COUNT, MAX_EXACT // self.period_us)

    @property
    def largest_cost(self) -> int:
        """The dearest request that can ever pass."""
        return self.requests


@dataclass(frozen=True, slots=True)
class SlidingWindowLog:
    """`requests` in any `period_us` microseconds, exactly."""

    requests: int = member("Requests in one period.", minimum=1, maximum=MAX_LOGGED)
    period_us: int = member("The period in microseconds.", minimum=MIN_PERIOD_US, maximum=MAX_EXACT)
    algorithm: Algorithm = member("How it counts.", default=Algorithm.SLIDING_WINDOW_LOG, const="SlidingWindowLog")

    @property
    def largest_cost(self) -> int:
        """The dearest request that can ever pass."""
        return self.requests


Limit = TokenBucket | LeakyBucket | FixedWindow | CalendarWindow | SlidingWindowCounter | SlidingWindowLog


def token_weight(requests: int, period_us: int) -> int:
    """p: what one request weighs in a bucket's unit, 1/L µs of drain, L = requests/gcd(requests, period)."""
    return period_us // math.gcd(period_us, requests)


def check_limit(limit: Limit, path: str) -> list[Problem]:
    """What is wrong with a limit's numbers; `path` is where the limit stands in the object."""
    most = MAX_LOGGED if isinstance(limit, SlidingWindowLog) else MAX_COUNT
    problems = _check_range(limit.requests, 1, most, f"{path}.requests", _LOG_HINT if most == MAX_LOGGED else "")
    match limit:
        case TokenBucket():
            problems += _check_range(limit.burst, 1, MAX_COUNT, f"{path}.burst")
        case LeakyBucket():
            problems += _check_range(limit.queue, 0, MAX_QUEUE, f"{path}.queue")
    if not isinstance(limit, CalendarWindow) and not MIN_PERIOD_US <= limit.period_us <= MAX_EXACT:
        hint = "write a duration of at least 1ms, like 1s or 5m"
        problems.append(invalid(f"{path}.period", f"{duration_text(limit.period_us)} cannot be a period", hint))
    return problems or _check_exactness(limit, path)


_LOG_HINT = ", or take SlidingWindowCounter: a log remembers every single request"


def _check_exactness(limit: Limit, path: str) -> list[Problem]:
    """Whether numbers that are fine by themselves are so together."""
    match limit:
        case TokenBucket() if limit.burst > limit.largest_burst:
            name, number, most = "burst", limit.burst, limit.largest_burst
        case LeakyBucket() if limit.queue > limit.largest_queue:
            name, number, most = "queue", limit.queue, limit.largest_queue
        case SlidingWindowCounter() if limit.requests > limit.largest_requests:
            name, number, most = "requests", limit.requests, limit.largest_requests
        case _:
            return []
    period = duration_text(limit.period_us)
    rate = f"per {period}" if name == "requests" else f"at {limit.requests} per {period}"
    other = "a shorter period" if name == "requests" else "a rate whose requests divide the period more evenly"
    message = f"{number} is too much to be counted exactly {rate}"
    return [invalid(f"{path}.{name}", message, f"at most {most}, or {other}" if most else f"write {other}")]


def _check_range(number: int, least: int, most: int, path: str, further: str = "") -> list[Problem]:
    if least <= number <= most:
        return []
    return [invalid(path, f"{number} is out of range", f"write a whole number from {least} to {most}{further}")]
