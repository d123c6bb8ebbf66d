# SPDX-License-Identifier: Apache-2.0
"""The gate on instruction counts: what it lets pass, what it says, and what accepting changes."""

import tomllib
from pathlib import Path

import pytest

import callgrind
import gate

ACCEPTED = {"sidecar": {"allowed": 1000.0, "refused": 2000.0}, "redis 7.0.15": {"allowed": 500.0}}


@pytest.mark.parametrize(("counted", "holds"), [(1000, True), (1029, True), (971, True), (1031, False), (969, False)])
def test_a_count_may_move_by_three_percent_in_either_direction(counted: float, holds: bool) -> None:
    (row,) = gate.compare({"sidecar": {"allowed": counted}}, ACCEPTED)
    assert row.holds is holds
    assert bool(gate.complaints([row])) is not holds


def test_a_complaint_names_the_figure_and_how_far_it_moved() -> None:
    rows = gate.compare({"sidecar": {"allowed": 1100.0, "refused": 1000.0, "held": 7.0}}, ACCEPTED)
    assert gate.complaints(rows) == [
        "sidecar, allowed: rose by 10.0%, from 1,000 to 1,100 instructions",
        "sidecar, refused: fell by 50.0%, from 2,000 to 1,000 instructions",
        "sidecar, held: 7 instructions, and nothing is accepted yet",
    ]


def test_another_version_of_the_store_is_never_compared_with_an_accepted_one() -> None:
    (row,) = gate.compare({"redis 8.2.0": {"allowed": 500.0}}, ACCEPTED)
    assert (row.accepted, row.holds) == (None, False)


def test_accepting_replaces_what_was_counted_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "instructions.toml"
    path.write_text(gate.written({"sidecar": {"allowed": 1234.4}}, ACCEPTED))
    assert gate.read(path) == {"sidecar": {"allowed": 1234, "refused": 2000}, "redis 7.0.15": {"allowed": 500}}
    assert path.read_text() == gate.written({}, gate.read(path)), "accepted twice, the same bytes"


def test_without_a_file_nothing_is_accepted(tmp_path: Path) -> None:
    assert gate.read(tmp_path / "none.toml") == {}


def test_the_table_shows_each_count_beside_the_accepted_one() -> None:
    rows = gate.compare({"sidecar": {"allowed": 1100.0}}, ACCEPTED)
    assert gate.table(rows).splitlines()[-1] == "| sidecar | allowed | 1,100 | 1,000 | +10.0% | **no** |"


def test_the_total_is_read_from_callgrinds_last_words() -> None:
    assert callgrind.total("==7== Events    : Ir\n==7== Collected : 230099692\n==7== \n", "limiter") == 230_099_692
    with pytest.raises(RuntimeError, match="no total for limiter"):
        callgrind.total("==7== killed", "limiter")


def test_what_is_accepted_in_the_repository_can_be_read() -> None:
    path = Path(gate.__file__).with_name("instructions.toml")
    accepted = tomllib.loads(path.read_text())
    assert set(accepted["sidecar"]) == {"one rule allowed", "one rule refused", "three rules allowed", "unmatched"}
    assert all(count > 0 for section in accepted.values() for count in section.values())
