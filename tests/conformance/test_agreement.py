# SPDX-License-Identifier: Apache-2.0
"""All implementations agree, call by call, over every algorithm, refunds and the stored bytes included."""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from core import Core
from lab.store import Store
from model import Model, SlidingWindowLog, charged
from reading import START_US
from script import Script
from strategies import histories, rule
from vector import Call, Implementation

_EXAMPLES = count()

# After which call, which one is given back.
refunds = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=1)
# Distance, cost and limit of calls that fill a log, and now and then change its limit.
busy_calls = st.tuples(
    st.sampled_from([0, 1, 100, 10_000, 100_000, 1_000_000, -100_000]),
    st.sampled_from([0, 1, 1, 5, 20, 60]),
    st.sampled_from([SlidingWindowLog(300, 10_000_000)] * 6 + [SlidingWindowLog(150, 1_000_000)]),
)


def refunding(implementation: Implementation, history: list[Call], refunds: list[tuple[int, int]]) -> list[list[int]]:
    """The replies, where after some of the calls one of those until then is given back."""
    replies: list[list[int]] = []
    for place, (now_us, rules) in enumerate(history):
        replies += implementation.decide_all([(now_us, rules)])
        for after, which in refunds:
            if after == place and which <= place and (taken := charged(history[which][1], replies[which])):
                implementation.refund(now_us, replies[which][1], taken)
    return replies


@given(history=histories(size=20))
@settings(max_examples=200)
def test_script_agrees_with_the_model_call_by_call(store: Store, history: list[Call]) -> None:
    model = Model()
    with store.client() as client:
        script = Script(client, f"example-{next(_EXAMPLES)}", ttl_tolerance_ms=1000)
        assert script.decide_all(history) == model.decide_all(history)
        script.check_same_state(model)


@given(history=histories(), refunds=refunds)
@settings(max_examples=100)
def test_script_gives_back_what_the_model_gives_back(
    store: Store, history: list[Call], refunds: list[tuple[int, int]]
) -> None:
    model = Model()
    with store.client() as client:
        script = Script(client, f"example-{next(_EXAMPLES)}", ttl_tolerance_ms=1000)
        assert refunding(script, history, refunds) == refunding(model, history, refunds)
        script.check_same_state(model)


@given(calls=st.lists(busy_calls, min_size=1, max_size=60), refunds=refunds)
@settings(max_examples=60)
def test_script_agrees_on_logs_too_long_to_be_read_as_a_whole(
    store: Store, calls: list[tuple[int, int, SlidingWindowLog]], refunds: list[tuple[int, int]]
) -> None:
    now_us, model = START_US, Model()
    history: list[Call] = []
    for distance_us, cost, limit in calls:
        now_us += distance_us
        history.append((now_us, [rule(limit, cost)]))
    with store.client() as client:
        script = Script(client, f"example-{next(_EXAMPLES)}", ttl_tolerance_ms=1000)
        assert refunding(script, history, refunds) == refunding(model, history, refunds)
        script.check_same_state(model)


@given(history=histories(size=30))
@settings(max_examples=200)
def test_core_agrees_with_the_model_call_by_call(core: Core, history: list[Call]) -> None:
    assert Core(core.evaluate).decide_all(history) == Model().decide_all(history)


@given(history=histories(), refunds=refunds)
@settings(max_examples=100)
def test_core_gives_back_what_the_model_gives_back(
    core: Core, history: list[Call], refunds: list[tuple[int, int]]
) -> None:
    assert refunding(Core(core.evaluate), history, refunds) == refunding(Model(), history, refunds)
