# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

from weir_operator.domain.attachment import Attachment, attach
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.limits import Action
from weir_operator.domain.problems import invalid
from weir_operator.domain.ruleset import Ruleset
from weir_operator.domain.specs import (
    HeaderSource,
    LimitSpec,
    Meta,
    OverrideInput,
    OverrideSpec,
    PolicyInput,
    PolicySpec,
    RuleSpec,
    SubjectValue,
)

EDGE, INNER = (
    Gateway(name, "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
    for name in ("edge", "inner")
)
SPEC = PolicySpec((RuleSpec("burst", LimitSpec(1, 1_000_000), (HeaderSource("x"),)),))
POLICY = PolicyInput(Meta("a", "api", "uid", 1, 0), "edge", SPEC)
OVERRIDE = OverrideInput(
    Meta("a", "vip", "uid", 1, 0), "api", OverrideSpec("api", ((SubjectValue("x", "1"),),), Action.EXEMPT)
)
BROKEN = (invalid("spec", "is broken"),)
LIVE = {"edge": compile_ruleset([POLICY], [OVERRIDE], EDGE, None).ruleset, "inner": Ruleset("inner")}


def attached(policy: PolicyInput | None, override: OverrideInput | None, previous: dict[str, Ruleset]) -> Attachment:
    return attach([policy] if policy else [], [override] if override else [], [INNER, EDGE], previous)


def test_a_policy_belongs_to_the_gateway_that_it_names_and_brings_its_overrides() -> None:
    result = attached(POLICY, OVERRIDE, {})
    assert list(result.groups) == ["edge", "inner"]
    assert (result.groups["edge"].policies, result.groups["edge"].overrides) == ((POLICY,), (OVERRIDE,))
    assert result.groups["inner"].policies == ()
    assert (result.policies, result.overrides) == ({}, {})


def test_a_policy_of_an_unknown_gateway_is_told_which_gateways_exist() -> None:
    result = attached(replace(POLICY, gateway="egde"), OVERRIDE, {})
    (problem,) = result.policies["a/api"].problems
    assert (problem.path, problem.reason) == ("spec.gateway", Reason.UNKNOWN_GATEWAY)
    assert problem.hint == "did you mean edge? known: edge, inner"
    (problem,) = result.overrides["a/vip"].problems
    assert problem.reason is Reason.CONFLICTED


def test_a_typo_in_the_gateway_does_not_end_a_running_policy() -> None:
    """D44: the limit stays where it is until the policy names a gateway again."""
    group = attached(replace(POLICY, gateway="egde"), OVERRIDE, LIVE).groups["edge"]
    result = compile_ruleset(group.policies, group.overrides, EDGE, LIVE["edge"])
    assert result.ruleset == LIVE["edge"]
    assert result.policies["a/api"].kept
    assert result.policies["a/api"].problems[0].reason is Reason.UNKNOWN_GATEWAY
    assert result.overrides["a/vip"].accepted


def test_a_policy_moves_when_it_names_another_gateway() -> None:
    result = attached(replace(POLICY, gateway="inner"), OVERRIDE, LIVE)
    assert result.groups["edge"].policies == ()
    assert [policy.meta.id for policy in result.groups["inner"].policies] == ["a/api"]
    assert [override.meta.id for override in result.groups["inner"].overrides] == ["a/vip"]


def test_an_unreadable_gateway_has_only_the_problem_that_it_has() -> None:
    result = attached(replace(POLICY, gateway="", spec=BROKEN), None, {})
    assert result.policies["a/api"].problems == BROKEN


def test_an_override_of_no_policy_is_told_so() -> None:
    (problem,) = attached(POLICY, replace(OVERRIDE, policy="apo"), {}).overrides["a/vip"].problems
    assert (problem.path, problem.reason) == ("spec.policyRef.name", Reason.POLICY_NOT_FOUND)
    assert "did you mean api?" in problem.hint


def test_a_typo_in_the_policy_does_not_end_a_running_override() -> None:
    group = attached(POLICY, replace(OVERRIDE, policy="apo"), LIVE).groups["edge"]
    result = compile_ruleset(group.policies, group.overrides, EDGE, LIVE["edge"])
    assert result.ruleset == LIVE["edge"]
    assert result.overrides["a/vip"].kept


def test_an_override_goes_with_its_deleted_policy() -> None:
    """D53"""
    group = attached(None, OVERRIDE, LIVE).groups["edge"]
    result = compile_ruleset(group.policies, group.overrides, EDGE, LIVE["edge"])
    assert result.ruleset == Ruleset("edge")
    assert result.overrides["a/vip"].problems[0].reason is Reason.POLICY_NOT_FOUND


def test_the_ruleset_of_a_gateway_that_is_gone_keeps_nothing() -> None:
    result = attach([replace(POLICY, gateway="old")], [], [INNER], {"old": LIVE["edge"]})
    assert result.policies["a/api"].problems[0].reason is Reason.UNKNOWN_GATEWAY
