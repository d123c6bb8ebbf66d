# SPDX-License-Identifier: Apache-2.0
"""Reads `unit_costs.toml`, the one place of what things cost and of where that was measured."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files

from weir_operator.domain.capacity import UnitCosts


@dataclass(frozen=True, slots=True)
class Measured:
    """One unit cost as in the file. `figure` is the line of `make bench` that measures it, "" where none does."""

    name: str
    value: float
    unit: str
    what: str
    figure: str


@dataclass(frozen=True, slots=True)
class Measurements:
    """All of them, where they were measured and when."""

    machine: str
    day: str
    costs: tuple[Measured, ...]

    def unit_costs(self) -> UnitCosts:
        """Only the numbers."""
        return UnitCosts(**{cost.name: cost.value for cost in self.costs})


def read() -> Measurements:
    """Read the file that comes with the package."""
    text = files("weir_operator.cli").joinpath("unit_costs.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    names = [field.name for field in fields(UnitCosts)]
    costs = tuple(Measured(name=name, **document[name]) for name in names)
    return Measurements(document["machine"], document["measured"], costs)
