# SPDX-License-Identifier: Apache-2.0
"""The page on capacity and the reference of `weir` show what the command says today, and all of its options."""

import os
import re
import shlex
from pathlib import Path

import pytest

from weir_operator.cli import unit_costs
from weir_operator.cli.main import main, parser

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "explanation" / "capacity.md"
SHOWN = re.compile(r"^```console\n\$ weir (?P<arguments>capacity .+)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)
TABLE = re.compile(r"(?<=<!-- unit costs -->\n\n).*?(?=\n\n)", re.DOTALL)


def table() -> str:
    costs = unit_costs.read().costs
    rows = [f"| {cost.what} | {cost.value:,} {cost.unit} | {cost.figure} |" for cost in costs]
    return "\n".join(["| what | one costs | measured by |", "| --- | ---: | --- |", *rows])


@pytest.mark.requirement("R05", "R08")
def test_the_page_shows_the_accepted_unit_costs_and_calculations(capsys: pytest.CaptureFixture[str]) -> None:
    def run(shown: re.Match[str]) -> str:
        assert main(shlex.split(shown["arguments"])) == 0
        return f"```console\n$ weir {shown['arguments']}\n{capsys.readouterr().out}```"

    text = PAGE.read_text()
    assert len(SHOWN.findall(text)) >= 2
    assert len(TABLE.findall(text)) == 1
    today = SHOWN.sub(run, TABLE.sub(lambda _: table(), text))
    if os.environ.get("WEIR_ACCEPT_GOLDEN"):
        PAGE.write_text(today)
    assert PAGE.read_text() == today, "look at the difference; `make golden` accepts it"


def test_the_reference_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["capacity", "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    page = (DOCS / "reference" / "weir-cli.md").read_text()
    assert options <= set(re.findall(r"--[a-z-]+", page))
