# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.algorithms import FixedWindow, TokenBucket
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Scope, Visibility
from weir_operator.domain.modes import Slot, Stage, Switch
from weir_operator.domain.ruleset import AddressExempt, Cost, Match, Plans, Policy, Response, Route, Rule, Ruleset
from weir_operator.domain.sources import HeaderKey
from weir_operator.domain.versions import rule_version, upgraded, with_versions

BUCKET = TokenBucket(100, 1_000_000, 200)
RULE = Rule(
    name="burst",
    mode=Mode.ENFORCE,
    key=(HeaderKey("x-api-key"),),
    on_missing_key=MissingKey.SKIP,
    limit=BUCKET,
    plans=Plans(HeaderKey("x-plan"), {"gold": TokenBucket(1000, 1_000_000, 2000)}),
    cost=(Cost(Route("/exports", ("POST",)), 10),),
    on_store_failure=FailureMode.OPEN,
    visibility=Visibility.PUBLIC,
    code="rate_limited",
)
POLICY = Policy(
    "team/api", 7, Match(("api.example.com",), (Route("/v1/*", ()),)), (), (RULE,), Response(Dialect.RATE_LIMIT, None)
)


@pytest.mark.requirement("R43")
def test_a_version_is_the_same_in_every_release() -> None:
    assert rule_version(RULE, POLICY) == "6e575f7689ee"


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    "change",
    [
        {"key": (HeaderKey("x-user"),)},
        {"key": ()},
        {"on_missing_key": MissingKey.DENY},
        {"limit": TokenBucket(100, 1_000_000, 201)},
        {"limit": TokenBucket(101, 1_000_000, 200)},
        {"limit": TokenBucket(100, 2_000_000, 200)},
        {"limit": FixedWindow(100, 1_000_000)},
        {"plans": None},
        {"plans": Plans(HeaderKey("x-tier"), {"gold": TokenBucket(1000, 1_000_000, 2000)})},
        {"plans": Plans(HeaderKey("x-plan"), {"gold": TokenBucket(1000, 1_000_000, 2001)})},
        {"cost": ()},
        {"cost": (Cost(Route("/exports", ("POST",)), 11),)},
        {"scope": Scope.INSTANCE},
    ],
)
def test_a_version_changes_with_whatever_changes_who_is_refused(change: dict[str, Any]) -> None:
    assert rule_version(replace(RULE, **change), POLICY) != rule_version(RULE, POLICY)


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    "change",
    [
        {"match": Match((), (Route("/v1/*", ()),))},
        {"match": Match(("api.example.com",), (Route("/v2/*", ()),))},
        {"exempt": (AddressExempt(("10.0.0.0/8",)),)},
    ],
)
def test_a_version_changes_with_the_requests_that_the_rule_sees(change: dict[str, Any]) -> None:
    assert rule_version(RULE, replace(POLICY, **change)) != rule_version(RULE, POLICY)


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    "change",
    [
        {"mode": Mode.SHADOW},
        {"stage": Stage(Mode.SHADOW, ("gold",), 10)},
        {"switches": (Switch(Mode.DISABLED, 5),)},
        {"slot": Slot.B},
        {"version": "000000000000"},
        {"name": "other"},
        {"code": "slow_down"},
        {"visibility": Visibility.SILENT},
        {"on_store_failure": FailureMode.CLOSED},
        {"on_store_failure": FailureMode.LOCAL, "local_factor_milli": 500},
    ],
)
def test_evidence_survives_what_does_not_change_who_is_refused(change: dict[str, Any]) -> None:
    assert rule_version(replace(RULE, **change), POLICY) == rule_version(RULE, POLICY)


@pytest.mark.requirement("R43")
def test_evidence_survives_other_rules_and_another_generation() -> None:
    other = replace(POLICY, generation=8, rules=(replace(RULE, name="new"), RULE))
    assert rule_version(RULE, other) == rule_version(RULE, POLICY)


@pytest.mark.requirement("R43")
def test_every_rule_has_its_version_also_one_that_the_version_before_has_written() -> None:
    expected = replace(POLICY, rules=(replace(RULE, version=rule_version(RULE, POLICY)),))
    assert with_versions(POLICY) == expected
    assert upgraded(Ruleset("edge", (POLICY,))) == Ruleset("edge", (expected,))
