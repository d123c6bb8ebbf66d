# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of a plan, over round unit costs that can be followed in one's head."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.capacity import Demand, TooHotError, UnitCosts, plan

COSTS = UnitCosts(
    script_us=10, script_alone=2, script_instructions=50_000, script_further_rule_instructions=25_000,
    bucket_bytes=200, bucket_further_rule_bytes=50,
    limiter_us=25, limiter_sparse_us=100, limiter_sparse_per_s=2000, limiter_mb=20,
)  # fmt: skip
DEMAND = Demand(requests_per_s=100_000, subjects=10_000_000, rules=2, regions=2, busy=0.5, full=0.5)


@pytest.mark.requirement("R05")
def test_a_region_is_planned_from_its_share_of_the_traffic_and_all_of_the_subjects() -> None:
    found = plan(DEMAND, COSTS)
    # 50,000/s x 10 us x 2 x 1.5 = 1.5 cores, half busy; 10 million x 250 bytes = 2.5 GB, half full.
    assert (found.primaries, found.primary_gb) == (3, pytest.approx(2.5 / 3 / 0.5))
    # 50,000/s x 25 us = 1.25 cores in limiters that are half busy.
    assert (found.limiters, found.limiter_threads, found.limiter_cores) == (3, 1, pytest.approx(1.25))
    assert found.limiters_gb == pytest.approx(0.06)


@pytest.mark.requirement("R05")
def test_rules_of_different_subjects_cost_a_call_each_and_no_bytes_of_a_shared_one() -> None:
    found = plan(replace(DEMAND, subjects_per_request=2), COSTS)
    assert (found.primaries, found.primary_gb) == (4, pytest.approx(2.0 / 4 / 0.5))


@pytest.mark.requirement("R05")
def test_small_primaries_are_counted_by_memory() -> None:
    assert plan(replace(DEMAND, primary_gb=0.5), COSTS).primaries == 10


@pytest.mark.requirement("R01", "R05")
def test_the_primary_of_the_hottest_subject_has_its_share_of_the_others_too() -> None:
    # 1.5 cores, of which 0.375 belong to one subject; 1.125 / 9 + 0.375 = 0.5
    assert plan(replace(DEMAND, hot_share=0.25), COSTS).primaries == 9
    with pytest.raises(TooHotError, match=r"34% of 50,000 requests/s of a region needs 0\.51 cores"):
        plan(replace(DEMAND, hot_share=0.34), COSTS)


@pytest.mark.requirement("R05")
def test_a_limiter_that_is_woken_for_each_decision_is_planned_with_what_that_costs() -> None:
    rarely = plan(replace(DEMAND, requests_per_s=8000, limiters=4), COSTS)
    assert rarely.limiter_cores == pytest.approx(4 * 1000 * 100e-6)
    often = plan(replace(DEMAND, limiters=2), COSTS)
    assert (often.limiter_cores, often.limiter_threads) == (pytest.approx(1.25), 2)


@pytest.mark.requirement("R05")
@given(st.floats(1, 1e6), st.floats(1, 10), st.floats(0, 0.001))
def test_more_traffic_never_needs_less(rate: float, factor: float, hot_share: float) -> None:
    less, more = (
        plan(replace(DEMAND, requests_per_s=each, hot_share=hot_share), COSTS) for each in (rate, rate * factor)
    )
    assert more.primaries >= less.primaries
    assert more.limiter_cores >= less.limiter_cores - 1e-9
