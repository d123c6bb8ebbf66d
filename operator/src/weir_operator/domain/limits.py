# SPDX-License-Identifier: Apache-2.0
"""The closed sets of words around a limit, and the ranges in which its numbers can be enforced exactly.

Words, bounds and their text only: what each algorithm's numbers must fulfil is `algorithms`' business.
"""

from __future__ import annotations

from enum import StrEnum

MAX_COUNT = 10**12  # requests and burst: fit the integers of RFC 9651 (15 digits) with room for arithmetic
MAX_QUEUE = 10**6  # requests that wait, and what one request may cost a leaky bucket: arbitrary, far above any real one
MAX_LOGGED = 10_000  # timestamps that one subject's log may hold: 80 kB in the store
MIN_PERIOD_US = 1_000  # 1 ms: a shorter period is below what a network round trip can tell apart
MAX_EXACT = 2**53 - 1  # the largest integer below which the store's doubles count every single one
MIN_FACTOR_MILLI, MAX_FACTOR_MILLI = 1, 1_000_000  # 0.001 to 1000, in thousandths
_UNITS_US = (("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("µs", 1))


def duration_text(duration_us: int) -> str:
    """A duration as users write it, like `24h` or `1m30s`; below a millisecond there is only our own `µs`."""
    parts: list[str] = []
    for unit, length_us in _UNITS_US:
        count, duration_us = divmod(duration_us, length_us)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


class Algorithm(StrEnum):
    """How a limit counts."""

    TOKEN_BUCKET = "TokenBucket"  # noqa: S105  an algorithm, no secret
    """A bucket of `burst` tokens, refilled evenly with `requests` tokens per `period`."""
    LEAKY_BUCKET = "LeakyBucket"
    """Requests leave evenly, one each `period`/`requests`; up to `queue` of them wait, at most `maxDelay`."""
    FIXED_WINDOW = "FixedWindow"
    """`requests` in each window of a `period`, aligned to the Unix epoch, or of a `calendar` unit."""
    SLIDING_WINDOW_COUNTER = "SlidingWindowCounter"
    """`requests` in any `period`, estimated from two counters."""
    SLIDING_WINDOW_LOG = "SlidingWindowLog"
    """`requests` in any `period`, exactly, from the time of every request."""


class Calendar(StrEnum):
    """A window of the calendar."""

    DAY = "Day"
    """From local midnight to the next."""
    WEEK = "Week"
    """From Monday, local midnight."""
    MONTH = "Month"
    """From the first of the month, local midnight."""


class Scope(StrEnum):
    """Who shares a rule's counters."""

    REGION = "Region"
    """All limiters of the gateway, through their store."""
    INSTANCE = "Instance"
    """Nobody: each limiter counts in its own memory, without the store."""


class Mode(StrEnum):
    """What a policy does with its verdicts."""

    ENFORCE = "Enforce"
    """Requests over the limit are refused."""
    SHADOW = "Shadow"
    """Every request passes; who would have been refused is counted. Responses are left unchanged."""
    DISABLED = "Disabled"
    """The rules cost nothing and count nothing."""


class MissingKey(StrEnum):
    """What a rule does with a request that lacks a part of its key."""

    SKIP = "Skip"
    """The rule does not apply to the request; the other rules do."""
    SHARE = "Share"
    """All requests that lack the key share one counter."""
    DENY = "Deny"
    """The request is refused."""


class FailureMode(StrEnum):
    """What a rule does while the store does not answer in time."""

    OPEN = "Open"
    """The request passes unlimited, and says so in a response header."""
    CLOSED = "Closed"
    """The request is refused with 503."""
    LOCAL = "Local"
    """Each limiter grants its share of the limit, counted in its own memory."""


class Share(StrEnum):
    """What each limiter grants of a limit by itself while the store does not answer."""

    SPLIT = "Split"
    """The limit divided by the number of limiters: together they grant no more than the whole."""
    FULL = "Full"
    """The whole limit, or a multiple of it: together they grant that many times their number."""


class Visibility(StrEnum):
    """How much of a rule the client is told."""

    PUBLIC = "Public"
    """RateLimit headers on every response; a refusal names the rule."""
    SILENT = "Silent"
    """No headers; a refusal is a bare 429 with Retry-After. For logins and other rules that attackers probe."""


class Dialect(StrEnum):
    """Which response headers carry the budget."""

    RATE_LIMIT = "RateLimit"
    """The IETF draft's `RateLimit` and `RateLimit-Policy`."""
    X_RATE_LIMIT = "XRateLimit"
    """`X-RateLimit-Limit`, `-Remaining` and `-Reset` in seconds until the budget is full."""
    X_RATE_LIMIT_EPOCH = "XRateLimitEpoch"
    """The same, with `-Reset` as a Unix time."""
    NONE = "None"
    """No such headers."""


class Action(StrEnum):
    """What an override does for its subjects."""

    SET = "Set"
    """Other numbers instead of the rule's."""
    MULTIPLY = "Multiply"
    """The rule's numbers times a factor."""
    EXEMPT = "Exempt"
    """The rule does not apply."""
    BLOCK = "Block"
    """Every request is refused."""
