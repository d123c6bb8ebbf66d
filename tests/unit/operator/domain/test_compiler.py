# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from weir_operator.domain.compiler import Compiled, compile_ruleset
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import Action, Algorithm
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.ruleset import (
    Ruleset,
)
from weir_operator.domain.specs import (
    CostSpec,
    HeaderSource,
    LimitPatch,
    LimitSpec,
    Meta,
    OverrideInput,
    OverrideSpec,
    PolicyInput,
    PolicySpec,
    RouteSpec,
    RuleSpec,
    SubjectValue,
)

GATEWAY = Gateway(
    "edge",
    "weir-system",
    allowed_namespaces=frozenset({"a", "b"}),
    hosts={"a": ("a.test", "*.a.test"), "b": ("*",)},
)
BROKEN = (invalid("spec.rules", "is missing"),)
RULE = RuleSpec("burst", LimitSpec(100, 1_000_000), (HeaderSource("x-api-key"),))
SUBJECT = ((SubjectValue("x-api-key", "k1"),),)


def policy(
    name: str = "api", spec: PolicySpec | tuple[Problem, ...] | None = None, *, generation: int = 1
) -> PolicyInput:
    return PolicyInput(Meta("a", name, "uid", generation, 0), "edge", PolicySpec((RULE,)) if spec is None else spec)


def override(
    name: str = "vip", spec: OverrideSpec | tuple[Problem, ...] | None = None, *, target: str = "api", created: int = 0
) -> OverrideInput:
    default = OverrideSpec(target, SUBJECT, Action.EXEMPT)
    return OverrideInput(Meta("a", name, "uid", 1, created), target, default if spec is None else spec)


def compiled(
    policies: list[PolicyInput],
    overrides: list[OverrideInput] | None = None,
    previous: Ruleset | None = None,
    gateway: Gateway = GATEWAY,
) -> Compiled:
    return compile_ruleset(policies, overrides or [], gateway, previous)


FIRST = compiled([policy()], [override()]).ruleset


def test_accepted_objects_are_in_the_ruleset_and_have_no_problems() -> None:
    result = compiled([policy("b"), policy("a")], [override(target="a")])
    assert [piece.id for piece in result.ruleset.policies] == ["a/a", "a/b"]
    assert [piece.id for piece in result.ruleset.overrides] == ["a/vip"]
    assert all(outcome.accepted for outcome in [*result.policies.values(), *result.overrides.values()])


@pytest.mark.requirement("R45")
def test_after_a_bad_edit_the_last_accepted_version_stays() -> None:
    """D44"""
    result = compiled([policy(spec=BROKEN, generation=2)], [override()], FIRST)
    assert result.ruleset == FIRST
    outcome = result.policies["a/api"]
    assert (outcome.problems, outcome.kept, outcome.kept_generation) == (BROKEN, True, 1)
    assert result.overrides["a/vip"].accepted


def test_a_bad_new_policy_stays_out() -> None:
    result = compiled([policy(spec=BROKEN)])
    assert result.ruleset.policies == ()
    assert not result.policies["a/api"].kept


def test_the_last_accepted_version_goes_when_the_gateway_no_longer_allows_its_hosts() -> None:
    for gateway in (replace(GATEWAY, hosts={"a": ("other.test",)}), replace(GATEWAY, allowed_namespaces=frozenset())):
        result = compiled([policy(spec=BROKEN, generation=2)], [], FIRST, gateway)
        assert result.ruleset.policies == ()


def test_a_version_for_every_host_is_not_kept_once_the_namespace_is_restricted() -> None:
    everywhere = compiled([policy()], [], None, replace(GATEWAY, hosts={"a": ("*",)})).ruleset
    result = compiled([policy(spec=BROKEN, generation=2)], [], everywhere)
    assert result.ruleset.policies == ()


def test_the_last_accepted_version_goes_when_its_header_is_withheld() -> None:
    gateway = replace(GATEWAY, withheld_headers=frozenset({"x-api-key"}))
    result = compiled([policy()], [], FIRST, gateway)
    assert result.ruleset.policies == ()
    assert [problem.path for problem in result.policies["a/api"].problems] == ["spec.rules[burst].key[0].header"]


def test_the_last_accepted_version_stays_when_its_gateway_holds_requests_for_less_long() -> None:
    """The limiter refuses who would wait too long; without a version, the policy's other rules would go as well."""
    leaky = LimitSpec(100, 1_000_000, algorithm=Algorithm.LEAKY_BUCKET, queue=5, max_delay_us=400_000)
    queued = policy(spec=PolicySpec((RULE, replace(RULE, name="even", limit=leaky))))
    longer = override(spec=OverrideSpec("api", SUBJECT, Action.SET, rules=("even",), limit=LimitPatch(queue=9)))
    holding = replace(GATEWAY, max_delay_ms=500)
    before = compiled([queued], [longer], None, holding).ruleset
    for shorter in (replace(holding, max_delay_ms=300), replace(holding, max_delay_ms=0)):
        result = compiled([queued], [longer], before, shorter)
        assert not result.policies["a/api"].accepted
        assert not result.overrides["a/vip"].accepted
        assert result.ruleset == before


def test_a_version_of_an_earlier_object_of_the_same_name_is_not_kept() -> None:
    earlier = compiled([policy(generation=9)]).ruleset
    result = compiled([policy(spec=BROKEN, generation=1)], [], earlier)
    assert result.ruleset.policies == ()


def test_a_deleted_policy_leaves_with_its_overrides_told_so() -> None:
    """D53"""
    result = compiled([], [override()], FIRST)
    assert result.ruleset == Ruleset("edge")
    (problem,) = result.overrides["a/vip"].problems
    assert problem.reason is Reason.POLICY_NOT_FOUND


def test_override_for_unknown_policy_is_reported_and_ignored() -> None:
    result = compiled([policy("orders")], [override(target="order")])
    (problem,) = result.overrides["a/vip"].problems
    assert (problem.path, problem.reason) == ("spec.policyRef.name", Reason.POLICY_NOT_FOUND)
    assert "did you mean orders?" in problem.hint


def test_an_override_of_a_policy_in_another_namespace_is_not_found() -> None:
    foreign = PolicyInput(Meta("b", "api", "uid", 1, 0), "edge", PolicySpec((RULE,)))
    (problem,) = compiled([foreign], [override()]).overrides["a/vip"].problems
    assert problem.reason is Reason.POLICY_NOT_FOUND


def test_an_override_of_a_policy_that_runs_nowhere_is_conflicted() -> None:
    (problem,) = compiled([policy(spec=BROKEN)], [override()]).overrides["a/vip"].problems
    assert problem.reason is Reason.CONFLICTED


def test_after_a_bad_edit_of_an_override_the_last_accepted_version_stays() -> None:
    """D44"""
    result = compiled([policy()], [override(spec=BROKEN)], FIRST)
    assert result.ruleset == FIRST
    assert result.overrides["a/vip"].kept
    assert result.overrides["a/vip"].problems == BROKEN


def test_an_override_whose_numbers_no_longer_fit_its_policy_goes_and_says_so() -> None:
    """D44, D03: the policy's edit counts; the override must not make limiters refuse the whole document."""
    smaller = override(spec=OverrideSpec("api", SUBJECT, Action.SET, limit=LimitPatch(burst=5)))
    before = compiled([policy()], [smaller])
    assert before.overrides["a/vip"].accepted
    dearer = policy(spec=PolicySpec((replace(RULE, cost=(CostSpec(RouteSpec("/x"), 10),)),)), generation=2)
    after = compiled([dearer], [smaller], before.ruleset)
    assert after.policies["a/api"].accepted
    assert after.ruleset.overrides == ()
    assert [problem.path for problem in after.overrides["a/vip"].problems] == ["spec.limit.burst"]


def test_an_override_of_a_renamed_rule_goes_and_says_so() -> None:
    named = override(spec=OverrideSpec("api", SUBJECT, Action.EXEMPT, rules=("burst",)))
    before = compiled([policy()], [named]).ruleset
    renamed = policy(spec=PolicySpec((replace(RULE, name="peak"),)), generation=2)
    after = compiled([renamed], [named], before)
    assert after.ruleset.overrides == ()
    assert [problem.path for problem in after.overrides["a/vip"].problems] == ["spec.rules[0]"]


def test_a_policy_of_another_gateway_is_told_which_gateway_this_is() -> None:
    stranger = replace(policy(), gateway="egde")
    (problem,) = compiled([stranger]).policies["a/api"].problems
    assert problem.reason is Reason.UNKNOWN_GATEWAY
    assert "did you mean edge?" in problem.hint


@pytest.mark.requirement("R15")
def test_the_newer_of_two_equal_overrides_wins_and_the_older_is_told() -> None:
    result = compiled([policy()], [override("old", created=1), override("new", created=2)])
    assert [piece.id for piece in result.ruleset.overrides] == ["a/new", "a/old"]
    assert result.overrides["a/old"].notes == ('spec.subjects[0]: for rule "burst" the newer override "a/new" wins',)
    assert result.overrides["a/old"].accepted
    assert result.overrides["a/new"].notes == ()
