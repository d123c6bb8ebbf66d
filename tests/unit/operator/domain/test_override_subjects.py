# SPDX-License-Identifier: Apache-2.0
"""Whom an override means: names of sources as people write them, and values as limiters compare them."""

from dataclasses import replace

import pytest

from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.limits import Action
from weir_operator.domain.override_compiler import compile_override, subject_places
from weir_operator.domain.override_target import Target
from weir_operator.domain.overriding import Override
from weir_operator.domain.policy_compiler import compile_policy, sha256
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.specs import (
    ClaimSource,
    ClientIPSource,
    CookieSource,
    HeaderSource,
    HostSource,
    KeySource,
    LimitSpec,
    Meta,
    MethodSource,
    OverrideSpec,
    PathSource,
    PolicySpec,
    PrincipalSource,
    QuerySource,
    RouteSpec,
    RuleSpec,
    SubjectValue,
)

GATEWAY = Gateway(
    "edge",
    "weir",
    allowed_namespaces=frozenset({"*"}),
    hosts_default=HostsDefault.ANY,
    withheld_headers=frozenset(),
)
META = Meta("team", "x", "uid", 1, 0)
EVERYTHING: tuple[KeySource, ...] = (
    HeaderSource("X-Key"),
    CookieSource("SID"),
    QuerySource("k"),
    ClaimSource(r"realm.a\.b"),
    PathSource("Org"),
    ClientIPSource(),
    PrincipalSource(),
    HostSource(),
)


def policy(*key: KeySource) -> Policy:
    rule = RuleSpec("r", LimitSpec(5, 1_000_000), key)
    made = compile_policy(META, PolicySpec((rule,), routes=(RouteSpec("/o/{Org}/*"),)), GATEWAY)
    assert isinstance(made, Policy), made
    return made


def spec(name: str, value: str) -> OverrideSpec:
    return OverrideSpec("x", ((SubjectValue(name, value),),), Action.EXEMPT)


def compiled(name: str, value: str, *key: KeySource) -> Override | tuple[Problem, ...]:
    return compile_override(META, spec(name, value), Target(policy(*(key or EVERYTHING)), GATEWAY))


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(
    ("name", "value", "source", "hashed"),
    [
        ("x-key", "K", "header:x-key", "K"),
        ("X-KEY", "K", "header:x-key", "K"),
        ("header:X-Key", "K", "header:x-key", "K"),
        ("SID", "s=1", "cookie:SID", "s=1"),
        ("cookie:SID", "s", "cookie:SID", "s"),
        ("k", "a b", "query:k", "a b"),
        ("query:k", "ü", "query:k", "ü"),
        (r"realm.a\.b", "u1", r"claim:realm.a\.b", "u1"),
        (r"claim:realm.a\.b", "5", r"claim:realm.a\.b", "5"),
        ("Org", "AcME", "path:Org", "acme"),
        ("path:Org", "Ünï", "path:Org", "Ünï"),
        ("clientIP", "::ffff:192.0.2.1", "clientIP", "192.0.2.1"),
        ("principal", "spiffe://a/b", "principal", "spiffe://a/b"),
        ("host", "API.example.com", "host", "api.example.com"),
    ],
)
def test_a_source_is_called_by_its_own_name_or_by_kind_and_name(
    name: str, value: str, source: str, hashed: str
) -> None:
    override = compiled(name, value)
    assert isinstance(override, Override), override
    ((item,),) = override.subjects
    assert (item.source, item.sha256) == (source, sha256(hashed))


def test_a_method_is_compared_in_upper_case() -> None:
    override = compiled("method", "post", MethodSource())
    assert isinstance(override, Override)
    assert override.subjects[0][0].sha256 == sha256("POST")


FAULTS = [
    ("ambiguous", "sid", "v", (HeaderSource("sid"), CookieSource("sid")), "sid", "the one that is meant"),
    ("cookie-in-another-case", "sid", "v", (CookieSource("SID"),), "sid", "made of: cookie:SID"),
    ("unknown-kind", "body:x", "v", (), "body:x", '"cookie:sid"'),
    ("bare-word-is-the-source", "host", "a.test", (HeaderSource("x"),), "host", "made of: header:x"),
    ("cookie-value", "SID", "a;b", (), "SID", "without space"),
    ("path-value", "Org", "a/b", (), "Org", "between two slashes"),
    ("host-pattern", "host", "*.example.com", (), "host", "one host"),
    ("host-with-port", "host", "a.test:80", (), "host", "one host"),
    ("method-value", "method", "no method", (MethodSource(),), "method", "like GET"),
    ("claim-value", r"realm.a\.b", "", (), r"realm.a\.b", "counts as missing"),
    ("principal-value", "principal", "", (), "principal", "counts as missing"),
]


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(
    ("name", "value", "key", "path", "remedy"), [pytest.param(*fault[1:], id=fault[0]) for fault in FAULTS]
)
def test_a_subject_that_means_nobody_is_refused_with_path_and_remedy(
    name: str, value: str, key: tuple[KeySource, ...], path: str, remedy: str
) -> None:
    problems = compiled(name, value, *key)
    assert isinstance(problems, tuple)
    assert [problem.path for problem in problems] == [f"spec.subjects[0].{path}"]
    assert remedy in problems[0].hint


def test_a_value_that_is_refused_is_not_quoted() -> None:
    """D61"""
    for name in ("SID", "Org", "host", "clientIP"):
        assert "s3cret" not in str(compiled(name, "s3cret;/ x"))


def test_one_source_under_two_names_is_named_twice() -> None:
    both = (SubjectValue("x-key", "1"), SubjectValue("header:X-Key", "2"))
    problems = compile_override(
        META, replace(spec("x-key", "1"), subjects=(both,)), Target(policy(*EVERYTHING), GATEWAY)
    )
    assert isinstance(problems, tuple)
    assert [problem.message for problem in problems] == ["names a source twice"]


def test_each_compiled_subject_knows_its_place_in_the_spec() -> None:
    many = replace(spec("x-key", "1"), subjects=tuple((SubjectValue("x-key", str(n)),) for n in range(3)))
    override = compile_override(META, many, Target(policy(*EVERYTHING), GATEWAY))
    assert isinstance(override, Override)
    places = subject_places(many, Target(policy(*EVERYTHING), GATEWAY))
    assert [places[subject] for subject in override.subjects] == [0, 1, 2]
