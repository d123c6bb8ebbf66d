# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: a mark by folder, nothing skipped in CI, and the table of requirements.

`make requirements` prints the table from the marks in the sources and the outcomes that earlier runs left in
`.weir/requirements.json`.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parent
_OUTCOMES = _TESTS.parent / ".weir" / "requirements.json"
_OUTCOMES_WORST_LAST = ("passed", "not run", "skipped", "failed")
_RINGS = ("unit", "conformance", "integration", "e2e")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements", action="store_true", help="print requirement -> tests -> last outcome")


def pytest_configure(config: pytest.Config) -> None:
    for ring in _RINGS:
        config.addinivalue_line("markers", f"{ring}: every test of tests/{ring}, by its folder")
    config.stash[_SEEN], config.stash[_PROVES] = {}, {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    proves = {item.nodeid: [name for mark in item.iter_markers("requirement") for name in mark.args] for item in items}
    config.stash[_PROVES] = proves
    for item in items:
        ring = item.path.relative_to(_TESTS).parts[0]
        if ring in _RINGS:
            item.add_marker(ring)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skips_in_ci(report)
    if any(True for _ in item.iter_markers("requirement")):
        seen = item.config.stash[_SEEN]
        if report.when == "call" or report.outcome != "passed":
            seen[item.nodeid] = "passed" if report.passed and seen.get(item.nodeid) != "failed" else report.outcome
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skips_in_ci(report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    seen = session.config.stash[_SEEN]
    if seen:
        _OUTCOMES.parent.mkdir(exist_ok=True)
        _OUTCOMES.write_text(json.dumps({**_earlier_outcomes(), **seen}, indent=1, sort_keys=True))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("--requirements"):
        return
    outcomes = _earlier_outcomes()
    table = defaultdict(list)
    for test, requirements in config.stash[_PROVES].items():
        for requirement in requirements:
            table[requirement].append(test)
    terminalreporter.write_line("")
    for requirement, cases in sorted(table.items()):
        tests = defaultdict(list)
        for case in cases:
            tests[case.split("[")[0]].append(outcomes.get(case, "not run"))
        for test, results in sorted(tests.items()):
            worst = max(results, key=_OUTCOMES_WORST_LAST.index)
            terminalreporter.write_line(f"{requirement}  {worst:<8} {test} ({len(results)})")


def _refuse_skips_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """A part that is missing in CI is a failure: a green run must mean that everything ran."""
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"


def _earlier_outcomes() -> dict[str, str]:
    return json.loads(_OUTCOMES.read_text()) if _OUTCOMES.exists() else {}


_SEEN = pytest.StashKey[dict[str, str]]()  # node id -> outcome, of tests that prove a requirement
_PROVES = pytest.StashKey[dict[str, list[str]]]()  # node id -> requirements
