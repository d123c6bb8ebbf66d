# SPDX-License-Identifier: Apache-2.0
"""The counts in a limiter's status."""

from __future__ import annotations

from typing import Any

import pytest

from weir_operator.domain.evidence import RuleCounts, RuleKey
from weir_operator.limiters.rule_counts import parse_counts

ENTRY = {
    "policy": "team/api",
    "rule": "burst",
    "version": "0123456789ab",
    "slot": "b",
    "sinceMs": 7,
    "requests": 10,
    "enforced": 4,
    "wouldReject": 2,
    "rejected": 1,
    "subjects": {"limited": 3},
    "top": [{"subject": "s", "count": 2}],
}
KEY = RuleKey("team/api", "burst", "b", "0123456789ab")


@pytest.mark.requirement("R43")
def test_two_entries_of_one_rule_are_counted_apart() -> None:
    """D45."""
    other = {**ENTRY, "slot": None, "version": "ffffffffffff", "subjects": None, "top": None}
    assert parse_counts([ENTRY, other]) == {
        KEY: RuleCounts(7, 10, 2, 1, 4, 3, (("s", 2),)),
        RuleKey("team/api", "burst", None, "ffffffffffff"): RuleCounts(7, 10, 2, 1, 4),
    }


@pytest.mark.requirement("R43")
@pytest.mark.parametrize("entries", [None, "x", [], [1], [{**ENTRY, "version": None}], [{**ENTRY, "requests": "10"}]])
def test_what_gives_no_evidence_is_passed_over(entries: Any) -> None:
    """D45: another version of the limiter is no fault."""
    assert parse_counts(entries) == {}


@pytest.mark.requirement("R43")
def test_a_limiter_that_does_not_say_what_it_decided_counts_all() -> None:
    """D45: a rollback comes later then, but it comes."""
    silent = {name: value for name, value in ENTRY.items() if name != "enforced"}
    assert parse_counts([silent])[KEY].enforced == 10
