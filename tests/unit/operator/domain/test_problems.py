# SPDX-License-Identifier: Apache-2.0
from weir_operator.domain.problems import did_you_mean, invalid, summary


def test_a_problem_reads_as_path_fault_and_remedy() -> None:
    assert str(invalid("spec.mode", "is no choice", "write Enforce")) == "spec.mode: is no choice; write Enforce"


def test_a_summary_spells_out_the_first_problems_and_counts_the_rest() -> None:
    text = summary([invalid(f"spec.rules[{n}]", "is wrong") for n in range(20)])
    assert "spec.rules[7]: is wrong" in text
    assert "spec.rules[8]" not in text
    assert text.endswith("And 12 more")


def test_a_close_name_is_suggested_and_all_known_names_are_listed() -> None:
    assert did_you_mean("egde", ["inner", "edge"]) == "did you mean edge? known: edge, inner"


def test_nothing_is_suggested_where_nothing_is_close_or_nothing_exists() -> None:
    assert did_you_mean("zzz", ["edge"]) == "known: edge"
    assert did_you_mean("edge", []) == "none exists"
