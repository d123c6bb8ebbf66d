# SPDX-License-Identifier: Apache-2.0
"""What no traffic gets more of than: the bound of each algorithm, over any interval, on the model.

A sliding window counter admits at most its limit N in each window that is aligned to the epoch. An interval of one
period P that ends e into a window also reaches into the window before it. If A were admitted in that part of it, the
estimate at the end counts at least ceil(A x (P - e) / P) of them, so at most N - ceil(A x (P - e) / P) were admitted in
the new window: together no more than N + floor(N x e / P), which is less than 2 N.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model import (
    FixedWindow,
    LeakyBucket,
    Limit,
    Model,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)
from strategies import (
    Calendar,
    at,
    calendar_windows,
    fixed_windows,
    leaky_buckets,
    rule,
    sliding_counters,
    sliding_logs,
    token_buckets,
    traffic,
)

Traffic = list[tuple[int, int]]


def admitted_of(limit: Limit | Calendar, calls: Traffic) -> Traffic:
    model = Model()
    return [call for call in calls if model.decide(call[0], [rule(at(limit, call[0]), call[1])])[0]]


@pytest.mark.requirement("R06")
@pytest.mark.requirement("R10")
@given(limit=token_buckets, calls=traffic())
@settings(max_examples=100)
def test_no_interval_admits_more_than_burst_and_rate(limit: TokenBucket, calls: Traffic) -> None:
    """D01, D12."""
    admitted = admitted_of(limit, calls)
    for first, (start_us, _) in enumerate(admitted):
        tokens = 0
        for end_us, cost in admitted[first:]:
            tokens += cost
            assert tokens <= limit.burst + Fraction(limit.requests * (end_us - start_us), limit.period_us)


@pytest.mark.requirement("R11")
@given(limit=leaky_buckets, calls=traffic())
@settings(max_examples=100)
def test_held_requests_leave_evenly(limit: LeakyBucket, calls: Traffic) -> None:
    """Two departures are at least the first one's cost in intervals apart, less the microsecond of rounding up."""
    model, departures = Model(), []
    for now_us, cost in calls:
        reply = model.decide(now_us, [rule(limit, cost)])
        if reply[0] and cost:
            departures.append((now_us + reply[4], cost))
            assert reply[4] <= Fraction(limit.tolerance, limit.l) + 1
    interval_us = Fraction(limit.period_us, limit.requests)
    for (first_us, cost), (second_us, _) in pairwise(departures):
        assert second_us - first_us > cost * interval_us - 1


@pytest.mark.requirement("R11")
@given(limit=st.one_of(fixed_windows, calendar_windows), calls=traffic())
@settings(max_examples=100)
def test_no_window_admits_more_than_the_limit(limit: FixedWindow | Calendar, calls: Traffic) -> None:
    """D14."""
    windows: dict[tuple[int, int], int] = {}
    for now_us, cost in admitted_of(limit, calls):
        window = at(limit, now_us).window(now_us)
        windows[window] = windows.get(window, 0) + cost
    assert all(count <= limit.requests for count in windows.values())


@pytest.mark.requirement("R11")
@given(limit=sliding_counters, calls=traffic())
@settings(max_examples=200)
def test_sliding_counter_keeps_the_bounds_of_its_estimate(limit: SlidingWindowCounter, calls: Traffic) -> None:
    admitted = admitted_of(limit, calls)
    for end_us, _ in admitted:
        window_us, elapsed_us = end_us - end_us % limit.period_us, end_us % limit.period_us
        assert sum(cost for now_us, cost in admitted if window_us <= now_us <= end_us) <= limit.requests
        interval = sum(cost for now_us, cost in admitted if end_us - limit.period_us < now_us <= end_us)
        assert interval <= limit.requests + limit.requests * elapsed_us // limit.period_us


@pytest.mark.requirement("R11")
@given(limit=sliding_logs, calls=traffic())
@settings(max_examples=100)
def test_no_interval_of_a_period_holds_more_than_a_log_allows(limit: SlidingWindowLog, calls: Traffic) -> None:
    """D05, D06, D07."""
    admitted = admitted_of(limit, calls)
    for end_us, _ in admitted:
        inside = sum(cost for now_us, cost in admitted if end_us - limit.period_us < now_us <= end_us)
        assert inside <= limit.requests


@pytest.mark.requirement("R16")
@given(plans=st.lists(token_buckets, min_size=2, max_size=3), calls=traffic(), data=st.data())
@settings(max_examples=100)
def test_changing_limits_admit_no_more_than_the_largest_burst_and_the_fastest_rate(
    plans: list[TokenBucket], calls: Traffic, data: st.DataObject
) -> None:
    """D13, D46: going to and fro between limits is worth nothing."""
    model, tokens = Model(), 0
    for now_us, cost in calls:
        limit = data.draw(st.sampled_from(plans))
        tokens += cost * model.decide(now_us, [rule(limit, cost)])[0]
        fastest = max(Fraction(plan.requests, plan.period_us) for plan in plans)
        assert tokens <= max(plan.burst for plan in plans) + fastest * (now_us - calls[0][0])


@pytest.mark.requirement("R16")
@given(before=token_buckets, limit=token_buckets, used=st.integers(1, 333), away_us=st.integers(0, 10**11))
@settings(max_examples=100)
def test_used_tokens_drain_at_the_new_rate_at_least(
    before: TokenBucket, limit: TokenBucket, used: int, away_us: int
) -> None:
    """D46: nobody is worse off than someone who has used as much under the new limit."""
    changed, fresh = Model(), Model()
    start_us = 10**15
    used = min(used, before.burst, limit.burst)
    changed.decide(start_us, [rule(before, used)])
    fresh.decide(start_us, [rule(limit, used)])
    asked = (start_us + away_us, [rule(limit, 0)])
    assert changed.decide(*asked)[3] >= fresh.decide(*asked)[3]
