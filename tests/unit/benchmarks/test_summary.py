# SPDX-License-Identifier: Apache-2.0
"""From windows to figures, and from figures to what is printed and written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import bare_script
import figures
import instructions
import load
import scenarios
import summary
from figures import Figure
from weir_operator.cli import unit_costs
from windows import SATURATION, Window

CALLS = load.Summary(
    calls=100, allowed=90, refused=10, lost=0, p50_us=100.0, p90_us=200.0, p99_us=300.0, p999_us=400.0, max_us=500.0
)


def window(subject: str, point: str, **changed: float) -> Window:
    summed = replace(CALLS, **changed)
    return Window(subject, point, load.Report(summed, summed, 1000.0), {"server": 10.0, "store": 5.0}, clean=True)


def whole_run() -> list[Window]:
    return [
        window(subject, point) for subject, points in scenarios.POINTS.items() for point in points for _ in range(2)
    ]


def value(found: list[Figure], name: str) -> float:
    (figure,) = [figure for figure in found if figure.figure == name]
    return figure.value


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50), (0.9, 90), (0.99, 99), (0.999, 100), (1.0, 100), (0.001, 1)]
)
def test_a_quantile_is_the_smallest_sample_that_so_many_do_not_exceed(share: float, expected: int) -> None:
    assert figures.quantile(range(100, 0, -1), share) == expected


def test_a_median_shows_its_range() -> None:
    figure = figures.median_of([3.0, 1.0, 2000.0], "x", "us", must=2.0)
    assert (figure.value, figure.spread, figure.met) == (3.0, "1.00 to 2,000 in 3 windows", False)


@pytest.mark.requirement("R04")
def test_ratios_are_of_medians_within_the_run() -> None:
    run = [each for each in whole_run() if (each.subject, each.point) != (scenarios.ONE, "2400")]
    run += [window(scenarios.ONE, "2400", p50_us=p50, p99_us=800.0) for p50 in (210.0, 220.0, 9000.0)]
    found = summary.figures(run, idle_mb=20.0)
    assert value(found, "decision p50 at 2,400/s / (echo p50 + script p50)") == pytest.approx(1.1)
    assert value(found, "decision p99 at 2,400/s above the echo's") == pytest.approx(0.5)
    assert value(found, "CPU per decision at saturation / bare echo") == 1.0


@pytest.mark.requirement("R01")
def test_the_other_keys_beside_a_hot_one_have_a_figure_of_their_own() -> None:
    hot = window(scenarios.HOT, "2400")
    others = replace(hot, report=replace(hot.report, apart=replace(CALLS, p99_us=2300.0)))
    run = [each for each in whole_run() if (each.subject, each.point) != (scenarios.HOT, "2400")] + [others]
    name = "hot key: p99 of the other keys at 2,400/s, above that without a hot key"
    assert value(summary.figures(run, 20.0), name) == pytest.approx(2.0)
    assert value(summary.details(run), "hot key: p99 of the other keys at 2,400/s") == 2300.0


def test_lost_calls_are_told() -> None:
    found = summary.details([window(scenarios.ONE, "10000", lost=7)])
    assert value(found, "sidecar: calls lost at 10,000/s") == 7


def test_the_table_has_a_row_for_each_subject_and_load_in_order() -> None:
    rows = summary.table(whole_run()).splitlines()
    assert len(rows) == 2 + sum(len(points) for points in scenarios.POINTS.values())
    loads = [row.split(" | ")[1] for row in rows if row.startswith("| echo")]
    assert loads == ["400/s", "2,400/s", "10,000/s", SATURATION]


@pytest.mark.requirement("R05")
def test_every_unit_cost_names_a_figure_that_is_measured() -> None:
    run = whole_run()
    scripts = dict.fromkeys(("allowed", "refused", "three rules"), 1.0)
    counted = instructions.figures({"redis 7.0.15": scripts})
    names = {row.figure for row in [*summary.figures(run, 20.0), *summary.details(run), *counted]}
    names |= {name for rules in (1, 3) for name in bare_script.names(rules)} | {bare_script.FURTHER}
    assert {cost.figure for cost in unit_costs.read().costs if cost.figure} <= names


def test_the_file_has_figures_with_their_bounds_and_the_raw_windows(tmp_path: Path) -> None:
    run = whole_run()
    figures.write(
        [Figure("a", 1.23456, "ms", 2.0, 1.0), Figure("b", 1.0, "")], [w.raw() for w in run], tmp_path / "x.json"
    )
    document = json.loads((tmp_path / "x.json").read_text())
    assert document["figures"] == [
        {"figure": "a", "value": 1.2346, "unit": "ms", "must": 2.0, "stretch": 1.0, "met": True},
        {"figure": "b", "value": 1.0, "unit": "", "must": None, "stretch": None, "met": None},
    ]
    assert len(document["windows"]) == len(run)
    assert document["windows"][0]["report"]["all"]["p999_us"] == 400.0


def test_the_printed_table_begins_with_what_has_a_bound() -> None:
    text = figures.markdown([Figure("beside", 1.0, "us"), Figure("judged", 3.0, "ms", 2.0, 1.0)])
    assert text.splitlines()[2] == "| judged | 3.00 ms | ≤ 2.00 ms | ≤ 1.00 ms | **no** |  |"


def test_a_report_with_failed_calls_is_no_report() -> None:
    with pytest.raises(RuntimeError, match="3 of 100 calls failed: reset"):
        load.Report.parse(json.dumps({"failed": 3, "calls": 100, "first_failure": "reset"}))
