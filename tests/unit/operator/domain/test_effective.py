# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.effective import effective_policy, next_expiry, unknown_rules
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.interventions import ALL_RULES, KillSwitch
from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import Switch
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.specs import LimitSpec, Meta, PolicyInput, PolicySpec, RuleSpec

pytestmark = pytest.mark.requirement("R42")

GATEWAY = Gateway("edge", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
RULES = tuple(RuleSpec(name, LimitSpec(1, 1_000_000)) for name in ("burst", "monthly"))
INPUT = PolicyInput(Meta("a", "api", "uid", 1, 0), "edge", PolicySpec(RULES, Mode.ENFORCE))
(POLICY,) = compile_ruleset([INPUT], [], GATEWAY, None).ruleset.policies
OFF = KillSwitch(Mode.DISABLED, 100)


def switches(policy: Policy) -> list[tuple[Switch, ...] | None]:
    return [rule.switches for rule in policy.rules]


def test_a_policy_that_nobody_switched_off_stays_the_same_object() -> None:
    assert effective_policy(POLICY, {}, 0) is POLICY
    assert effective_policy(POLICY, {"other": OFF}, 0) is POLICY


def test_a_switch_reaches_its_rule_with_its_end_and_no_other() -> None:
    assert switches(effective_policy(POLICY, {"burst": OFF}, 99.9)) == [(Switch(Mode.DISABLED, 100),), None]


def test_a_switch_on_all_rules_stands_beside_a_rules_own() -> None:
    both = {ALL_RULES: KillSwitch(Mode.SHADOW), "burst": OFF}
    assert switches(effective_policy(POLICY, both, 0)) == [
        (Switch(Mode.DISABLED, 100), Switch(Mode.SHADOW)),
        (Switch(Mode.SHADOW),),
    ]
    same = {ALL_RULES: OFF, "burst": OFF}
    assert switches(effective_policy(POLICY, same, 0)) == [(Switch(Mode.DISABLED, 100),)] * 2


def test_a_switch_has_no_effect_from_its_end_on() -> None:
    assert effective_policy(POLICY, {"burst": OFF}, 100) is POLICY


def test_switches_of_the_version_that_runs_do_not_outlive_their_entries() -> None:
    """The last accepted version is read back from what was published, switches and all."""
    published = effective_policy(POLICY, {"burst": OFF}, 0)
    assert effective_policy(published, {}, 0) == POLICY
    assert switches(effective_policy(published, {"monthly": OFF}, 0)) == [None, (Switch(Mode.DISABLED, 100),)]


def test_both_entries_of_one_name_are_switched() -> None:
    twice = replace(POLICY, rules=(POLICY.rules[0], POLICY.rules[0]))
    assert switches(effective_policy(twice, {"burst": OFF}, 0)) == [(Switch(Mode.DISABLED, 100),)] * 2


def test_the_next_expiry_is_that_of_the_first_live_switch_with_an_end() -> None:
    assert next_expiry({}, 0) is None
    assert next_expiry({"a": KillSwitch(Mode.SHADOW)}, 0) is None
    assert next_expiry({"a": KillSwitch(Mode.SHADOW, 7), "b": OFF, "c": KillSwitch(Mode.SHADOW, 200)}, 7) == 100


def test_names_that_mean_no_rule_are_found() -> None:
    assert unknown_rules(POLICY, {"monthly": 1, "*": 1, "brust": 1, "a": 1}) == ("a", "brust")
