# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.ruleset import canonical_json
from weir_operator.domain.wire import encode, member
from weir_operator.domain.wire_text import Texts, canonical_text, join_members


class Colour(StrEnum):
    RED = "Red"
    GREEN = 'Gr"n'


@dataclass(frozen=True, slots=True)
class Leaf:
    name: str = member("Any text.", name="z")
    count: int | None = member("A number.", default=None)


@dataclass(frozen=True, slots=True)
class Other:
    colour: Colour = member("A word.")


@dataclass(frozen=True, slots=True)
class Tree:
    leaves: tuple[Leaf | Other, ...] = member("Several.")
    names: tuple[tuple[str, ...], ...] = member("Lists of lists.")
    by_name: Mapping[str, Leaf] = member("A map.")
    alone: Leaf | None = member("Perhaps one.", default=None)


texts = st.text(max_size=6)
leaves = st.builds(Leaf, texts, st.none() | st.integers())
trees = st.builds(
    Tree,
    st.lists(leaves | st.builds(Other, st.sampled_from(Colour)), max_size=4).map(tuple),
    st.lists(st.lists(texts, max_size=2).map(tuple), max_size=2).map(tuple),
    st.dictionaries(texts, leaves, max_size=3),
    st.none() | leaves,
)


@given(trees)
def test_the_text_is_the_canonical_json_of_the_data(tree: Tree) -> None:
    assert canonical_text(tree).encode() == canonical_json(encode(tree))


@given(trees, trees)
def test_remembered_texts_are_those_of_the_parts_that_are_there_now(first: Tree, second: Tree) -> None:
    known = Texts()
    for tree in (first, second, second):
        assert join_members(known.members(tree)) == canonical_json(encode(tree))
