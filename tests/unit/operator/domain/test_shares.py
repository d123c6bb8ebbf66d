# SPDX-License-Identifier: Apache-2.0
"""One namespace fills its share and no more, and its neighbours do not notice."""

from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.compiler import Compiled, Compiler
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway, HostsDefault, NamespaceBudget
from weir_operator.domain.limits import Action
from weir_operator.domain.problems import invalid
from weir_operator.domain.ruleset import Policy, Ruleset
from weir_operator.domain.specs import (
    HeaderSource,
    LimitPatch,
    LimitSpec,
    Meta,
    OverrideInput,
    OverrideSpec,
    PolicyInput,
    PolicySpec,
    RuleSpec,
    SubjectValue,
)
from weir_operator.domain.wire_text import canonical_text

GATEWAY = Gateway("edge", "weir-system", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
BROKEN = (invalid("spec.rules", "is missing"),)


def policy(name: str, *, namespace: str = "team", rules: int = 1, created: int = 0, generation: int = 1) -> PolicyInput:
    several = tuple(RuleSpec(f"r{n}", LimitSpec(9, 1_000_000), (HeaderSource("x"),)) for n in range(rules))
    meta = Meta(namespace, name, f"uid-{name}", generation, created)
    return PolicyInput(meta, "edge", PolicySpec(several, hosts=(f"{name}.test",)))


def override(number: int, *, namespace: str = "team", subjects: int = 1, created: int = 0) -> OverrideInput:
    values = tuple((SubjectValue("x", f"k{number}-{n}"),) for n in range(subjects))
    spec = OverrideSpec("a", values, Action.SET, limit=LimitPatch(5))
    return OverrideInput(Meta(namespace, f"o{number}", f"uid-{number}", 1, created), "a", spec)


def compiled(
    policies: list[PolicyInput], overrides: list[OverrideInput] | None = None, previous: Ruleset | None = None,
    **budget: int,
) -> Compiled:  # fmt: skip
    gateway = replace(GATEWAY, namespace_budget=NamespaceBudget(**budget))
    return Compiler(gateway, closed_size=_closed_size).compile(policies, overrides or [], previous)


def _closed_size(piece: Policy) -> int:
    return 100 * len(piece.rules)


def reasons(result: Compiled) -> dict[str, Any]:
    outcomes = {**result.policies, **result.overrides}
    return {name: outcome.problems[0].reason for name, outcome in outcomes.items() if not outcome.accepted}


@pytest.mark.requirement("R46")
@pytest.mark.parametrize("budget", [{"rules": 3}, {"document_bytes": 1500}, {"closed_bytes": 300}])
def test_the_youngest_policy_gives_way_and_the_neighbours_go_on(budget: dict[str, int]) -> None:
    """D46"""
    ours = [policy("a", rules=2, created=1), policy("b", rules=3, created=3), policy("c", created=2)]
    theirs = [policy("d", namespace="other", rules=3, created=9)]
    result = compiled([*ours, *theirs], **budget)
    assert reasons(result) == {"team/b": Reason.BUDGET_EXCEEDED}
    assert [piece.id for piece in result.ruleset.policies] == ["other/d", "team/a", "team/c"]
    (problem,) = result.policies["team/b"].problems
    assert 'the namespace "team" would have' in problem.message
    assert "namespaceBudget" in (problem.hint or "")


@pytest.mark.requirement("R46")
def test_an_edit_that_grows_too_large_keeps_the_last_accepted_version() -> None:
    """D44, D46"""
    before = compiled([policy("a"), policy("b", created=1)], rules=3)
    grown = policy("a", rules=3, generation=2)
    result = compiled([grown, policy("b", created=1)], previous=before.ruleset, rules=3)
    assert result.policies["team/a"].accepted, "the older one has the first claim"
    assert result.policies["team/b"].kept
    assert compiled([policy("a", rules=4, generation=3)], previous=before.ruleset, rules=3).policies["team/a"].kept


@pytest.mark.requirement("R46")
def test_a_policy_without_room_in_its_namespace_takes_no_place_of_another_team() -> None:
    """D46"""
    crowding = replace(policy("a", rules=9), spec=replace(policy("b", rules=9).spec, hosts=()))  # type: ignore[type-var]
    later = policy("d", namespace="other", rules=5, created=9)
    assert reasons(compiled([crowding, later], rules=8)) == {"team/a": Reason.BUDGET_EXCEEDED}


@pytest.mark.requirement("R46")
def test_overrides_share_what_the_policies_leave_the_oldest_first() -> None:
    """D46"""
    overrides = [override(number, created=9 - number) for number in range(6)]
    whole = compiled([policy("a")], overrides, document_bytes=10_000)
    assert not reasons(whole)
    result = compiled([policy("a")], [*overrides, override(9, namespace="other")], document_bytes=1200)
    refused = reasons(result)
    assert {"team/o0", "team/o1"} <= refused.keys()
    assert "team/o5" not in refused
    assert refused["team/o0"] is Reason.BUDGET_EXCEEDED
    assert {piece.id for piece in result.ruleset.overrides} == {"team/" + f"o{n}" for n in range(6)} - refused.keys()


@pytest.mark.requirement("R46")
def test_a_smaller_budget_ends_no_override_and_takes_no_new_one() -> None:
    """D46"""
    overrides = [override(number, created=number) for number in range(4)]
    before = compiled([policy("a")], overrides).ruleset
    smaller = compiled([policy("a")], [*overrides, override(7, created=7)], before, document_bytes=500)
    assert smaller.ruleset.overrides == before.overrides
    assert reasons(smaller) == {"team/o7": Reason.BUDGET_EXCEEDED}


@pytest.mark.requirement("R46")
def test_breaking_an_object_makes_no_room() -> None:
    """D46"""
    overrides = [override(number, created=number) for number in range(3)]
    before = compiled([policy("a")], overrides).ruleset
    full = sum(len(canonical_text(piece)) for piece in (*before.policies, *before.overrides))
    broken = [replace(item, spec=BROKEN) for item in overrides]
    new = [override(number, created=number) for number in range(3, 6)]
    result = compiled([policy("a")], [*broken, *new], before, document_bytes=full)
    assert all(result.overrides[f"team/o{number}"].kept for number in range(3))
    assert all(not result.overrides[f"team/o{number}"].accepted for number in range(3, 6))
