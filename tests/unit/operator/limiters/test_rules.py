# SPDX-License-Identifier: Apache-2.0
"""What a limiter says of the rules that it runs."""

from typing import Any

import pytest

from weir_operator.domain.limits import Mode
from weir_operator.limiters.rules import UnusableAnswer, parse_break_glass, parse_rules
from weir_operator.reconcile.ports import PolicyRun


def entry(rule: str, mode: str = "Enforce", **members: Any) -> dict[str, Any]:
    return {"policy": "t/p", "rule": rule, "generation": 3, "mode": mode, "requests": 7, **members}


def test_rules_are_joined_by_policy_with_what_they_do_now() -> None:
    found = parse_rules([entry("a"), entry("b", "Shadow"), {**entry("c"), "policy": "t/q", "generation": 1}])
    assert found == {
        "t/p": PolicyRun(3, {"a": Mode.ENFORCE, "b": Mode.SHADOW}),
        "t/q": PolicyRun(1, {"c": Mode.ENFORCE}),
    }


def test_what_holds_now_outranks_what_was_written() -> None:
    assert parse_rules([entry("a", effectiveMode="Disabled")])["t/p"].modes == {"a": Mode.DISABLED}


def test_of_two_versions_of_a_rule_the_stronger_counts() -> None:
    found = parse_rules([entry("a"), entry("a", "Shadow", slot="b")])
    assert found["t/p"].modes == {"a": Mode.ENFORCE}


def test_a_policy_is_matched_once_any_of_its_rules_saw_a_request() -> None:
    unseen = {"lastRequestMs": None, "version": "v"}
    quiet = [entry("a", sinceMs=5, **unseen), entry("b", sinceMs=9, **unseen)]
    assert parse_rules(quiet)["t/p"] == PolicyRun(3, {"a": Mode.ENFORCE, "b": Mode.ENFORCE}, frozenset({"v"}), 9)
    assert parse_rules([quiet[0], entry("b", sinceMs=9, lastRequestMs=12)])["t/p"].unmatched_since_ms is None


def test_a_limiter_too_old_to_tell_is_no_witness_of_silence() -> None:
    assert parse_rules([entry("a", sinceMs=5)])["t/p"].unmatched_since_ms is None


def test_break_glass_is_read_where_there_is_any() -> None:
    member = {"modes": {"*": "Shadow", "t/p/a": "Disabled"}, "error": None, "resourceVersion": "7"}
    modes = {"*": Mode.SHADOW, "t/p/a": Mode.DISABLED}
    assert parse_break_glass(member) == (modes, "")
    assert parse_break_glass({**member, "error": "no YAML"}) == (modes, "no YAML")
    assert parse_break_glass(None) == ({}, "")


def test_a_limiter_without_rules_runs_nothing() -> None:
    assert parse_rules(None) == parse_rules([]) == {}


@pytest.mark.parametrize(
    "bad", [{"policy": "t/p"}, {**entry("a"), "policy": []}, entry("a", "Sometimes"), entry("a", effectiveMode=[]), "a"]
)
def test_an_entry_that_makes_no_sense_makes_the_answer_unusable(bad: Any) -> None:
    with pytest.raises(UnusableAnswer):
        parse_rules([bad])
