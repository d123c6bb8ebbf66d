# SPDX-License-Identifier: Apache-2.0
"""The cache stays right whatever the order in which lists and events arrive."""

from itertools import permutations
from typing import Any

import pytest

from weir_operator.reconcile.cache import Change, ObjectCache
from weir_operator.reconcile.ports import Listing


def obj(version: int, name: str = "a") -> dict[str, Any]:
    return {"metadata": {"namespace": "n", "name": name, "resourceVersion": str(version)}, "at": version}


def changes_by_name(changes: tuple[Change, ...]) -> dict[str, Change]:
    return {(change.after or change.before or {})["metadata"]["name"]: change for change in changes}


def test_an_event_brings_an_object_and_the_next_one_replaces_it() -> None:
    cache = ObjectCache()
    assert cache.observe(obj(1)) == Change(None, obj(1))
    assert cache.observe(obj(2)) == Change(obj(1), obj(2))
    assert cache.get("n", "a") == obj(2)


def test_versions_are_compared_as_numbers() -> None:
    cache = ObjectCache()
    cache.observe(obj(9))
    assert cache.observe(obj(10)) == Change(obj(9), obj(10))


def test_the_same_version_twice_is_no_news() -> None:
    cache = ObjectCache()
    cache.observe(obj(5))
    assert cache.observe(obj(5)) is None


def test_an_old_event_does_not_replace_what_a_list_brought() -> None:
    cache = ObjectCache()
    cache.replace(Listing((obj(7),), 10))
    assert cache.observe(obj(6)) is None
    assert cache.get("n", "a") == obj(7)


def test_an_old_event_does_not_revive_what_a_list_no_longer_had() -> None:
    cache = ObjectCache()
    cache.observe(obj(3))
    assert cache.replace(Listing((), 10)) == (Change(obj(3), None),)
    assert cache.observe(obj(4)) is None
    assert list(cache) == []


def test_a_list_from_before_an_event_does_not_undo_it() -> None:
    cache = ObjectCache()
    cache.observe(obj(12))
    cache.observe(obj(13, "b"))
    cache.observe(obj(14, "b"), deleted=True)
    assert cache.replace(Listing((obj(9), obj(8, "b")), 11)) == ()
    assert [cached["at"] for cached in cache] == [12]


def test_a_list_older_than_the_last_one_changes_nothing() -> None:
    cache = ObjectCache()
    cache.replace(Listing((obj(7),), 10))
    assert cache.replace(Listing((), 9)) == ()
    assert cache.get("n", "a") == obj(7)


def test_a_rewound_history_is_taken_as_it_is_and_later_news_counts_again() -> None:
    cache = ObjectCache()
    cache.replace(Listing((obj(7), obj(8, "b")), 10))
    cache.observe(obj(15))
    cache.observe(obj(16, "c"))
    assert cache.newest == 16
    changes = cache.start_over(Listing((obj(7), obj(8, "b")), 12))
    assert set(changes_by_name(changes)) == {"a", "c"}
    assert [cached["at"] for cached in cache] == [7, 8]
    assert cache.newest == 12
    assert cache.observe(obj(13)) == Change(obj(7), obj(13))
    assert cache.observe(obj(14, "c")) == Change(None, obj(14, "c"))


def test_an_object_may_come_again_under_its_old_name() -> None:
    cache = ObjectCache()
    cache.observe(obj(1))
    cache.observe(obj(2), deleted=True)
    assert cache.observe(obj(3)) == Change(None, obj(3))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_every_order_of_the_same_news_ends_the_same(order: tuple[int, ...]) -> None:
    cache = ObjectCache()
    news = (
        lambda: cache.observe(obj(1)),
        lambda: cache.observe(obj(4), deleted=True),
        lambda: cache.replace(Listing((obj(3),), 3)),
        lambda: cache.observe(obj(5, "b")),
    )
    for index in order:
        news[index]()
    assert [cached["at"] for cached in cache] == [5]
