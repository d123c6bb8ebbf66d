# SPDX-License-Identifier: Apache-2.0
"""What a client is told of waiting is true, for every algorithm, on the model."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model import LeakyBucket, Limit, Model, SlidingWindowLog
from strategies import Calendar, algorithms, at, histories, limits, rule, steps_us, traffic
from vector import Call

Traffic = list[tuple[int, int]]


@pytest.mark.requirement("R30")
@given(limit=st.one_of(algorithms), calls=traffic(), cost=st.integers(1, 400))
@settings(max_examples=300)
def test_wait_that_was_told_is_enough_and_a_microsecond_less_is_not(
    limit: Limit | Calendar, calls: Traffic, cost: int
) -> None:
    """D17, D03, D19: without other traffic; a cost that can never pass is told apart."""
    model, now_us = Model(), calls[-1][0]
    for at_us, spent in calls:
        model.decide(at_us, [rule(at(limit, at_us), spent)])
    allowed, _, _, _, wait_us, _ = model.decide(now_us, [rule(at(limit, now_us), cost)])
    largest = getattr(limit, "burst", limit.requests)
    assert (wait_us == -1) == (cost > largest and not isinstance(limit, LeakyBucket))
    if not allowed and wait_us > 0:
        after_us = now_us + wait_us
        assert model.decide(after_us - 1, [rule(at(limit, after_us - 1), cost)])[0] == 0
        assert model.decide(after_us, [rule(at(limit, after_us), cost)])[0] == 1


@st.composite
def changes(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two limits of one algorithm."""
    algorithm = draw(st.sampled_from(algorithms))
    return draw(algorithm), draw(algorithm)


@pytest.mark.requirement("R16")
@given(change=changes(), calls=traffic(), away_us=steps_us, cost=st.integers(1, 400))
@settings(max_examples=300)
def test_wait_that_was_told_right_after_a_change_of_the_limit_is_enough(
    change: tuple[Any, Any], calls: Traffic, away_us: int, cost: int
) -> None:
    """D17, D46: in both directions, however long after the last charge."""
    before, limit = change
    model, now_us = Model(), calls[-1][0] + away_us
    for at_us, spent in calls:
        model.decide(at_us, [rule(at(before, at_us), spent)])
    allowed, _, ok, _, wait_us, _ = model.decide(now_us, [rule(at(limit, now_us), cost)])
    assert allowed == ok
    if not ok and wait_us > 0:
        assert model.decide(now_us + wait_us, [rule(at(limit, now_us + wait_us), cost)])[0] == 1


@pytest.mark.requirement("R16")
@given(change=changes(), calls=traffic())
@settings(max_examples=200)
def test_client_that_was_away_for_the_time_to_full_has_used_nothing(change: tuple[Any, Any], calls: Traffic) -> None:
    """D17: also when that time was told right after a change of the limit."""
    before, limit = change
    model = Model()
    for at_us, cost in calls:
        model.decide(at_us, [rule(at(before, at_us), cost)])
    now_us, cost = calls[-1]
    reset_us = model.decide(now_us, [rule(at(limit, now_us), cost)])[5]
    then_us = now_us + reset_us
    fresh = Model().decide(then_us, [rule(at(limit, then_us), 0)])
    assert model.decide(then_us, [rule(at(limit, then_us), 0)]) == fresh


@given(history=histories())
@settings(max_examples=100)
def test_longest_wait_of_the_refusing_rules_is_enough_for_all(history: list[Call]) -> None:
    """D17, D18: also after changes of the limits, and while the clock is behind."""
    model = Model()
    for now_us, rules in history:
        reply = model.decide(now_us, rules)
        refusing = [rule_reply for r, rule_reply in zip(rules, _by_rule(reply), strict=True) if r.enforcing]
        waits = [wait for ok, _, wait, _ in refusing if not ok]
        if reply[0] == 0 and -1 not in waits:
            later = deepcopy(model).decide(now_us + max(waits), rules)
            assert later[0] in {1, -1}  # the edges of a calendar may be stale by then


@given(limit=limits, calls=traffic(), cost=st.integers(1, 4))
@settings(max_examples=100)
def test_what_remains_passes_and_one_more_does_not(limit: Limit, calls: Traffic, cost: int) -> None:
    """D21: a leaky bucket's requests pass one by one, whatever they cost."""
    model, now_us = Model(), calls[-1][0]
    for at_us, spent in calls:
        remaining = model.decide(at_us, [rule(limit, spent)])[3]
    most = 40 if isinstance(limit, LeakyBucket | SlidingWindowLog) else 400
    if 0 < remaining <= most:
        replies = [model.decide(now_us, [rule(limit)])[0] for _ in range(remaining + 1)]
        assert replies == [1] * remaining + [0]


def _by_rule(reply: list[int]) -> list[list[int]]:
    return [reply[place : place + 4] for place in range(2, len(reply), 4)]
