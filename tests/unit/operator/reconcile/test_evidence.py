# SPDX-License-Identifier: Apache-2.0
"""What several limiters count, added up once, whoever restarts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.evidence import Evidence, Recent, RuleCounts, RuleKey, shown
from weir_operator.reconcile.evidence import Ledger
from weir_operator.reconcile.ports import LimiterReport

KEY = RuleKey("team/api", "burst", None, "0123456789ab")
OTHER = KEY._replace(version="ffffffffffff")


def report(address: str, counts: RuleCounts, key: RuleKey = KEY) -> LimiterReport:
    return LimiterReport(address, counts={key: counts})


def known(ledger: Ledger, since_s: int = 100, persisted: Evidence | None = None) -> Evidence:
    return ledger.evidence(KEY, since_s, persisted, 200)


@pytest.mark.requirement("R43")
def test_the_counts_of_all_limiters_are_added_up_across_their_restarts() -> None:
    """D45."""
    ledger = Ledger(100)
    known(ledger)
    ledger.hear([report("a", RuleCounts(101_000, 10, 2, 1)), report("b", RuleCounts(101_000, 5, 0, 0))])
    ledger.hear([report("a", RuleCounts(101_000, 12, 3, 1)), LimiterReport("b", error="silent")])
    ledger.hear([report("a", RuleCounts(150_000, 4, 1, 0)), report("b", RuleCounts(101_000, 6, 0, 0))])
    found = known(ledger)
    assert (found.requests, found.would_reject, found.rejected) == (12 + 4 + 6, 3 + 1, 1)


@pytest.mark.requirement("R43")
def test_what_was_counted_before_this_process_comes_from_the_status_alone() -> None:
    """D45: a limiter's counts since long ago stand there already, and are not added again."""
    ledger = Ledger(200)
    persisted = Evidence(KEY.version, 100, 190, 1000, 10, 0, 3, (("s", 7),))
    ledger.hear([report("a", RuleCounts(101_000, 1005, 10, 0, top=(("s", 8),)))])
    assert known(ledger, persisted=persisted).requests == 1000
    ledger.hear([report("a", RuleCounts(101_000, 1025, 11, 0, top=(("s", 9), ("t", 1))))])
    found = known(ledger, persisted=persisted)
    assert (found.requests, found.would_reject, found.top) == (1020, 11, (("s", 8), ("t", 1)))


@pytest.mark.requirement("R43")
def test_a_new_attempt_begins_with_nothing() -> None:
    """D45."""
    ledger = Ledger(100)
    known(ledger)
    ledger.hear([report("a", RuleCounts(101_000, 10, 2, 1, top=(("s", 2),)))])
    assert known(ledger, since_s=150) == Evidence(KEY.version, 150, 200)
    ledger.hear([report("a", RuleCounts(101_000, 11, 3, 1, top=(("s", 3),)))])
    found = known(ledger, since_s=150)
    assert (found.requests, found.top) == (1, (("s", 1),))


@pytest.mark.requirement("R43")
def test_versions_count_apart_and_those_that_are_gone_are_forgotten() -> None:
    """D45."""
    ledger = Ledger(100)
    ledger.hear([report("a", RuleCounts(101_000, 10, 2, 1), OTHER)])
    assert known(ledger).requests == 0
    ledger.keep_only([KEY])
    assert ledger.evidence(OTHER, 100, None, 200).requests == 0


@pytest.mark.requirement("R43")
def test_what_is_recent_is_only_what_a_version_decided_in_that_time() -> None:
    """D45."""
    ledger = Ledger(100)
    assert ledger.recent(KEY, 10, 100) == Recent(0)
    ledger.hear([report("a", RuleCounts(101_000, 100, 0, 50, 80))])
    assert ledger.recent(KEY, 10, 105) == Recent(5, 80, 50)
    assert ledger.recent(KEY, 10, 110) == Recent(10, 80, 50)
    assert ledger.recent(KEY, 10, 116) == Recent(11, 0, 0)
    ledger.start_watching(KEY)
    assert ledger.recent(KEY, 10, 117) == Recent(0)


@pytest.mark.requirement("R43")
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["count", "restart", "silent", "leave"]), st.integers(1, 9))
    )
)
def test_no_request_is_counted_twice_and_only_unheard_ones_are_lost(acts: list[tuple[str, str, int]]) -> None:
    """D45: whatever the limiters do; a count is lost only if its limiter restarts before anybody has heard of it."""
    ledger, happened, unheard = Ledger(0), 0, 0
    counts = {name: RuleCounts(1) for name in "abc"}
    heard = dict.fromkeys("abc", 0)
    known(ledger)
    for time_ms, (name, what, number) in enumerate(acts, start=2):
        if what == "restart":
            unheard += counts[name].requests - heard[name]
            counts[name], heard[name] = RuleCounts(time_ms), 0
        if what == "count":
            counts[name] = counts[name]._replace(requests=counts[name].requests + number)
            happened += number
        silent = {name} if what == "silent" else set()
        for each in set("abc") - silent:
            heard[each] = counts[each].requests
        ledger.hear(report(each, now) for each, now in counts.items() if each not in silent)
    missing = sum(now.requests - heard[name] for name, now in counts.items())
    assert known(ledger).requests == happened - unheard - missing


@pytest.mark.requirement("R43", "R42")
def test_a_status_changes_when_a_person_would_see_it_or_after_five_minutes() -> None:
    """D51."""
    before = Evidence("v", 100, 200, 1000)
    assert shown(None, before) is before
    same = Evidence("v", 100, 900, 1000)
    assert shown(before, same) is before
    little = Evidence("v", 100, 210, 1009)
    assert shown(before, little) is before
    old = Evidence("v", 100, 500, 1009)
    assert shown(before, old) is old
    seen = Evidence("v", 100, 210, 1100)
    assert shown(before, seen) is seen
