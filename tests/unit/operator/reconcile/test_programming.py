# SPDX-License-Identifier: Apache-2.0
"""How far a revision has come, for every state of the limiters."""

from dataclasses import replace

import pytest

from weir_operator.domain.conditions import Reason, Status
from weir_operator.reconcile.fleet import Fleet, Standing
from weir_operator.reconcile.ports import AppliedRuleset, LimiterReport
from weir_operator.reconcile.programming import STALE_AFTER_MS, programming_of
from weir_operator.render.ruleset_config import Live

NAME = "edge-rules-0"


def report(name: str, revision: int, rejected: int | None = None, digest: str = "d") -> LimiterReport:
    error = "$.rules: no" if rejected else ""
    return LimiterReport(f"http://{name}", name, rulesets={NAME: AppliedRuleset(revision, digest, rejected, error)})


DEAD = LimiterReport("http://dead", error="cannot connect")
DRAINING = replace(report("c", 10), ready=False)
EMPTY = LimiterReport("http://new", "new")


@pytest.mark.parametrize(
    ("reports", "age_ms", "expected", "limiters"),
    [
        ((), 0, Reason.NO_LIMITERS, "0/0"),
        ((report("a", 10), report("b", 10)), 0, Reason.PROGRAMMED, "2/2"),
        ((report("a", 12), report("b", 10)), 0, Reason.PROGRAMMED, "2/2"),
        ((report("a", 10), report("b", 9)), STALE_AFTER_MS, Reason.PROPAGATING, "1/2"),
        ((report("a", 10), report("b", 9)), STALE_AFTER_MS + 1, Reason.LIMITER_STALE, "1/2"),
        ((report("a", 10), EMPTY), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 10), DRAINING), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 10), DEAD), 0, Reason.LIMITER_UNREACHABLE, "1/2"),
        ((report("a", 9, rejected=10), DEAD), 0, Reason.LIMITER_REFUSED, "0/2"),
        ((report("a", 9, rejected=11), report("b", 10)), 0, Reason.LIMITER_REFUSED, "1/2"),
        ((report("a", 9, rejected=8), report("b", 10)), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 10, rejected=12), report("b", 12)), 0, Reason.PROGRAMMED, "2/2"),
        ((report("a", 99), report("b", 10)), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 12, digest="e"), report("b", 12)), 0, Reason.PROPAGATING, "1/2"),
    ],
    ids=[
        "no limiters",
        "all run it",
        "a later one includes it",
        "one on its way",
        "one too late",
        "one without any rules",
        "one that is not ready",
        "one dead",
        "refusal before silence",
        "refused by one",
        "an older refusal is past",
        "a later refusal is another object's",
        "a revision that nobody wrote",
        "somebody else's content under our revision",
    ],
)
def test_programmed_says_who_runs_the_revision(
    reports: tuple[LimiterReport, ...], age_ms: int, expected: Reason, limiters: str
) -> None:
    """D52: True only after every limiter has confirmed it."""
    found = programming_of(Fleet("edge", NAME, Live(12, "d"), reports), 10, 10 + age_ms)
    assert (found.reason, found.limiters) == (expected, limiters)
    assert (found.status is Status.TRUE) == (expected is Reason.PROGRAMMED)


def test_what_is_wrong_with_the_stores_is_counted() -> None:
    fault = "eviction: set maxmemory-policy noeviction"
    reports = replace(report("a", 10), store_faults=(fault,)), replace(report("b", 10), store_faults=(fault, "role: x"))
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), reports), 10, 0)
    assert found.store_faults == ((fault, 2), ("role: x", 1))


def test_a_message_names_the_limiter_and_its_words() -> None:
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), (report("a", 9, rejected=10), report("b", 10))), 10, 0)
    assert found.message == "1 of 2 limiters run this generation; refused by a ($.rules: no)"


def test_many_late_limiters_are_counted_instead_of_listed() -> None:
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), tuple(report(f"l{i}", 9) for i in range(9))), 10, 0)
    assert found.message.endswith("on its way to l0, l1, l2 and 6 more")


def test_what_could_not_be_published_is_said_so() -> None:
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), (report("a", 10),), "too large"), None, 0)
    assert (found.reason, found.message) == (Reason.RENDER_FAILED, "too large")


def test_what_was_not_published_yet_is_on_its_way() -> None:
    """It says nothing of the rules' form: nobody has tried yet, or the API server was not there."""
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), (report("a", 10),)), None, 0)
    assert (found.reason, found.message) == (Reason.PROPAGATING, "not published yet")


def test_each_limiter_has_its_standing() -> None:
    reports = (report("a", 10), report("b", 9), DEAD, report("c", 9, rejected=10), DRAINING)
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), reports), 10, 0)
    assert found.standings == (
        Standing.RUNS, Standing.BEHIND, Standing.UNREACHABLE, Standing.REFUSED, Standing.UNREADY,
    )  # fmt: skip
