# SPDX-License-Identifier: Apache-2.0
"""The demo's verdict must be able to be wrong: its bounds, from both sides."""

from collections import Counter

import pytest

from lab.traffic import Stream, Tally
from lab.verdict import Limit, admitted, untouched, would_be_refused

LIMIT = Limit(100, 200)


def tally(*, passed: int, rejected: int, sending_s: float = 4.0, elapsed_s: float = 4.01) -> Tally:
    stream, statuses = Stream("client", 300, "host"), Counter({200: passed, 429: rejected})
    return Tally(stream, statuses, began=10.0, last_sent=10.0 + sending_s, ended=10.0 + elapsed_s)


@pytest.mark.parametrize(("passed", "holds"), [(587, False), (588, True), (600, True), (601, True), (602, False)])
def test_admitted_is_judged_between_98_percent_and_burst_plus_rate_times_time(passed: int, *, holds: bool) -> None:
    assert admitted(tally(passed=passed, rejected=1200 - passed), LIMIT).holds is holds


def test_a_client_below_its_limit_must_pass_but_cannot_pass_more_than_it_sent() -> None:
    assert admitted(tally(passed=100, rejected=0), LIMIT).holds
    assert not admitted(tally(passed=97, rejected=3), LIMIT).holds


def test_one_refusal_in_shadow_is_wrong() -> None:
    assert untouched(tally(passed=1200, rejected=0)).holds
    assert not untouched(tally(passed=1199, rejected=1)).holds


@pytest.mark.parametrize(("counted", "holds"), [(598, False), (599, True), (612, True), (613, False)])
def test_would_be_refusals_are_the_rest_of_what_would_have_been_admitted(counted: int, *, holds: bool) -> None:
    assert would_be_refused(tally(passed=1200, rejected=0), LIMIT, counted).holds is holds


def test_an_answer_that_is_neither_passed_nor_refused_counts_as_failed() -> None:
    broken = tally(passed=1, rejected=1)
    broken.statuses[503] += 1
    broken.statuses[0] += 1
    assert broken.failed == 2
