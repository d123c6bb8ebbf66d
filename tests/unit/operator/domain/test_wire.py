# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import jsonschema
import pytest

from weir_operator.domain.wire import DocumentError, decode, encode, json_schema, member


class Colour(StrEnum):
    RED = "Red"
    BLUE = "Blue"


@dataclass(frozen=True, slots=True)
class Circle:
    radius_mm: int = member("Radius.", minimum=0)


@dataclass(frozen=True, slots=True)
class Box:
    sides: tuple[int, ...] = member("Sides.")
    colour: Colour = member("Colour.", name="paint")


@dataclass(frozen=True, slots=True)
class Square:
    size_mm: int = member("Side.")
    shape: Colour = member("Which.", default=Colour.RED, const="Red")


@dataclass(frozen=True, slots=True)
class Cube:
    size_mm: int = member("Edge.")
    shape: Colour = member("Which.", default=Colour.BLUE, const="Blue")


@dataclass(frozen=True, slots=True)
class Pile:
    """Things of one form, told apart by a constant."""

    things: tuple[Square | Cube, ...] = member("Things.")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing."""

    shapes: tuple[Circle | Box, ...] = member("Shapes.")
    named: Mapping[str, Circle] = member("By name.")
    title: str | None = member("Absent = untitled.")


DRAWING = Drawing((Circle(5), Box((1, 2), Colour.BLUE)), {"sun": Circle(9)}, None)
DATA = {"shapes": [{"radiusMm": 5}, {"sides": [1, 2], "paint": "Blue"}], "named": {"sun": {"radiusMm": 9}}}


def test_values_are_encoded_in_camel_case_without_absent_members() -> None:
    assert encode(DRAWING) == DATA


def test_encoded_data_decodes_to_the_same_value() -> None:
    assert decode(Drawing, DATA) == DRAWING
    assert decode(Drawing, {**DATA, "title": "x"}).title == "x"


def test_encoded_data_is_valid_by_the_schema() -> None:
    jsonschema.Draft202012Validator(json_schema(Drawing, title="drawing")).validate(DATA)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ([], r"^\$:"),
        ({"shapes": []}, r"missing members \['named'\]"),
        ({**DATA, "extra": 1}, r"unknown members \['extra'\]"),
        ({**DATA, "title": None}, r"^\$\.title"),
        ({**DATA, "shapes": {}}, r"^\$\.shapes"),
        ({**DATA, "shapes": [{}]}, r"^\$\.shapes\[0\]: expected exactly one of"),
        ({**DATA, "shapes": [{"radiusMm": True}]}, r"^\$\.shapes\[0\]\.radiusMm"),
        ({**DATA, "shapes": [{"radiusMm": 1.0}]}, r"^\$\.shapes\[0\]\.radiusMm"),
        ({**DATA, "shapes": [{"sides": [], "paint": "Green"}]}, r"^\$\.shapes\[0\]\.paint: expected one of Red, Blue"),
        ({**DATA, "named": {"moon": 1}}, r"^\$\.named\.moon"),
    ],
)
def test_data_of_another_form_is_refused_with_its_path(data: Any, path: str) -> None:
    with pytest.raises(DocumentError, match=path):
        decode(Drawing, data)
    assert not jsonschema.Draft202012Validator(json_schema(Drawing, title="drawing")).is_valid(data) or data == {
        **DATA,
        "shapes": [{"radiusMm": 1.0}],  # JSON Schema takes 1.0 for an integer; the wire does not
    }


def test_values_of_one_form_are_told_apart_by_their_constant() -> None:
    pile = Pile((Square(1), Cube(2)))
    data = {"things": [{"sizeMm": 1, "shape": "Red"}, {"sizeMm": 2, "shape": "Blue"}]}
    assert encode(pile) == data
    assert decode(Pile, data) == pile
    schema = jsonschema.Draft202012Validator(json_schema(Pile, title="pile"))
    schema.validate(data)
    assert not schema.is_valid({"things": [{"sizeMm": 1, "shape": "Green"}]})
    with pytest.raises(DocumentError, match=r"^\$\.things\[0\]: expected exactly one of Red, Blue"):
        decode(Pile, {"things": [{"sizeMm": 1, "shape": "Green"}]})
