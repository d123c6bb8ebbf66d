# SPDX-License-Identifier: Apache-2.0
"""What Set and Multiply make of the limits of every algorithm, and which of that is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.algorithms import (
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    Limit,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import Calendar, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.override_numbers import check_numbers, parse_factor
from weir_operator.domain.overriding import NewLimit, multiplied
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Cost, Plans, Route, Rule
from weir_operator.domain.sources import HeaderKey

GATEWAY = Gateway("edge", "weir", max_delay_ms=500)
SECOND = 1_000_000
BUCKET = TokenBucket(100, SECOND, 200)
LEAKY = LeakyBucket(100, SECOND, 5, 100_000)
STRICT = LeakyBucket(100, SECOND, 0, 0)
WINDOW = FixedWindow(100, SECOND)
MONTH = CalendarWindow(100, Calendar.MONTH, "UTC")
COUNTER = SlidingWindowCounter(100, 86_400 * SECOND)
LOG = SlidingWindowLog(100, SECOND)


def rule(limit: Limit, plan: Limit | None = None, cost: int = 1) -> Rule:
    plans = Plans(HeaderKey("x-plan"), {"gold": plan}) if plan else None
    costs = (Cost(Route("/x", ()), cost),)
    return Rule(
        "r", Mode.ENFORCE, (), MissingKey.SKIP, limit, plans, costs, FailureMode.OPEN, Visibility.PUBLIC, "c"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("factor", "limit", "expected"),
    [
        ("2.5", BUCKET, TokenBucket(250, SECOND, 500)),
        ("0.001", BUCKET, TokenBucket(1, SECOND, 1)),
        ("0.333", TokenBucket(10, SECOND, 20), TokenBucket(3, SECOND, 6)),
        ("2.5", LEAKY, LeakyBucket(250, SECOND, 12, 100_000)),
        ("0.1", LEAKY, LeakyBucket(10, SECOND, 0, 0)),
        ("3", WINDOW, FixedWindow(300, SECOND)),
        ("1.5", MONTH, CalendarWindow(150, Calendar.MONTH, "UTC")),
        ("1000", COUNTER, SlidingWindowCounter(100_000, 86_400 * SECOND)),
        ("0.29", LOG, SlidingWindowLog(29, SECOND)),
    ],
)
def test_a_factor_multiplies_the_counts_and_rounds_down(factor: str, limit: Limit, expected: Limit) -> None:
    milli = parse_factor(factor)
    assert isinstance(milli, int)
    assert multiplied(limit, milli) == expected


@given(st.integers(1, 1_000_000))
def test_a_factor_is_read_exactly(milli: int) -> None:
    """D69: no binary fraction comes between the text and the thousandths."""
    assert parse_factor(f"{milli // 1000}.{milli % 1000:03d}") == milli
    assert parse_factor(f"{milli // 1000}.{milli % 1000:03d}".rstrip("0").rstrip(".")) == milli


FAULTS: list[tuple[str, NewLimit | int, Rule, str, str]] = [
    (
        "product-beyond-all-counts",
        1_000_000,
        rule(TokenBucket(10**10, SECOND, 1)),
        "spec.factor",
        "write a smaller factor",
    ),
    ("product-beyond-a-log", 101_000, rule(LOG), "spec.factor", "write a smaller factor"),
    (
        "product-that-is-inexact",
        1_000_000,
        rule(replace(COUNTER, requests=105)),
        "spec.factor",
        "write a smaller factor",
    ),
    ("product-in-a-plan", 101_000, rule(SlidingWindowLog(1, SECOND), LOG), "spec.factor", "write a smaller factor"),
    ("product-below-a-cost", 500, rule(LOG, cost=60), "spec.factor", "write a larger factor"),
    ("burst-of-a-window", NewLimit(burst=5), rule(WINDOW), "spec.limit.burst", "only rules that have it"),
    ("period-of-a-month", NewLimit(period_us=SECOND), rule(MONTH), "spec.limit.period", "only rules that have it"),
    ("delay-of-a-log", NewLimit(max_delay_us=9), rule(LOG), "spec.limit.maxDelay", "only rules that have it"),
    ("queue-without-delay", NewLimit(queue=5), rule(STRICT), "spec.limit.maxDelay", "how long"),
    ("delay-without-queue", NewLimit(max_delay_us=9), rule(STRICT), "spec.limit.maxDelay", "write a queue"),
    ("delay-above-the-gateways", NewLimit(max_delay_us=SECOND), rule(LEAKY), "spec.limit.maxDelay", "at most 500ms"),
    ("window-below-a-cost", NewLimit(requests=9), rule(WINDOW, cost=10), "spec.limit.requests", "at least 10"),
    ("window-below-a-cost-in-a-plan", NewLimit(requests=9), rule(WINDOW, WINDOW, 10), "spec.limit.requests", "10"),
    ("long-log", NewLimit(requests=10_001), rule(LOG), "spec.limit.requests", "SlidingWindowCounter"),
    ("inexact-period", NewLimit(period_us=10**15), rule(COUNTER), "spec.limit.requests", "at most 9,"),
]


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(
    ("change", "target", "path", "remedy"), [pytest.param(*fault[1:], id=fault[0]) for fault in FAULTS]
)
def test_numbers_that_cannot_work_are_refused_with_path_and_remedy(
    change: NewLimit | int, target: Rule, path: str, remedy: str
) -> None:
    """D03, D12, D68: also through an override, and in every plan."""
    problems = check_numbers(change, [target], GATEWAY)
    assert {problem.path for problem in problems} == {path}
    assert all('with rule "r"' in problem.message for problem in problems)
    assert remedy in problems[-1].hint


@pytest.mark.parametrize(
    ("new", "limit", "expected"),
    [
        (NewLimit(requests=5), BUCKET, TokenBucket(5, SECOND, 200)),
        (NewLimit(requests=5, period_us=9_000), WINDOW, FixedWindow(5, 9_000)),
        (NewLimit(requests=5), MONTH, CalendarWindow(5, Calendar.MONTH, "UTC")),
        (NewLimit(queue=9), LEAKY, LeakyBucket(100, SECOND, 9, 100_000)),
        (NewLimit(queue=0, max_delay_us=0), LEAKY, LeakyBucket(100, SECOND, 0, 0)),
        (NewLimit(queue=9, max_delay_us=50), STRICT, LeakyBucket(100, SECOND, 9, 50)),
    ],
)
def test_set_replaces_only_what_it_names(new: NewLimit, limit: Limit, expected: Limit) -> None:
    assert new.over(limit) == expected
    assert check_numbers(new, [rule(limit)], GATEWAY) == []


def test_a_factor_that_leaves_everything_within_bounds_is_fine_in_every_algorithm() -> None:
    found: list[Any] = check_numbers(
        2500, [rule(each) for each in (BUCKET, LEAKY, WINDOW, MONTH, COUNTER, LOG)], GATEWAY
    )
    assert found == []


def test_no_problem_quotes_more_of_a_factor_than_a_line() -> None:
    problem = parse_factor("9" * 10_000)
    assert isinstance(problem, Problem)
    assert len(str(problem)) < 200


def test_a_factor_that_cannot_be_says_which_number_it_makes_and_what_to_do_with_the_factor() -> None:
    (small,) = check_numbers(500, [rule(BUCKET, cost=150)], GATEWAY)
    assert str(small) == (
        'spec.factor: with rule "r", it makes burst 100: the dearest request costs 150, and the limit can give at most '
        "100; write a larger factor, or leave this rule out of spec.rules"
    )
    (large,) = check_numbers(101_000, [rule(LOG)], GATEWAY)
    assert str(large) == (
        'spec.factor: with rule "r", it makes requests 10100: 10100 is out of range; write a smaller factor, or leave '
        "this rule out of spec.rules"
    )
