# SPDX-License-Identifier: Apache-2.0
"""How many limiters share a limit: at once for one more, patiently for one less, never none."""

import pytest

from weir_operator.reconcile.crowd import SILENT_FOR_S, Crowd
from weir_operator.reconcile.ports import LimiterReport


def reports(*alive: bool) -> list[LimiterReport]:
    return [LimiterReport(f"http://{number}", error="" if up else "silent") for number, up in enumerate(alive)]


@pytest.mark.requirement("R22")
def test_until_limiters_had_time_to_answer_all_of_them_are_there() -> None:
    crowd = Crowd(3, 0.0)
    crowd.hear(reports(True, False, False), 1.0)
    assert crowd.count == 3
    crowd.hear(reports(True, False, False), SILENT_FOR_S)
    assert crowd.count == 1


@pytest.mark.requirement("R22")
def test_a_new_operator_begins_with_the_number_that_is_published() -> None:
    crowd = Crowd(5, 0.0)
    crowd.recall(3, 0.0)
    assert crowd.count == 3
    crowd.hear(reports(True, True, True, True, False), 1.0)
    assert crowd.count == 4, "one more counts at once"


def test_more_than_the_settings_name_are_never_there() -> None:
    crowd = Crowd(2, 0.0)
    crowd.recall(7, 0.0)
    assert crowd.count == 2


@pytest.mark.requirement("R22")
def test_one_that_falls_silent_counts_for_a_while_and_one_that_returns_at_once() -> None:
    """D41: it may still serve, and it must not rewrite the rules by coming and going."""
    crowd = Crowd(2, 0.0)
    crowd.hear(reports(True, True), 100.0)
    for second in range(101, 160):
        crowd.hear(reports(True, False), float(second))
        assert crowd.count == 2
    crowd.hear(reports(True, False), 100.0 + SILENT_FOR_S)
    assert crowd.count == 1
    crowd.hear(reports(True, True), 200.0)
    assert crowd.count == 2


def test_while_nobody_was_asked_nobody_has_fallen_silent() -> None:
    """An operator that could do nothing for a while must not take everybody for gone."""
    crowd = Crowd(2, 0.0)
    crowd.hear(reports(True, True), 100.0)
    crowd.hear(reports(True, True), 100.0 + 10 * SILENT_FOR_S)
    assert crowd.count == 2


@pytest.mark.requirement("R22")
def test_an_operator_that_hears_nobody_tells_nobody_that_it_is_alone() -> None:
    """D41: the operator's own network is away, the limiters serve on, and their store may be away as well."""
    crowd = Crowd(4, 0.0)
    crowd.hear(reports(True, True, True, True), 100.0)
    for second in range(102, 400, 2):
        crowd.hear(reports(False, False, False, False), float(second))
        assert crowd.count == 4
    crowd.hear(reports(True, False, False, False), 400.0)
    assert crowd.count == 4, "who answers a little later has not fallen silent"
    crowd.hear(reports(True, False, False, False), 400.0 + SILENT_FOR_S)
    assert crowd.count == 1


def test_there_is_always_the_one_that_reads_it() -> None:
    crowd = Crowd(0, 0.0)
    assert crowd.count == 1
    crowd.hear(reports(False), 10 * SILENT_FOR_S)
    assert crowd.count == 1
