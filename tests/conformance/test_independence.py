# SPDX-License-Identifier: Apache-2.0
"""What changes nothing: a refusal, other subjects, the order of the rules; and how little a refund changes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from model import Model, Rule, charged
from reading import START_US
from strategies import algorithms, at, histories, leaky_buckets, rule, token_buckets, traffic
from vector import Call


@given(history=histories())
@settings(max_examples=200)
def test_refusal_changes_nothing(history: list[Call]) -> None:
    """D04, D08."""
    model = Model()
    for now_us, rules in history:
        before = deepcopy((model.records, model.ttl_ms))
        if model.decide(now_us, rules)[0] != 1:
            assert (model.records, model.ttl_ms) == before


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
@settings(max_examples=200)
def test_order_of_the_rules_in_a_call_changes_nothing(history: list[Call]) -> None:
    """D08, D11."""
    forward, backward = Model(), Model()
    for now_us, rules in history:
        first, last = forward.decide(now_us, rules), backward.decide(now_us, rules[::-1])
        assert first[0] == last[0]
        assert _by_rule(rules, first) == _by_rule(rules[::-1], last)


@given(limit=st.one_of(algorithms), calls=traffic(size=12), data=st.data())
@settings(max_examples=300)
def test_refund_never_gives_more_than_the_call_had_taken(
    limit: Any, calls: list[tuple[int, int]], data: st.DataObject
) -> None:
    """No more remains than if the other calls that were admitted had come alone, and never less than before."""
    taken = data.draw(st.integers(0, len(calls) - 1))
    refunded_after = data.draw(st.integers(taken, len(calls) - 1))
    model, alone = Model(), Model()
    answers: list[tuple[list[Rule], list[int]]] = []
    for place, (now_us, cost) in enumerate(calls):
        rules = [rule(at(limit, now_us), cost)]
        answers.append((rules, model.decide(now_us, rules)))
        if answers[-1][1][0] == 1 and place != taken:
            alone.decide(now_us, rules)
        if place == refunded_after:
            asked = [rule(at(limit, now_us), 0)]
            before = model.decide(now_us, asked)[3]
            model.refund(now_us, answers[taken][1][1], charged(*answers[taken]))
            assert model.decide(now_us, asked)[3] >= before
        if place >= refunded_after:
            asked = [rule(at(limit, now_us), 0)]
            assert model.decide(now_us, asked)[3] <= alone.decide(now_us, asked)[3]


@given(limit=st.one_of(token_buckets, leaky_buckets), data=st.data())
@settings(max_examples=300)
def test_bucket_is_given_back_all_of_a_charge_and_no_more(limit: Any, data: st.DataObject) -> None:
    """Also while the clock steps back. All of it, as long as that drains which was owed before the charge."""
    pace_us = limit.p // limit.l + 1
    steps = st.tuples(st.integers(-pace_us, 3 * pace_us), st.integers(1, 4))
    drawn = data.draw(st.lists(steps, min_size=1, max_size=12))
    taken = data.draw(st.integers(0, len(drawn) - 1))
    model, alone, now_us = Model(), Model(), START_US
    given_back: tuple[int, list[Rule]] | None = None
    for place, (distance_us, cost) in enumerate(drawn):
        now_us += distance_us
        rules = [rule(limit, cost)]
        reply = model.decide(now_us, rules)
        if place == taken and reply[0] == 1:
            given_back = now_us, charged(rules, reply)
        elif reply[0] == 1:
            alone.decide(now_us, rules)
    if given_back is None:
        return
    then_us = max(now_us, given_back[0] + data.draw(st.integers(0, 3 * pace_us)))
    latest_us = max(then_us, *(record.at_us for record in model.records["subject"].values()))
    drained = (latest_us - given_back[0]) * limit.l
    model.refund(then_us, *given_back)
    for at_us in (then_us, latest_us, latest_us + data.draw(st.integers(0, 9 * pace_us))):
        left, never = (of.decide(at_us, [rule(limit, 0)]) for of in (model, alone))
        assert left[3] <= never[3]
        if at_us >= latest_us:
            assert left[5] >= never[5]
            if drained <= given_back[1][0].owed_before and not any(step < 0 for step, _ in drawn):
                assert left == never


def _by_rule(rules: Sequence[Rule], reply: list[int]) -> dict[str, list[int]]:
    return {r.id: reply[2 + 4 * place : 6 + 4 * place] for place, r in enumerate(rules)}
