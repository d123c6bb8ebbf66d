# SPDX-License-Identifier: Apache-2.0
"""Counted against accepted: what has moved by more than the tolerance, in either direction. Counts nothing itself."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOLERANCE = 0.03  # counts repeat within 2 %

Counts = Mapping[str, Mapping[str, float]]  # section (what was counted, with its version) -> scenario -> instructions

_HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Accepted instructions per call under callgrind; `make bench-instructions` fails when a count moves by more than 3 %.
# Written by `make bench-instructions ACCEPT=1`: read the difference before you commit it. A count that fell is accepted
# too, so that it does not rise again unseen.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One count beside the accepted one; `accepted` is None where there is none."""

    section: str
    scenario: str
    counted: float
    accepted: float | None

    @property
    def change(self) -> float | None:
        """By what part it moved; None where nothing was accepted."""
        return None if self.accepted is None else self.counted / self.accepted - 1

    @property
    def holds(self) -> bool:
        """Whether it is where it was accepted."""
        return self.change is not None and abs(self.change) <= TOLERANCE


def compare(counted: Counts, accepted: Counts) -> list[Row]:
    """One row for each count, in the order of counting."""
    return [
        Row(section, scenario, value, accepted.get(section, {}).get(scenario))
        for section, scenarios in counted.items()
        for scenario, value in scenarios.items()
    ]


def table(rows: Sequence[Row]) -> str:
    """The counts for people, as Markdown."""
    lines = [
        "| counted in | call | instructions | accepted | change | holds |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        accepted = "" if row.accepted is None else f"{row.accepted:,.0f}"
        change = "" if row.change is None else f"{row.change:+.1%}"
        holds = "yes" if row.holds else "**no**"
        lines.append(f"| {row.section} | {row.scenario} | {row.counted:,.0f} | {accepted} | {change} | {holds} |")
    return "\n".join(lines)


def complaints(rows: Iterable[Row]) -> list[str]:
    """One sentence for each count that does not hold."""
    found = []
    for row in rows:
        if row.accepted is None:
            found.append(f"{row.section}, {row.scenario}: {row.counted:,.0f} instructions, and nothing is accepted yet")
        elif row.change is not None and not row.holds:
            moved = "rose" if row.change > 0 else "fell"
            found.append(
                f"{row.section}, {row.scenario}: {moved} by {abs(row.change):.1%},"
                f" from {row.accepted:,.0f} to {row.counted:,.0f} instructions"
            )
    return found


def read(path: Path) -> dict[str, dict[str, float]]:
    """The accepted counts; none where there is no file."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def written(counted: Counts, accepted: Counts) -> str:
    """The file's text with what was counted; what was not, such as another version's, stays."""
    together = {**accepted, **{name: {**accepted.get(name, {}), **counted[name]} for name in counted}}
    sections = []
    for name in sorted(together):
        rows = [f'"{scenario}" = {round(value)}' for scenario, value in together[name].items()]
        sections.append("\n".join([f'["{name}"]', *rows]))
    return "\n".join([_HEADER, "\n\n".join(sections), ""])
