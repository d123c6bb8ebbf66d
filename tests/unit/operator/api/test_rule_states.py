# SPDX-License-Identifier: Apache-2.0
"""Where rules stand, into a status and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.api.rule_states import parse_rule_states, state_members
from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.evidence import Evidence
from weir_operator.domain.limits import FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.modes import Slot
from weir_operator.domain.rollout_state import Active, Candidate, Refusal, RuleState
from weir_operator.domain.ruleset import Plans, Rule
from weir_operator.domain.sources import HeaderKey

BUCKET = TokenBucket(10, 1_000_000, 20)
PLANS = Plans(HeaderKey("x-plan"), {"gold": BUCKET})
WORDS = (), FailureMode.OPEN, Visibility.PUBLIC, "rate_limited"
RULE = Rule("burst", Mode.ENFORCE, (HeaderKey("x-api-key"),), MissingKey.SKIP, BUCKET, PLANS, *WORDS)
SAID = {"name": "burst", "mode": "Enforce", "effectiveMode": "Enforce", "stage": "Shadow", "why": "w"}
TIMES = st.integers(0, 4_000_000_000)
SLOTS = st.sampled_from([None, Slot.B])
DIGESTS = st.sampled_from(["0123456789ab", "ba9876543210"])
COUNTS = st.integers(0, 10**12)
REFUSALS = st.builds(Refusal, TIMES, st.integers(1, 9), COUNTS, st.integers(0, 100_000), st.just("") | DIGESTS)
CANDIDATES = st.builds(
    Candidate, DIGESTS, DIGESTS, TIMES, SLOTS, st.just(0), st.just(0), st.just(""), st.none() | REFUSALS
) | st.builds(Candidate, DIGESTS, DIGESTS, TIMES, SLOTS, st.integers(1, 9), TIMES, st.just("alice"), st.none())
ACTIVES = st.builds(Active, DIGESTS, COUNTS, SLOTS, st.sampled_from([None, RULE]))
TOP = st.just((("header:x-api-key=5f", 7),)) | st.just(())
EVIDENCE = st.builds(Evidence, DIGESTS, TIMES, TIMES, COUNTS, st.just(0), st.just(0), COUNTS, TOP)
STATES = st.builds(RuleState, st.just("burst"), st.none() | ACTIVES, st.none() | CANDIDATES, st.none() | EVIDENCE)


@pytest.mark.requirement("R43")
@given(STATES)
def test_a_state_survives_the_status(state: RuleState) -> None:
    """D45: whatever an operator that starts anew must know."""
    status = {"rules": [{**SAID, **state_members(state)}]}
    assert parse_rule_states(status) == {"burst": state}


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    "rules",
    [
        None,
        5,
        [5],
        [{**SAID, "active": {"generation": 1, "limit": "0123456789ab", "rule": "{}"}}],
        [{**SAID, "active": {"generation": 1, "limit": "0123456789ab", "rule": "no JSON"}}],
        [{**SAID, "candidate": {"since": "yesterday"}}],
    ],
)
def test_what_cannot_be_read_counts_as_not_there(rules: Any) -> None:
    """D45: the rule is in shadow then, and nothing breaks."""
    assert parse_rule_states({"rules": rules}) == {}
