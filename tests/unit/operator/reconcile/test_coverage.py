# SPDX-License-Identifier: Apache-2.0
"""Which limiters apply what of a policy."""

import pytest

from weir_operator.domain.limits import Mode
from weir_operator.reconcile.coverage import Coverage, coverage_of
from weir_operator.reconcile.fleet import Standing
from weir_operator.reconcile.ports import LimiterReport, PolicyRun

ENFORCED = {"t/p": PolicyRun(3, {"burst": Mode.ENFORCE, "quota": Mode.SHADOW})}
SHADOWED = {"t/p": PolicyRun(3, {"burst": Mode.SHADOW})}


@pytest.mark.parametrize(
    ("report", "standing", "expected"),
    [
        (LimiterReport("http://a", "a", policies=ENFORCED), Standing.RUNS, Coverage(whole=("a",))),
        (LimiterReport("http://a", "a", policies=ENFORCED), Standing.BEHIND, Coverage(earlier=("a",))),
        (LimiterReport("http://a", "a", policies=ENFORCED), Standing.REFUSED, Coverage(earlier=("a",))),
        (LimiterReport("http://a", "a", policies=SHADOWED), Standing.BEHIND, Coverage(idle=("a",))),
        (LimiterReport("http://a", "a"), Standing.BEHIND, Coverage(idle=("a",))),
        (LimiterReport("http://a", "a", policies=ENFORCED, ready=False), Standing.UNREADY, Coverage(idle=("a",))),
        (LimiterReport("http://a", error="cannot connect"), Standing.UNREACHABLE, Coverage(silent=("http://a",))),
    ],
    ids=["this version", "an earlier one", "refused this one", "an earlier one in shadow", "none", "draining", "dead"],
)
def test_each_limiter_is_in_one_list(report: LimiterReport, standing: Standing, expected: Coverage) -> None:
    assert coverage_of("t/p", (report,), (standing,), runs_whole=True) == expected


def test_what_nobody_should_run_may_still_be_enforced() -> None:
    report = LimiterReport("http://a", "a", policies=ENFORCED)
    assert coverage_of("t/p", (report,), (), runs_whole=False) == Coverage(earlier=("a",))


def test_a_limiter_without_its_store_is_named() -> None:
    report = LimiterReport("http://a", "a", policies=ENFORCED, store_down=True)
    assert coverage_of("t/p", (report,), (Standing.RUNS,), runs_whole=True) == Coverage(whole=("a",), storeless=("a",))
