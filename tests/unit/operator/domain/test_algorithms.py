# SPDX-License-Identifier: Apache-2.0
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.algorithms import TokenBucket, check_limit
from weir_operator.domain.limits import MAX_COUNT, MAX_EXACT, MIN_PERIOD_US

buckets = st.builds(
    TokenBucket,
    st.integers(1, MAX_COUNT),
    st.integers(MIN_PERIOD_US, 10**13),
    st.integers(1, MAX_COUNT),
)


@pytest.mark.parametrize(
    ("requests", "period_us", "weight", "rate"),
    [
        (100, 1_000_000, 10_000, 1),
        (7, 1_000_000, 1_000_000, 7),
        (333, 1_000_000, 1_000_000, 333),
        (100_000, 1_000_000, 10, 1),
        (8_000, 1_000_000, 125, 1),
        (1, 3_600_000_000, 3_600_000_000, 1),
        (MAX_COUNT, 1_000, 1, 10**9),
    ],
)
def test_a_rate_is_reduced_without_loss(requests: int, period_us: int, weight: int, rate: int) -> None:
    """D12: high rates keep a whole weight of at least 1, so that they are really counted."""
    bucket = TokenBucket(requests, period_us, 1)
    assert (weight, rate) == (bucket.token_weight, bucket.drain_rate)


@given(buckets)
def test_the_reduced_rate_is_the_rate(bucket: TokenBucket) -> None:
    """D12"""
    assert Fraction(bucket.requests, bucket.period_us) == Fraction(bucket.drain_rate, bucket.token_weight)


@given(buckets)
def test_what_passes_the_check_is_counted_exactly_and_the_bound_is_tight(bucket: TokenBucket) -> None:
    """D12"""
    assert (bucket.capacity <= MAX_EXACT) == (check_limit(bucket, "") == [])
    largest = TokenBucket(bucket.requests, bucket.period_us, bucket.largest_burst)
    assert check_limit(largest, "") == []
    assert largest.burst == MAX_COUNT or largest.capacity + largest.token_weight > MAX_EXACT


@pytest.mark.parametrize(
    ("bucket", "path"),
    [
        (TokenBucket(0, 1_000_000, 1), "limit.requests"),
        (TokenBucket(-1, 1_000_000, 1), "limit.requests"),
        (TokenBucket(MAX_COUNT + 1, 1_000_000, 1), "limit.requests"),
        (TokenBucket(1, 1_000_000, 0), "limit.burst"),
        (TokenBucket(1, 1_000_000, MAX_COUNT + 1), "limit.burst"),
        (TokenBucket(1, 999, 1), "limit.period"),
        (TokenBucket(1, 0, 1), "limit.period"),
        (TokenBucket(7, 1_000_000_000_000, 10_000), "limit.burst"),
    ],
)
def test_numbers_that_cannot_be_enforced_are_named(bucket: TokenBucket, path: str) -> None:
    """D68"""
    (problem,) = check_limit(bucket, "limit")
    assert path == problem.path
    assert problem.hint
