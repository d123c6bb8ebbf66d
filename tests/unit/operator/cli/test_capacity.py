# SPDX-License-Identifier: Apache-2.0
"""`weir capacity`: what it prints, what it refuses, and that the arithmetic that it shows is the one that it did."""

import json
import re
import subprocess
import sys
from math import ceil
from pathlib import Path

import pytest

from weir_operator.cli.main import main

ROOT = Path(__file__).resolve().parents[4]
R01 = ["--rps", "2400", "--subjects", "12k", "--rules", "1", "--hot-share", "0.4", "--limiters", "6"]
R05 = ["--rps", "1M", "--subjects", "20M", "--rules", "2", "--regions", "3"]
ODD = [
    *("--rps", "37.5k", "--subjects", "3_000_000", "--rules", "5", "--regions", "4", "--lost-regions", "1"),
    *("--subjects-per-request", "2", "--hot-share", "0.1", "--limiters", "3", "--busy", "0.7", "--full", "0.4"),
]


def planned(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> dict:
    assert main(["capacity", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def evaluated(arithmetic: str) -> float:
    """What the shown line comes to, when somebody takes it at its word."""
    assert re.fullmatch(r"(?:[\d.,+*/() -]|max|min|ceil|e[+-])+", arithmetic), arithmetic
    numbers = re.sub(r"(?<=\d),(?=\d{3})", "", arithmetic)
    return eval(numbers, {"max": max, "min": min, "ceil": ceil, "__builtins__": {}})  # noqa: S307  checked above


@pytest.mark.requirement("R05")
@pytest.mark.parametrize("arguments", [R01, R05, ODD], ids=["R01", "R05", "odd"])
def test_every_line_of_the_arithmetic_comes_to_the_number_behind_it(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    for step in planned(capsys, arguments)["steps"]:
        assert evaluated(step["arithmetic"]) == pytest.approx(step["value"], rel=0.002), step["name"]


@pytest.mark.requirement("R05")
@pytest.mark.parametrize("arguments", [R01, R05, ODD], ids=["R01", "R05", "odd"])
def test_every_number_of_a_line_is_asked_for_or_measured_or_found_above(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    answer = planned(capsys, arguments)
    costs = [cost["value"] for cost in answer["unit_costs"].values() if isinstance(cost, dict)]
    known = [*costs, *(value for value in answer["asked"].values() if value is not None), 1, 1000, 10**6, 10**9]
    whole = [answer["asked"]["rules"] - answer["asked"]["subjects_per_request"]]
    whole.append(ceil(answer["asked"]["rules"] / answer["asked"]["subjects_per_request"]) - 1)
    for step in answer["steps"]:
        numbers = re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-\d+)?", re.sub(r",(?=\s)", "", step["arithmetic"]))
        for number in (float(text.replace(",", "")) for text in numbers):
            assert any(number == pytest.approx(other, rel=0.001) for other in [*known, *whole]), (step, number)
        known.append(step["value"])


@pytest.mark.requirement("R05")
def test_the_large_design_is_bound_by_cpu_and_the_small_one_by_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    large, small = planned(capsys, R05), planned(capsys, R01)
    steps = {step["name"]: step["value"] for step in large["steps"]}
    assert steps["primaries for the CPU"] > steps["primaries for the memory"]
    assert large["needs"]["primaries"] == 3 * steps["primaries"]
    assert large["needs"]["servers"] == 2 * large["needs"]["primaries"]
    assert (small["needs"]["primaries"], small["needs"]["threads_per_limiter"]) == (1, 1)


@pytest.mark.requirement("R05")
def test_a_lost_region_leaves_its_load_to_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    whole, reduced = planned(capsys, R05), planned(capsys, [*R05, "--lost-regions", "1"])
    assert [case["steps"][0]["value"] for case in (whole, reduced)] == pytest.approx([10**6 / 3, 10**6 / 2])


@pytest.mark.requirement("R01")
def test_a_subject_that_is_too_hot_for_one_primary_is_impossible_and_says_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["capacity", *R05, "--hot-share", "0.4"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "a subject cannot be divided" in told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rps", "0"], "--rps: '0' is not above 0"),
        (["--rps", "9" * 400], "is more than 1,000,000,000,000,000"),
        (["--limiters", "9" * 400], "is more than 1,000,000,000,000,000"),
        (["--rps", "many"], "--rps: 'many' is no number such as 2400, 2.4k or 20M"),
        (["--rules", "1.5"], "--rules: '1.5' is no whole number from 1"),
        (["--hot-share", "40"], "--hot-share: '40' is no share between 0 and 1"),
        (["--busy", "1.2"], "--busy: '1.2' is not above 0 and at most 1"),
        (["--lost-regions", "3"], "--lost-regions 3 leaves none of 3 regions"),
        (["--subjects-per-request", "3"], "--subjects-per-request 3 is more than --rules 2"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_the_options_name(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    try:
        status = main(["capacity", *R05, *arguments])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert words in capsys.readouterr().err


def test_no_plan_asks_for_a_store_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """For Redis and Valkey a maxmemory of 0 is none at all."""
    assert planned(capsys, ["--rps", "1", "--subjects", "1", "--rules", "1"])["needs"]["maxmemory_gb"] > 0


def test_what_must_be_given_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["capacity", "--rps", "1"])
    assert ended.value.code == 2
    assert "--subjects, --rules" in capsys.readouterr().err


def test_the_command_line_needs_neither_kopf_nor_the_kubernetes_client() -> None:
    code = "import sys, weir_operator.cli.main; print({'kopf', 'kubernetes', 'aiohttp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
