# SPDX-License-Identifier: Apache-2.0
"""The numbers of a limit and the closed sets of words around it, with the ranges that can be enforced exactly.

Owns the arithmetic that says whether numbers fit; never evaluates a limit (the store's script does).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.wire import member

MAX_COUNT = 10**12  # requests and burst: fit the integers of RFC 9651 (15 digits) with room for arithmetic
MIN_PERIOD_US = 1_000  # 1 ms: a shorter period is below what a network round trip can tell apart
MAX_EXACT = 2**53 - 1  # the largest integer below which the store's doubles count every single one
MICROSECONDS_PER_SECOND = 1_000_000


class Algorithm(StrEnum):
    """How a limit counts."""

    TOKEN_BUCKET = "TokenBucket"  # noqa: S105  an algorithm, no secret
    """A bucket of `burst` tokens, refilled evenly with `requests` tokens per `period`."""


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
    EXEMPT = "Exempt"
    """The rule does not apply."""
    BLOCK = "Block"
    """Every request is refused."""


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """`requests` per `period_us` microseconds, at most `burst` at once."""

    requests: int = member("Tokens that are refilled in one period.", minimum=1, maximum=MAX_COUNT)
    period_us: int = member("The period in microseconds.", minimum=MIN_PERIOD_US, maximum=MAX_EXACT)
    burst: int = member("Tokens in a full bucket.", minimum=1, maximum=MAX_COUNT)
    algorithm: Algorithm = member("How it counts.", default=Algorithm.TOKEN_BUCKET)

    @property
    def token_weight(self) -> int:
        """p: what one token weighs in the store's unit, 1/L µs of refill (period and requests reduced)."""
        return self.period_us // math.gcd(self.period_us, self.requests)

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


def check_bucket(bucket: TokenBucket, path: str) -> list[Problem]:
    """What is wrong with a limit's numbers; `path` is where the limit stands in the object."""
    problems = [
        *_check_range(bucket.requests, 1, MAX_COUNT, f"{path}.requests"),
        *_check_range(bucket.burst, 1, MAX_COUNT, f"{path}.burst"),
    ]
    if not MIN_PERIOD_US <= bucket.period_us <= MAX_EXACT:
        hint = "write a duration of at least 1ms, like 1s or 5m"
        problems.append(invalid(f"{path}.period", f"{bucket.period_us} µs cannot be a period", hint))
    if not problems and bucket.burst > bucket.largest_burst:
        message = f"{bucket.burst} is too much to be counted exactly at {bucket.requests} per {bucket.period_us} µs"
        hint = f"at most {bucket.largest_burst}, or a rate whose requests divide the period more evenly"
        problems.append(invalid(f"{path}.burst", message, hint))
    return problems


def _check_range(number: int, least: int, most: int, path: str) -> list[Problem]:
    if least <= number <= most:
        return []
    return [invalid(path, f"{number} is out of range", f"write a whole number from {least} to {most}")]
