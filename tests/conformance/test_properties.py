# SPDX-License-Identifier: Apache-2.0
"""What holds for every sequence of calls: the implementations agree, and the model keeps the promises of a limit.

The promises are checked on the model alone, because it is fast; the script and the core are held to the model call by
call, stored bytes included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import Core
from lab.store import Store
from model import Limit, Model, Rule
from script import Script
from vector import START_US, Call

SECOND_US = 1_000_000
_EXAMPLES = count()

limits = st.builds(
    Limit,
    requests=st.sampled_from([1, 3, 7, 10, 100, 333, 1000, 8000, 300_000]),
    period_us=st.sampled_from([1000, 10_000, SECOND_US, 60 * SECOND_US, 3600 * SECOND_US]),
    burst=st.sampled_from([1, 2, 5, 7, 10, 100, 333]),
)
# Around the distances at which something happens: nothing, a microsecond, a token, a whole bucket.
steps_us = st.one_of(
    st.sampled_from([0, 0, 0, 1, 10, 999, 1000, 142_857, 142_858, SECOND_US]),
    st.integers(0, 5 * SECOND_US),
    st.integers(0, 100_000 * SECOND_US),
)


@st.composite
def histories(draw: st.DrawFn, *, size: int = 15, clock_steps_back: bool = True) -> list[Call]:
    """Calls of one to three rules over two keys whose limits change now and then."""
    now_us = START_US
    calls: list[Call] = []
    current = {name: draw(limits) for name in ("alpha...", "beta....", "gamma...")}
    keys = {name: draw(st.sampled_from(["one", "two"])) for name in current}
    shadow = draw(st.sampled_from([None, *current]))
    for _ in range(draw(st.integers(1, size))):
        now_us += draw(steps_us)
        if clock_steps_back and draw(st.integers(0, 9)) == 0:
            now_us = max(START_US, now_us - draw(steps_us))
        if draw(st.integers(0, 5)) == 0:
            current[draw(st.sampled_from(sorted(current)))] = draw(limits)
        called = draw(st.lists(st.sampled_from(sorted(current)), min_size=1, unique=True))
        cost = draw(st.sampled_from([0, 1, 1, 1, 2, 5, 50, 334]))
        calls.append((now_us, [
            Rule.of(current[name], key=keys[name], name=name, cost=cost, enforcing=name != shadow) for name in called
        ]))  # fmt: skip
    return calls


@st.composite
def traffic(draw: st.DrawFn, *, size: int = 40) -> list[tuple[int, int]]:
    """(now_us, cost) of the calls of one client, in the order of time."""
    now_us, calls = START_US, []
    for distance_us in draw(st.lists(steps_us, min_size=1, max_size=size)):
        now_us += distance_us
        calls.append((now_us, draw(st.integers(0, 4))))
    return calls


def rule(limit: Limit, cost: int = 1, **more: Any) -> Rule:
    return Rule.of(limit, **{"key": "subject", "name": "rule....", "cost": cost, **more})


@given(history=histories())
@settings(max_examples=100)
def test_script_agrees_with_the_model_call_by_call(store: Store, history: list[Call]) -> None:
    model = Model()
    with store.client() as client:
        script = Script(client, f"example-{next(_EXAMPLES)}", ttl_tolerance_ms=1000)
        assert script.decide_all(history) == model.decide_all(history)
        script.check_same_state(model)


@given(history=histories(size=30))
@settings(max_examples=100)
def test_core_agrees_with_the_model_call_by_call(core: Core, history: list[Call]) -> None:
    assert Core(core.evaluate).decide_all(history) == Model().decide_all(history)


@pytest.mark.requirement("R06")
@pytest.mark.requirement("R10")
@given(limit=limits, calls=traffic())
@settings(max_examples=100)
def test_no_interval_admits_more_than_burst_and_rate(limit: Limit, calls: list[tuple[int, int]]) -> None:
    """D01, D12."""
    model = Model()
    admitted = [call for call in calls if model.decide(call[0], [rule(limit, call[1])])[0]]
    for first, (start_us, _) in enumerate(admitted):
        tokens = 0
        for end_us, cost in admitted[first:]:
            tokens += cost
            assert tokens <= limit.burst + Fraction(limit.requests * (end_us - start_us), limit.period_us)


@pytest.mark.requirement("R16")
@given(plans=st.lists(limits, min_size=2, max_size=3), calls=traffic(), data=st.data())
@settings(max_examples=100)
def test_changing_limits_admit_no_more_than_the_largest_burst_and_the_fastest_rate(
    plans: list[Limit], calls: list[tuple[int, int]], data: st.DataObject
) -> None:
    """D13, D46: going to and fro between limits is worth nothing."""
    model, tokens = Model(), 0
    for now_us, cost in calls:
        limit = data.draw(st.sampled_from(plans))
        tokens += cost * model.decide(now_us, [rule(limit, cost)])[0]
        fastest = max(Fraction(plan.requests, plan.period_us) for plan in plans)
        assert tokens <= max(plan.burst for plan in plans) + fastest * (now_us - calls[0][0])


@pytest.mark.requirement("R16")
@given(before=limits, limit=limits, calls=traffic())
@settings(max_examples=100)
def test_client_that_was_away_for_the_time_to_full_has_its_whole_burst(
    before: Limit, limit: Limit, calls: list[tuple[int, int]]
) -> None:
    """D17: also when that time was told right after a change of the limit."""
    model = Model()
    model.decide_all([(now_us, [rule(before, cost)]) for now_us, cost in calls])
    now_us, cost = calls[-1]
    reset_us = model.decide(now_us, [rule(limit, cost)])[4]
    assert model.decide(now_us + reset_us, [rule(limit, limit.burst)])[0] == 1


@given(history=histories())
@settings(max_examples=100)
def test_refusal_changes_nothing(history: list[Call]) -> None:
    """D04, D08."""
    model = Model()
    for now_us, rules in history:
        before = ({key: dict(bucket) for key, bucket in model.buckets.items()}, dict(model.ttl_ms))
        if not model.decide(now_us, rules)[0]:
            assert (model.buckets, model.ttl_ms) == before


@pytest.mark.requirement("R30")
@given(limit=limits, calls=traffic(), cost=st.integers(1, 400))
@settings(max_examples=100)
def test_wait_that_was_told_is_enough_and_a_microsecond_less_is_not(
    limit: Limit, calls: list[tuple[int, int]], cost: int
) -> None:
    """D17, D03: without other traffic; a cost that can never pass is told apart."""
    model, now_us = Model(), calls[-1][0]
    model.decide_all([(at_us, [rule(limit, spent)]) for at_us, spent in calls])
    allowed, _, _, wait_us, _ = model.decide(now_us, [rule(limit, cost)])
    assert (wait_us == -1) == (cost > limit.burst)
    if not allowed and wait_us > 0:
        assert model.decide(now_us + wait_us - 1, [rule(limit, cost)])[0] == 0
        assert model.decide(now_us + wait_us, [rule(limit, cost)])[0] == 1


@pytest.mark.requirement("R16")
@given(before=limits, limit=limits, calls=traffic(), away_us=steps_us, cost=st.integers(1, 400))
@settings(max_examples=200)
def test_wait_that_was_told_right_after_a_change_of_the_limit_is_enough(
    before: Limit, limit: Limit, calls: list[tuple[int, int]], away_us: int, cost: int
) -> None:
    """D17, D46: in both directions, however long after the last charge."""
    model, now_us = Model(), calls[-1][0] + away_us
    model.decide_all([(at_us, [rule(before, spent)]) for at_us, spent in calls])
    allowed, _, _, wait_us, _ = model.decide(now_us, [rule(limit, cost)])
    assert (wait_us == 0) == (allowed == 1)
    if wait_us > 0:
        assert model.decide(now_us + wait_us, [rule(limit, cost)])[0] == 1


@pytest.mark.requirement("R16")
@given(before=limits, limit=limits, used=st.integers(1, 333), away_us=steps_us)
@settings(max_examples=100)
def test_used_tokens_drain_at_the_new_rate_at_least(before: Limit, limit: Limit, used: int, away_us: int) -> None:
    """D46: nobody is worse off than someone who has used as much under the new limit."""
    changed, fresh = Model(), Model()
    used = min(used, before.burst, limit.burst)
    changed.decide(START_US, [rule(before, used)])
    fresh.decide(START_US, [rule(limit, used)])
    asked = (START_US + away_us, [rule(limit, 0)])
    assert changed.decide(*asked)[2] >= fresh.decide(*asked)[2]


@given(history=histories())
@settings(max_examples=100)
def test_longest_wait_of_the_refusing_rules_is_enough_for_all(history: list[Call]) -> None:
    """D17, D18: also after changes of the limits, and while the clock is behind."""
    model = Model()
    for now_us, rules in history:
        reply = model.decide(now_us, rules)
        waits = [wait for r, wait in zip(rules, reply[3::4], strict=True) if r.enforcing]
        if not reply[0] and -1 not in waits:
            later = Model({key: dict(bucket) for key, bucket in model.buckets.items()})
            assert later.decide(now_us + max(waits), rules)[0] == 1


@given(history=histories(), other=histories())
@settings(max_examples=100)
def test_calls_of_another_subject_change_nothing(history: list[Call], other: list[Call]) -> None:
    alone, mixed = Model(), Model()
    expected = alone.decide_all(history)
    strangers = iter([(at_us, [replace(r, key=f"other-{r.key}") for r in rules]) for at_us, rules in other])
    replies = []
    for now_us, rules in history:
        if (call := next(strangers, None)) is not None:
            mixed.decide(*call)
        replies.append(mixed.decide(now_us, rules))
    assert replies == expected


@given(history=histories())
@settings(max_examples=100)
def test_order_of_the_rules_in_a_call_changes_nothing(history: list[Call]) -> None:
    """D08, D11."""
    forward, backward = Model(), Model()
    for now_us, rules in history:
        first, last = forward.decide(now_us, rules), backward.decide(now_us, rules[::-1])
        assert first[0] == last[0]
        assert _by_rule(rules, first) == _by_rule(rules[::-1], last)


def _by_rule(rules: Sequence[Rule], reply: list[int]) -> dict[str, list[int]]:
    return {r.id: reply[1 + 4 * place : 5 + 4 * place] for place, r in enumerate(rules)}
