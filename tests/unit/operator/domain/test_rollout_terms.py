# SPDX-License-Identifier: Apache-2.0
"""What `spec.rollout` says in domain terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.rollout_terms import (
    PLAIN,
    OnChange,
    RollbackTerms,
    RolloutTerms,
    StageTerms,
    parse_percent,
    percent_text,
)


@pytest.mark.requirement("R43")
@given(st.integers(0, 100_000))
def test_every_share_is_read_back_from_its_text(share: int) -> None:
    """D45."""
    assert parse_percent(percent_text(share)) == share


@pytest.mark.requirement("R43")
@pytest.mark.parametrize("text", ["101%", "5", "", "-1%", "0.0001%", "5 %", "100.5%", "5%\n"])
def test_what_is_no_percentage_is_none(text: str) -> None:
    """D45."""
    assert parse_percent(text) is None


@pytest.mark.requirement("R43")
def test_the_last_stage_has_everybody_and_lasts_only_where_a_rollback_is_watched_for() -> None:
    """D45."""
    ten = StageTerms(60, percent=10)
    everybody = StageTerms(5, percent=100)
    watched = RollbackTerms(5_000, 30)
    assert PLAIN.all_stages == (StageTerms(0, percent=100),)
    assert RolloutTerms(OnChange.SHADOW, stages=(ten,)).all_stages == (ten, StageTerms(0, percent=100))
    assert RolloutTerms(rollback=watched).all_stages == (StageTerms(300, percent=100),)
    assert RolloutTerms(OnChange.SHADOW, stages=(ten, everybody), rollback=watched).all_stages == (ten, everybody)
