# SPDX-License-Identifier: Apache-2.0
"""The source root `operator/` must never shadow the standard library's module of that name."""

import operator
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_import_operator_finds_the_standard_library() -> None:
    assert Path(operator.__file__).is_relative_to(sysconfig.get_path("stdlib"))


def test_the_source_root_is_no_package() -> None:
    assert list((ROOT / "operator").glob("*.py")) == []
