# SPDX-License-Identifier: Apache-2.0
import itertools

from weir_operator.domain.limits import Action
from weir_operator.domain.precedence import in_order, outranked
from weir_operator.domain.ruleset import Override, Subject

KEY = Subject("header:x-api-key", "0" * 64)
OTHER_KEY = Subject("header:x-api-key", "1" * 64)
ADDRESS = Subject("clientIP", "2" * 64)


def override(
    name: str, *subject: Subject, rule: str = "burst", start: int | None = None, end: int | None = None
) -> Override:
    return Override(f"team/{name}", "team/api", (rule,), (subject,), Action.EXEMPT, None, start, end)


def test_more_sources_win_then_the_newer_then_the_smaller_id() -> None:
    specific = override("specific", KEY, ADDRESS)
    newer, older = override("newer", KEY), override("older", KEY)
    twin_a, twin_b = override("twin-a", ADDRESS), override("twin-b", ADDRESS)
    created = {"team/specific": 1, "team/newer": 9, "team/older": 2, "team/twin-a": 5, "team/twin-b": 5}
    expected = (specific, newer, twin_a, twin_b, older)
    for shuffled in itertools.permutations(expected):
        assert in_order(shuffled, created) == expected


def test_the_loser_of_a_common_subject_is_told_who_wins() -> None:
    newer, older = override("newer", KEY), override("older", KEY)
    assert outranked([newer, older]) == {
        "team/older": ('for rule "burst" the newer override "team/newer" wins for a common subject',)
    }


def test_nobody_is_outranked_by_another_subject_rule_or_time() -> None:
    assert outranked([override("a", KEY), override("b", OTHER_KEY)]) == {}
    assert outranked([override("a", KEY), override("b", KEY, rule="daily")]) == {}
    assert outranked([override("a", KEY, end=100), override("b", KEY, start=100)]) == {}


def test_winning_for_a_part_of_a_subject_is_what_precedence_is_for() -> None:
    assert outranked([override("specific", KEY, ADDRESS), override("general", KEY)]) == {}


def test_a_common_moment_is_enough() -> None:
    assert list(outranked([override("a", KEY, end=101), override("b", KEY, start=100)])) == ["team/b"]
