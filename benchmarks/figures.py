# SPDX-License-Identifier: Apache-2.0
"""A figure of a benchmark run: what was measured, and what it must not exceed. Knows nothing of how it was measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """`must` is an upper bound; None for figures that stand beside one to be read with it. `spread` is for people."""

    figure: str
    value: float
    unit: str
    must: float | None = None
    spread: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bound is kept; None without one."""
        return None if self.must is None else self.value <= self.must


def median_of(samples: Sequence[float], figure: str, unit: str) -> Figure:
    """The median of several windows, with their range beside it."""
    spread = f"{_number(min(samples))} to {_number(max(samples))} in {len(samples)} windows"
    return Figure(figure, statistics.median(samples), unit, spread=spread)


def markdown(figures: Iterable[Figure]) -> str:
    """The table that `make bench` prints."""
    rows = [("figure", "value", "must", "met", "range"), ("---", "---:", "---:", "---", "---")]
    for row in figures:
        must = "" if row.must is None else f"≤ {_number(row.must)} {row.unit}".rstrip()
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        rows.append((row.figure, f"{_number(row.value)} {row.unit}".rstrip(), must, met, row.spread))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def write(figures: Iterable[Figure], path: Path) -> None:
    """The same as JSON: a list of {figure, value, unit, must, met}."""
    rows = [
        {"figure": row.figure, "value": round(row.value, 4), "unit": row.unit, "must": row.must, "met": row.met}
        for row in figures
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
