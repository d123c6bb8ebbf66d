# SPDX-License-Identifier: Apache-2.0
"""A figure of a benchmark run: what was measured, and what it must not exceed. Knows nothing of how it was measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """`must` and `stretch` are upper bounds; None for figures that stand beside one. `spread` is for people."""

    figure: str
    value: float
    unit: str
    must: float | None = None
    stretch: float | None = None
    spread: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bound is kept; None without one."""
        return None if self.must is None else self.value <= self.must


def median_of(
    samples: Sequence[float], figure: str, unit: str, *, must: float | None = None, stretch: float | None = None
) -> Figure:
    """The median of several windows, with their range beside it."""
    spread = f"{number(min(samples))} to {number(max(samples))} in {len(samples)} windows"
    return Figure(figure, statistics.median(samples), unit, must, stretch, spread)


def quantile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` of them do not exceed. `samples` is not empty."""
    ordered = sorted(samples)
    return ordered[max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)]


def markdown(figures: Iterable[Figure]) -> str:
    """The table that `make bench` prints: first what has a target, then the rest."""
    rows = [("figure", "value", "must", "stretch", "met", "range"), ("---", "---:", "---:", "---:", "---", "---")]
    for row in sorted(figures, key=lambda row: row.must is None):
        must, stretch = (
            "" if bound is None else f"≤ {number(bound)} {row.unit}".rstrip() for bound in (row.must, row.stretch)
        )
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        rows.append((row.figure, f"{number(row.value)} {row.unit}".rstrip(), must, stretch, met, row.spread))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def write(figures: Iterable[Figure], windows: Sequence[dict[str, Any]], path: Path) -> None:
    """The same as JSON, with the raw windows: {figures: [{figure, value, unit, must, stretch, met}], windows: […]}."""
    rows = [
        {
            "figure": row.figure,
            "value": round(row.value, 4),
            "unit": row.unit,
            "must": row.must,
            "stretch": row.stretch,
            "met": row.met,
        }
        for row in figures
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"figures": rows, "windows": windows}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def number(value: float) -> str:
    """A number for people: about three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
