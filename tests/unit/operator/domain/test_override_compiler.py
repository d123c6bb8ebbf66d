# SPDX-License-Identifier: Apache-2.0
import ipaddress
from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.limits import Action, Algorithm
from weir_operator.domain.override_compiler import compile_override
from weir_operator.domain.override_subjects import network_text, parse_address
from weir_operator.domain.override_target import Target
from weir_operator.domain.overriding import NewLimit, Override, Subject
from weir_operator.domain.policy_compiler import compile_policy, sha256
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.specs import (
    ClientIPSource,
    CostSpec,
    HeaderSource,
    LimitPatch,
    LimitSpec,
    Meta,
    OverrideSpec,
    PlansSpec,
    PolicySpec,
    RouteSpec,
    RuleSpec,
    SubjectValue,
)

META = Meta("team", "import", "uid", 1, 0)
RULES = (
    RuleSpec(
        "burst",
        LimitSpec(100, 1_000_000, 200),
        (HeaderSource("x-api-key"), ClientIPSource(24, 64)),
        plans=PlansSpec(HeaderSource("x-plan"), (("free", LimitSpec(10, 1_000_000)),)),
        cost=(CostSpec(RouteSpec("/dear"), 10),),
    ),
    RuleSpec("address", LimitSpec(7, 1_000_000), (ClientIPSource(32, 128),)),
    RuleSpec("capacity", LimitSpec(1000, 1_000_000)),
)


GATEWAY = Gateway(
    "edge",
    "weir",
    allowed_namespaces=frozenset({"*"}),
    hosts_default=HostsDefault.ANY,
    withheld_headers=frozenset(),
    max_delay_ms=100,
)


def policy(*rules: RuleSpec, routes: tuple[RouteSpec, ...] = ()) -> Policy:
    spec = PolicySpec(rules or RULES, routes=routes)
    made = compile_policy(Meta("team", "api", "u", 3, 0), spec, GATEWAY)
    assert isinstance(made, Policy)
    return made


def subject(**values: str) -> tuple[SubjectValue, ...]:
    return tuple(SubjectValue(source.replace("_", "-"), value) for source, value in values.items())


SPEC = OverrideSpec("api", (subject(X_Api_Key="k1"),), Action.EXEMPT)


def compiled(spec: OverrideSpec, against: Policy | None = None) -> Override:
    override = compile_override(META, spec, Target(against or policy(), GATEWAY))
    assert isinstance(override, Override), override
    return override


def setting(**numbers: Any) -> OverrideSpec:
    return replace(SPEC, action=Action.SET, limit=LimitPatch(**numbers))


def multiplying(factor: str) -> OverrideSpec:
    return replace(SPEC, action=Action.MULTIPLY, factor=factor)


FAULTS = [
    ("unknown-rule", replace(SPEC, rules=("brust",)), "spec.rules[0]", "did you mean burst?"),
    ("no-subjects", replace(SPEC, subjects=()), "spec.subjects", "at least one"),
    ("empty-subject", replace(SPEC, subjects=((),)), "spec.subjects[0]", "{source: value}"),
    ("source-twice", replace(SPEC, subjects=(subject(x="1", X="2"),)), "spec.subjects[0]", "without case"),
    (
        "uneven-subjects",
        replace(SPEC, subjects=(subject(x_api_key="1"), subject(x_api_key="1", clientIP="10.0.0.1"))),
        "spec.subjects[1]",
        "two overrides",
    ),
    ("bad-source", replace(SPEC, subjects=((SubjectValue("x y", "1"),),)), "spec.subjects[0].x y", "cookie:sid"),
    (
        "empty-value",
        replace(SPEC, subjects=(subject(x_api_key=""),)),
        "spec.subjects[0].x-api-key",
        "counts as missing",
    ),
    (
        "bad-hash",
        replace(SPEC, subjects=((SubjectValue("x-api-key", "12", hashed=True),),)),
        "spec.subjects[0].x-api-key.sha256",
        "64 hexadecimal digits",
    ),
    (
        "bad-address",
        replace(SPEC, subjects=(subject(clientIP="10.0.0.0/8"),)),
        "spec.subjects[0].clientIP",
        "one address",
    ),
    (
        "zoned-address",
        replace(SPEC, subjects=(subject(clientIP="fe80::1%1"),)),
        "spec.subjects[0].clientIP",
        "one address",
    ),
    (
        "foreign-source",
        replace(SPEC, subjects=(subject(x_user="1"),)),
        "spec.subjects[0].x-user",
        "clientIP, header:x-api-key",
    ),
    (
        "source-of-another-rule",
        replace(SPEC, rules=("address",)),
        "spec.subjects[0].X-Api-Key",
        "made of: clientIP",
    ),
    (
        "rule-that-no-subject-fits",
        replace(SPEC, rules=("burst", "address")),
        "spec.rules[1]",
        "clientIP",
    ),
    ("rule-without-key", replace(SPEC, rules=("capacity",)), "spec.subjects[0].X-Api-Key", "one counter for everybody"),
    ("set-without-limit", replace(SPEC, action=Action.SET), "spec.limit", "at least one of"),
    ("set-with-nothing", setting(), "spec.limit", "at least one of"),
    ("limit-without-set", replace(SPEC, limit=LimitPatch(burst=1)), "spec.limit", "action: Set"),
    ("multiply-without-factor", replace(SPEC, action=Action.MULTIPLY), "spec.factor", '"2.5"'),
    ("factor-without-multiply", replace(SPEC, factor="2"), "spec.factor", "action: Multiply"),
    ("factor-of-nothing", multiplying("0.000"), "spec.factor", '"0.001" to "1000"'),
    ("factor-too-large", multiplying("1000.001"), "spec.factor", '"0.001" to "1000"'),
    ("factor-too-fine", multiplying("1.2345"), "spec.factor", '"0.001" to "1000"'),
    ("factor-in-another-form", multiplying("1e3"), "spec.factor", '"0.001" to "1000"'),
    ("burst-times-factor-below-cost", multiplying("0.5"), "spec.factor", "a larger factor"),
    ("queue-of-a-token-bucket", setting(queue=1), "spec.limit.queue", "only rules that have it"),
    ("never", replace(SPEC, not_before=5, not_after=5), "spec.startsAt", "swap"),
    ("burst-below-cost", setting(burst=9), "spec.limit.burst", "at least 10"),
    ("inexact", setting(requests=7, period_us=10**12, burst=10**6), "spec.limit.burst", "at most"),
    ("zero-requests", setting(requests=-1, burst=10), "spec.limit.requests", "from 1"),
]


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(("spec", "path", "remedy"), [pytest.param(*fault[1:], id=fault[0]) for fault in FAULTS])
def test_a_fault_is_named_with_its_path_and_what_would_be_right(spec: OverrideSpec, path: str, remedy: str) -> None:
    """D03, D12, D68: also through an override."""
    problems = compile_override(META, spec, Target(policy(), GATEWAY))
    assert isinstance(problems, tuple)
    assert {path} == {problem.path for problem in problems}
    assert remedy in problems[0].hint


@pytest.mark.parametrize("value", ["s3cret ", "s3cret\n"])
def test_a_bad_value_is_not_quoted_since_it_may_be_a_secret(value: str) -> None:
    """D61"""
    problems = compile_override(META, replace(SPEC, subjects=(subject(x_api_key=value),)), Target(policy(), GATEWAY))
    assert "s3cret" not in str(problems)


@pytest.mark.requirement("R15")
def test_without_rules_it_is_for_every_rule_that_the_subjects_fit() -> None:
    assert compiled(SPEC).rules == ("burst",)
    assert compiled(replace(SPEC, subjects=(subject(clientIP="10.0.0.1"),))).rules == ("burst", "address")


def test_values_are_hashed_and_given_hashes_are_kept() -> None:
    """D61"""
    assert compiled(SPEC).subjects == ((Subject("header:x-api-key", sha256("k1")),),)
    given = replace(SPEC, subjects=((SubjectValue("x-api-key", "AB" * 32, hashed=True),),))
    assert compiled(given).subjects == ((Subject("header:x-api-key", "ab" * 32),),)


def test_an_address_is_hashed_in_the_form_in_which_each_rule_counts_it() -> None:
    """D24: a rule that counts networks knows the address by its network."""
    spec = replace(SPEC, subjects=(subject(clientIP="203.0.113.7"),))
    assert compiled(spec).subjects == (
        (Subject("clientIP", sha256("203.0.113.0/24")),),
        (Subject("clientIP", sha256("203.0.113.7")),),
    )


def test_the_sources_of_a_subject_are_sorted() -> None:
    spec = replace(SPEC, subjects=(subject(x_api_key="k", clientIP="10.1.2.3"),))
    assert [item.source for item in compiled(spec).subjects[0]] == ["clientIP", "header:x-api-key"]


def test_an_end_before_all_time_stays_a_time_span_that_a_limiter_takes() -> None:
    assert compiled(replace(SPEC, not_after=0)).not_after == 1


def test_a_set_override_replaces_only_the_numbers_that_it_names() -> None:
    override = compiled(setting(requests=500))
    assert override.limit == NewLimit(500, None, None)
    assert override.limit.over(policy().rules[0].limit) == TokenBucket(500, 1_000_000, 200)


def test_a_set_override_is_checked_in_every_plan() -> None:
    """The plan `free` has a burst of 10; a period that is fine for the rule's own limit can be too fine for it."""
    spec = setting(burst=10**12, requests=7)
    problems = compile_override(META, spec, Target(policy(), GATEWAY))
    assert isinstance(problems, tuple)
    assert any('plan "free"' in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("text", "bits", "canonical"),
    [
        ("203.0.113.7", 32, "203.0.113.7"),
        ("203.0.113.7", 24, "203.0.113.0/24"),
        ("203.0.113.7", 0, "0.0.0.0/0"),
        ("2001:0DB8:0:0::1", 128, "2001:db8::1"),
        ("2001:db8:1:2:3::1", 64, "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", 32, "203.0.113.7"),
        ("::ffff:203.0.113.7", 24, "203.0.113.0/24"),
    ],
)
def test_an_address_has_one_canonical_text(text: str, bits: int, canonical: str) -> None:
    """D24, D25: IPv4-mapped addresses are IPv4."""
    address = parse_address(text)
    assert isinstance(address, ipaddress.IPv4Address | ipaddress.IPv6Address)
    assert network_text(address, bits) == canonical


@pytest.mark.requirement("R15")
def test_a_factor_stands_in_the_document_in_thousandths() -> None:
    override = compiled(replace(multiplying("2.5"), rules=("burst",)))
    assert (override.action, override.factor_milli, override.limit) == (Action.MULTIPLY, 2500, None)
    assert override.over(policy().rules[0].limit) == TokenBucket(250, 1_000_000, 500)


def test_a_queue_of_nobody_takes_the_longest_wait_with_it() -> None:
    leaky = LimitSpec(100, 1_000_000, algorithm=Algorithm.LEAKY_BUCKET, queue=5, max_delay_us=100_000)
    against = policy(RuleSpec("even", leaky, (HeaderSource("x-api-key"),)))
    assert compiled(setting(queue=0), against).limit == NewLimit(queue=0, max_delay_us=0)
    problems = compile_override(META, setting(queue=0, max_delay_us=5), Target(against, GATEWAY))
    assert isinstance(problems, tuple)
    assert [problem.path for problem in problems] == ["spec.limit.maxDelay"]


def test_a_queue_that_the_algorithm_lacks_is_the_only_fault_of_a_queue_of_nobody() -> None:
    problems = compile_override(META, replace(setting(queue=0), rules=("burst",)), Target(policy(), GATEWAY))
    assert isinstance(problems, tuple)
    assert {problem.path for problem in problems} == {"spec.limit.queue"}
