# SPDX-License-Identifier: Apache-2.0
"""The last line of `make test` is read by machines: what it counts, also when a runner itself breaks."""

from pathlib import Path

import pytest

from lab.rings import RINGS, Count, _cargo, _junit

CARGO = """
running 3 tests
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 2 tests
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
JUNIT = '<testsuites><testsuite name="pytest" errors="{errors}" failures="1" skipped="2" tests="10"/></testsuites>'


def test_cargos_results_are_added_up_over_all_crates() -> None:
    assert _cargo(101, CARGO) == Count(4, 1)


def test_crates_that_do_not_compile_are_one_failure() -> None:
    assert _cargo(101, "error: could not compile `limiter-core`") == Count(0, 1)


@pytest.mark.parametrize(("errors", "counted"), [(0, Count(7, 1)), (1, Count(6, 2))])
def test_pytests_report_is_counted_without_what_was_skipped(tmp_path: Path, errors: int, counted: Count) -> None:
    report = tmp_path / "report.xml"
    report.write_text(JUNIT.format(errors=errors))
    assert _junit(report)(1, "") == counted


def test_a_pytest_that_wrote_no_report_is_one_failure(tmp_path: Path) -> None:
    assert _junit(tmp_path / "never-written.xml")(4, "") == Count(0, 1)


def test_rings_run_from_the_cheapest_to_the_dearest() -> None:
    assert list(RINGS) == ["lint", "unit", "conformance", "integration", "e2e"]
