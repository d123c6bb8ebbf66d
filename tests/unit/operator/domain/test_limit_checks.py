# SPDX-License-Identifier: Apache-2.0
"""Every limit that cannot be enforced, with the path and the remedy that its author is given."""

from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.algorithms import (
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limit_checks import parse_limit
from weir_operator.domain.limits import MAX_EXACT, Algorithm, Calendar, duration_text
from weir_operator.domain.specs import LimitSpec
from weir_operator.domain.time_zones import time_zones

SECOND = 1_000_000
DAY = 86_400 * SECOND
HOLDING = Gateway("edge", "weir", max_delay_ms=500)
LEAKY, WINDOW = Algorithm.LEAKY_BUCKET, Algorithm.FIXED_WINDOW
COUNTER, LOG = Algorithm.SLIDING_WINDOW_COUNTER, Algorithm.SLIDING_WINDOW_LOG


def limit(algorithm: Algorithm = Algorithm.TOKEN_BUCKET, requests: int = 10, **numbers: Any) -> LimitSpec:
    return LimitSpec(requests, algorithm=algorithm, **{"period_us": SECOND, **numbers})


def month(**numbers: Any) -> LimitSpec:
    return limit(WINDOW, **{"period_us": None, "calendar": Calendar.MONTH, **numbers})


FAULTS = [
    ("burst-elsewhere", limit(WINDOW, burst=5), "burst", "algorithm: TokenBucket"),
    ("queue-elsewhere", limit(queue=5), "queue", "algorithm: LeakyBucket"),
    ("delay-elsewhere", limit(COUNTER, max_delay_us=5), "maxDelay", "algorithm: LeakyBucket"),
    ("calendar-elsewhere", limit(LOG, calendar=Calendar.DAY), "calendar", "algorithm: FixedWindow"),
    ("calendar-with-period", month(period_us=SECOND), "calendar", "one of them"),
    ("no-period", limit(period_us=None), "period", "like 1m"),
    ("neither-period-nor-calendar", limit(WINDOW, period_us=None), "period", "or a calendar"),
    ("zone-without-calendar", limit(WINDOW, time_zone="UTC"), "timeZone", "write a calendar"),
    ("misspelt-zone", month(time_zone="Europe/Berlni"), "timeZone", "did you mean Europe/Berlin?"),
    ("zone-in-another-case", month(time_zone="europe/berlin"), "timeZone", "did you mean Europe/Berlin?"),
    ("no-zone-at-all", month(time_zone="+02:00"), "timeZone", "IANA"),
    ("zone-of-no-place", month(time_zone="Factory"), "timeZone", "IANA"),
    ("zone-as-a-path", month(time_zone="../../etc/passwd"), "timeZone", "IANA"),
    ("queue-without-delay", limit(LEAKY, queue=5), "maxDelay", "like 500ms"),
    ("delay-without-queue", limit(LEAKY, max_delay_us=SECOND), "maxDelay", "write a queue"),
    ("delay-with-empty-queue", limit(LEAKY, queue=0, max_delay_us=SECOND), "maxDelay", "write a queue"),
    ("delay-of-nothing", limit(LEAKY, queue=5, max_delay_us=0), "maxDelay", "how long"),
    ("delay-above-the-gateways", limit(LEAKY, queue=5, max_delay_us=SECOND), "maxDelay", "at most 500ms"),
    ("negative-queue", limit(LEAKY, queue=-1, max_delay_us=9), "queue", "from 0 to 1000000"),
    ("queue-of-millions", limit(LEAKY, queue=10**6 + 1, max_delay_us=9), "queue", "from 0 to 1000000"),
    ("inexact-queue", limit(LEAKY, 7, period_us=DAY, queue=10**6, max_delay_us=9), "queue", "at most 104248"),
    ("no-requests", limit(WINDOW, 0), "requests", "from 1"),
    ("too-many-requests", limit(WINDOW, 10**12 + 1), "requests", "to 1000000000000"),
    ("long-log", limit(LOG, 10_001), "requests", "to 10000, or take SlidingWindowCounter"),
    ("inexact-counter", limit(COUNTER, 10**6, period_us=DAY), "requests", "at most 104249"),
    ("period-below-1ms", limit(COUNTER, period_us=999), "period", "at least 1ms"),
    ("window-below-1ms", limit(WINDOW, period_us=999), "period", "at least 1ms"),
    ("period-of-ages", limit(LOG, period_us=MAX_EXACT + 1), "period", "like 1s"),
    ("inexact-burst", limit(requests=7, period_us=10**12, burst=10**12), "burst", "at most 9007"),
]


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(("spec", "member", "remedy"), [pytest.param(*fault[1:], id=fault[0]) for fault in FAULTS])
def test_a_limit_that_cannot_work_is_refused_with_its_member_and_a_remedy(
    spec: LimitSpec, member: str, remedy: str
) -> None:
    """D12, D68"""
    problems = parse_limit(spec, "limit", HOLDING)
    assert isinstance(problems, tuple)
    assert {problem.path for problem in problems} == {f"limit.{member}"}
    assert remedy in problems[0].hint


@pytest.mark.parametrize(
    ("spec", "parsed"),
    [
        (limit(), TokenBucket(10, SECOND, 10)),
        (limit(burst=3), TokenBucket(10, SECOND, 3)),
        (limit(LEAKY), LeakyBucket(10, SECOND, 0, 0)),
        (limit(LEAKY, queue=0), LeakyBucket(10, SECOND, 0, 0)),
        (limit(LEAKY, queue=5, max_delay_us=500_000), LeakyBucket(10, SECOND, 5, 500_000)),
        (limit(WINDOW), FixedWindow(10, SECOND)),
        (month(), CalendarWindow(10, Calendar.MONTH, "UTC")),
        (month(time_zone="Europe/Berlin"), CalendarWindow(10, Calendar.MONTH, "Europe/Berlin")),
        (limit(COUNTER, 104_249, period_us=DAY), SlidingWindowCounter(104_249, DAY)),
        (limit(LOG, 10_000), SlidingWindowLog(10_000, SECOND)),
    ],
)
def test_a_limit_gets_the_numbers_of_its_algorithm_and_no_others(spec: LimitSpec, parsed: object) -> None:
    assert parse_limit(spec, "limit", HOLDING) == parsed


def test_a_queue_needs_a_gateway_that_holds_requests() -> None:
    spec = limit(LEAKY, queue=5, max_delay_us=1000)
    (problem,) = parse_limit(spec, "limit", replace(HOLDING, max_delay_ms=0))  # type: ignore[misc]
    assert (problem.path, problem.message) == (
        "limit.queue",
        'gateway "edge" holds no request (its queueing.maxDelay is 0)',
    )
    assert parse_limit(limit(LEAKY), "limit", replace(HOLDING, max_delay_ms=0)) == LeakyBucket(10, SECOND, 0, 0)


@pytest.mark.parametrize("number", ["queue", "counter"])
def test_the_named_largest_number_is_accepted_and_the_next_one_is_not(number: str) -> None:
    """D12: the bound in the message is tight."""

    def made(value: int) -> LimitSpec:
        if number == "queue":
            return limit(LEAKY, 7, period_us=DAY, queue=value, max_delay_us=9)
        return limit(COUNTER, value, period_us=DAY)

    largest = 104_248 if number == "queue" else 104_249
    assert not isinstance(parse_limit(made(largest), "limit", HOLDING), tuple)
    assert isinstance(parse_limit(made(largest + 1), "limit", HOLDING), tuple)


def test_time_zones_are_those_of_the_pinned_package_and_not_of_the_machine() -> None:
    assert {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "US/Eastern"} <= time_zones()
    assert len(time_zones()) > 500


def test_a_period_is_named_as_it_was_written() -> None:
    (problem,) = parse_limit(limit(COUNTER, 1_000_000, period_us=DAY), "limit", HOLDING)  # type: ignore[misc]
    assert problem.message == "1000000 is too much to be counted exactly per 24h"


def test_a_burst_that_was_left_out_is_not_blamed_without_a_word() -> None:
    (problem,) = parse_limit(limit(Algorithm.TOKEN_BUCKET, 999_983, period_us=DAY), "limit", HOLDING)  # type: ignore[misc]
    assert (problem.path, problem.message) == (
        "limit.burst",
        "999983 is too much to be counted exactly at 999983 per 24h (burst, left out, is as much as requests)",
    )


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [(DAY, "24h"), (90 * SECOND, "1m30s"), (250_000, "250ms"), (999, "999µs"), (0, "0s")],
)
def test_a_duration_is_written_as_users_write_it(duration_us: int, text: str) -> None:
    assert duration_text(duration_us) == text
