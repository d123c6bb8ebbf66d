# SPDX-License-Identifier: Apache-2.0
"""When silence means something, by the limiters' own clocks."""

from dataclasses import replace

import pytest

from weir_operator.domain.gateways import Patience
from weir_operator.reconcile.demand import Witness, unasked_since_ms
from weir_operator.reconcile.ports import Asked, LimiterReport, PolicyRun

PATIENCE = Patience(unmatched_ms=60_000, unasked_ms=600_000)
NOW = 10_000_000
FOREVER = NOW - 5_000_000


def report(asked: Asked | None, run: PolicyRun | None = None, error: str = "") -> LimiterReport:
    return LimiterReport("http://a", "a", error, policies={} if run is None else {"t/p": run}, asked=asked)


def asked(ago_ms: int | None, *, started_ms: int = FOREVER, now_ms: int = NOW) -> Asked:
    return Asked(started_ms, None if ago_ms is None else now_ms - ago_ms, now_ms)


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ((asked(600_000),), None),
        ((asked(600_001),), NOW - 600_001),
        ((asked(None),), FOREVER),
        ((asked(None, started_ms=NOW - 600_000),), None),
        ((asked(600_001), asked(1)), None),
        ((asked(700_000), asked(650_000)), NOW - 650_000),
        ((asked(700_000), asked(None, started_ms=NOW - 5)), NOW - 5),
        ((asked(700_000), None), None),
        ((Asked(FOREVER, None),), None),
        ((), None),
        ((asked(1, now_ms=NOW + 7_200_000),), None),
    ],
    ids=[
        "just within patience", "too long", "never", "just started", "one is asked", "none", "one has just restarted",
        "one cannot tell", "one without a clock", "no limiter", "a clock that is two hours ahead",
    ],
)  # fmt: skip
def test_a_gateway_is_silent_when_no_limiter_was_asked_for_long(
    known: tuple[Asked | None, ...], expected: int | None
) -> None:
    assert unasked_since_ms([report(each) for each in known], PATIENCE) == expected


def test_limiters_that_do_not_answer_say_nothing_of_silence() -> None:
    reports = [report(asked(700_000)), report(None, error="cannot connect")]
    assert unasked_since_ms(reports, PATIENCE) == NOW - 700_000
    assert unasked_since_ms(reports[1:], PATIENCE) is None


UNMATCHED = PolicyRun(1, {}, frozenset({"v1"}), NOW - 60_001)
FRESH = replace(UNMATCHED, unmatched_since_ms=NOW - 20_000)
MATCHED = replace(UNMATCHED, unmatched_since_ms=None)


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((UNMATCHED, UNMATCHED), (NOW - 60_001, None)),
        ((UNMATCHED, FRESH), (NOW - 20_000, None)),
        ((FRESH, FRESH), (None, 41.0)),
        ((UNMATCHED, MATCHED), (None, None)),
        ((), (None, None)),
    ],
    ids=[
        "too long",
        "a restarted limiter does not begin anew",
        "a new policy has time",
        "one has seen one",
        "none runs",
    ],
)
def test_a_policy_is_unmatched_when_no_limiter_has_seen_a_request(
    runs: tuple[PolicyRun, ...], expected: tuple[int | None, float | None]
) -> None:
    """D52: a host that no route serves; a new policy does not look broken."""
    reports = [report(asked(1), run) for run in runs]
    assert Witness(PATIENCE).unmatched_since_ms("t/p", reports) == expected


def test_limiters_that_restart_do_not_take_back_that_a_policy_was_matched() -> None:
    witness = Witness(PATIENCE)
    assert witness.unmatched_since_ms("t/p", [report(asked(1), MATCHED)]) == (None, None)
    assert witness.unmatched_since_ms("t/p", [report(asked(1), UNMATCHED)]) == (None, None)


def test_another_match_has_to_be_met_anew() -> None:
    witness = Witness(PATIENCE)
    witness.unmatched_since_ms("t/p", [report(asked(1), MATCHED)])
    edited = replace(UNMATCHED, versions=frozenset({"v2"}))
    assert witness.unmatched_since_ms("t/p", [report(asked(1), edited)]) == (NOW - 60_001, None)


def test_a_new_operator_says_the_same() -> None:
    reports = [report(asked(1), UNMATCHED)]
    before = Witness(PATIENCE).unmatched_since_ms("t/p", reports)
    assert Witness(PATIENCE).unmatched_since_ms("t/p", reports) == before == (NOW - 60_001, None)
