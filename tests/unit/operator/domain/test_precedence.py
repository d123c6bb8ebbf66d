# SPDX-License-Identifier: Apache-2.0
import itertools

from weir_operator.domain.limits import Action
from weir_operator.domain.overriding import Override, Subject
from weir_operator.domain.precedence import Defeat, Rank, defeats, in_order

KEY = Subject("header:x-api-key", "0" * 64)
OTHER_KEY = Subject("header:x-api-key", "1" * 64)
ADDRESS = Subject("clientIP", "2" * 64)


def override(
    name: str, *subject: Subject, rule: str = "burst", start: int | None = None, end: int | None = None
) -> Override:
    return Override(f"team/{name}", "team/api", (rule,), (subject,), Action.EXEMPT, None, start, end)


def defeated(*ordered: Override, created: int | None = None) -> dict[str, list[Defeat]]:
    """Each of `ordered` is newer than the next one, or all were created at once."""
    return defeats(ordered, {each.id: -n if created is None else created for n, each in enumerate(ordered)})


def remarks(*ordered: Override, created: int | None = None) -> list[str]:
    return [defeat.remark(0) for lost in defeated(*ordered, created=created).values() for defeat in lost]


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
    assert defeated(newer, older) == {"team/older": [Defeat("burst", (KEY,), "team/newer", Rank.NEWER)]}


def test_a_remark_names_the_place_of_the_subject_and_never_its_value() -> None:
    wholly, partly = (Defeat("burst", (KEY,), "team/winner", rank) for rank in (Rank.NEWER, Rank.MORE_SPECIFIC))
    assert wholly.remark(2) == 'spec.subjects[2]: for rule "burst" the newer override "team/winner" wins'
    assert partly.remark(0) == (
        'spec.subjects[0]: for rule "burst" the more specific override "team/winner" wins for some of its requests'
    )


def test_nobody_is_outranked_by_another_subject_rule_or_time() -> None:
    assert defeated(override("a", KEY), override("b", OTHER_KEY)) == {}
    assert defeated(override("a", KEY), override("b", KEY, rule="daily")) == {}
    assert defeated(override("a", KEY, end=100), override("b", KEY, start=100)) == {}


def test_the_less_specific_override_is_told_that_it_loses_some_requests() -> None:
    ordered = [override("specific", ADDRESS, KEY), override("general", KEY), override("stranger", OTHER_KEY)]
    expected = {"team/general": [Defeat("burst", (KEY,), "team/specific", Rank.MORE_SPECIFIC)]}
    assert defeated(*ordered) == expected


def test_a_loser_is_told_the_first_that_wins_while_it_holds() -> None:
    ended, newest, older = override("ended", KEY, end=50), override("newest", KEY), override("older", KEY, start=60)
    assert [defeat.winner for defeat in defeated(ended, newest, older)["team/older"]] == ["team/newest"]


def test_a_common_moment_is_enough() -> None:
    assert list(defeated(override("a", KEY, end=101), override("b", KEY, start=100))) == ["team/b"]


def test_a_loser_is_told_from_when_and_until_when_it_loses() -> None:
    start, end = 1_767_225_600, 1_767_312_000
    wins = 'spec.subjects[0]: for rule "burst" the newer override "team/new" wins'
    older = override("old", KEY)
    assert remarks(override("new", KEY, end=end), older) == [f"{wins} until 2026-01-02T00:00:00Z"]
    assert remarks(override("new", KEY, start=start), older) == [f"{wins} from 2026-01-01T00:00:00Z"]
    assert remarks(override("new", KEY, start=start, end=end), older) == [
        f"{wins} from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z"
    ]


def test_a_loser_is_told_no_time_where_it_loses_for_all_of_its_own() -> None:
    during = override("old", KEY, start=100, end=200)
    for newer in (override("new", KEY), override("new", KEY, start=100, end=200), override("new", KEY, end=201)):
        assert remarks(newer, during) == ['spec.subjects[0]: for rule "burst" the newer override "team/new" wins']


def test_a_twin_is_not_called_newer() -> None:
    assert remarks(override("a", KEY), override("b", KEY), created=7) == [
        'spec.subjects[0]: for rule "burst" the override "team/a" wins: created in the same second, it comes first by '
        "name"
    ]
