# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.limits import Action, Mode
from weir_operator.domain.problems import Problem
from weir_operator.domain.specs import (
    ClientIPSource,
    HeaderSource,
    LimitPatch,
    LimitSpec,
    Meta,
    OverrideInput,
    PolicyInput,
    PolicySpec,
    RuleSpec,
    SubjectValue,
)

MANIFESTS = Path(__file__).resolve().parents[3] / "e2e" / "manifests"
METADATA = {
    "namespace": "team",
    "name": "api",
    "uid": "u-1",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
META = Meta("team", "api", "u-1", 3, 1767225600)
RULE = {"name": "burst", "limit": {"requests": 5, "period": "1s"}}
OVERRIDE = {"policyRef": {"name": "api"}, "subjects": [{"x": "1"}], "action": "Block", "permanent": True}
GATEWAY = Gateway("default", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)


def cases(name: str) -> list[Any]:
    loaded = yaml.safe_load((MANIFESTS / f"admission-{name}.yaml").read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["case"].replace(" ", "-")) for case in loaded]


def parse(kind: str, spec: Any) -> PolicyInput | OverrideInput:
    obj = {"metadata": METADATA, "spec": spec}
    return parse_policy(obj) if kind == "RateLimitPolicy" else parse_override(obj)


def problems(kind: str, spec: Any) -> list[Problem]:
    parsed = parse(kind, spec).spec
    return list(parsed) if isinstance(parsed, tuple) else []


def policy_problems(**spec: Any) -> list[str]:
    return [str(problem) for problem in problems("RateLimitPolicy", {"rules": [RULE], **spec})]


def override_problems(**spec: Any) -> list[str]:
    return [str(problem) for problem in problems("RateLimitOverride", {**OVERRIDE, **spec})]


def test_the_least_policy_gets_its_defaults() -> None:
    spec = PolicySpec((RuleSpec("burst", LimitSpec(5, 1_000_000)),))
    assert parse_policy({"metadata": METADATA, "spec": {"rules": [RULE]}}) == PolicyInput(META, "default", spec)
    assert spec.mode is Mode.SHADOW


def test_a_key_source_is_a_header_or_a_network() -> None:
    parsed = parse(
        "RateLimitPolicy", {"rules": [{**RULE, "key": [{"header": "X-A"}, {"clientIP": {"ipv4Prefix": 24}}]}]}
    )
    assert isinstance(parsed.spec, PolicySpec)
    assert parsed.spec.rules[0].key == (HeaderSource("X-A"), ClientIPSource(24, 64))


@pytest.mark.parametrize(
    ("text", "period_us"),
    [
        ("250ms", 250_000),
        ("1s", 10**6),
        ("5m", 3 * 10**8),
        ("1h30m", 54 * 10**8),
        ("0h1m0s0ms", 6 * 10**7),
        ("1m1m", 12 * 10**7),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, period_us: int) -> None:
    parsed = parse("RateLimitPolicy", {"rules": [{"name": "a", "limit": {"requests": 5, "period": text}}]})
    assert isinstance(parsed.spec, PolicySpec)
    assert parsed.spec.rules[0].limit.period_us == period_us


def test_an_override_is_read_with_its_times_and_subjects() -> None:
    spec = {
        "policyRef": {"name": "orders"},
        "rules": ["burst"],
        "subjects": [{"x-api-key": "k", "clientIP": "10.0.0.1"}, {"x-api-key": {"sha256": "ab" * 32}, "X-B": "b"}],
        "action": "Set",
        "limit": {"burst": 7, "period": "1m"},
        "startsAt": "2026-12-01T00:00:00Z",
        "expiresAt": "2026-12-01T01:00:00.5+01:00",
        "reason": "why not",
    }
    parsed = parse_override({"metadata": METADATA, "spec": {**spec, "expiresAt": "2026-12-01T02:00:00.5+01:00"}})
    assert parsed.policy_id == "team/orders"
    assert not isinstance(parsed.spec, tuple)
    assert parsed.spec.subjects == (
        (SubjectValue("x-api-key", "k"), SubjectValue("clientIP", "10.0.0.1")),
        (SubjectValue("x-api-key", "ab" * 32, hashed=True), SubjectValue("X-B", "b")),
    )
    assert (parsed.spec.action, parsed.spec.limit) == (Action.SET, LimitPatch(None, 60_000_000, 7))
    assert (parsed.spec.not_before, parsed.spec.not_after) == (1796083200, 1796086800)


def test_a_time_that_yaml_has_read_as_a_date_is_the_text_that_was_meant() -> None:
    spec = yaml.safe_load("{policyRef: {name: a}, subjects: [{x: a}], action: Block, expiresAt: 2026-12-01T00:00:00Z}")
    parsed = parse("RateLimitOverride", spec)
    assert not isinstance(parsed.spec, tuple)


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("case", cases("refused"))
def test_what_the_api_server_refuses_the_operator_refuses_too(case: dict[str, Any]) -> None:
    """D44: an object that was stored under an older CRD must not get past the operator."""
    item = parse(case["kind"], case["spec"])
    if isinstance(item, PolicyInput):
        outcome = compile_ruleset([item], [], GATEWAY, None).policies["team/api"]
    else:
        rule = RuleSpec("burst", LimitSpec(5, 10**6), (HeaderSource("x"),))
        target = PolicyInput(Meta("team", "p", "u", 1, 0), "default", PolicySpec((rule,)))
        outcome = compile_ruleset([target], [item], GATEWAY, None).overrides["team/api"]
    assert not outcome.accepted
    root = case["field"].split("[")[0]
    assert any(problem.path.startswith(root) for problem in outcome.problems), outcome.problems


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("case", cases("accepted"))
def test_what_is_meant_to_be_good_is_parsed(case: dict[str, Any]) -> None:
    assert problems(case["kind"], case["spec"]) == []


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        ("spec.mode: \"Off\" is no choice; write 'Enforce', 'Shadow' or 'Disabled'", {"mode": "Off"}),
        ("spec.gatway: is an unknown field; did you mean gateway? known: ", {"gatway": "edge"}),
        ("spec.match.host: is an unknown field; did you mean hosts? known: hosts, routes", {"match": {"host": []}}),
        ('spec.match.hosts[1]: "A.b" is malformed; write a lower-case name', {"match": {"hosts": ["a.b", "A.b"]}}),
        ("spec.match.routes[0].path: is missing; it is required", {"match": {"routes": [{}]}}),
        ("spec.match: is of the wrong type (str); write a map of fields", {"match": "all"}),
        ("spec.exempt: is of the wrong type (dict); write a list", {"exempt": {"clientIP": []}}),
        ("spec.exempt[0]: must have exactly one of clientIP and header; write one", {"exempt": [{}]}),
        ("spec.rules: has too few entries; at least 1", {"rules": []}),
        ("spec.rules: has too many entries; at most 16", {"rules": [{**RULE, "name": f"r{n}"} for n in range(17)]}),
        ("spec.rules[1]: is of the wrong type (int); write a map of fields", {"rules": [RULE, 5]}),
        (
            "spec.rules[burst].limit.requests: is of the wrong type (str); write a whole number",
            {"rules": [{"name": "burst", "limit": {"requests": "100", "period": "1s"}}]},
        ),
        (
            "spec.rules[burst].limit.requests: 0 is out of range; write a whole number, at least 1",
            {"rules": [{"name": "burst", "limit": {"requests": 0, "period": "1s"}}]},
        ),
        (
            'spec.rules[burst].limit.period: "1 min" is malformed; write a duration like 250ms, 1s, 5m or 1h30m',
            {"rules": [{"name": "burst", "limit": {"requests": 1, "period": "1 min"}}]},
        ),
        (
            "spec.rules[burst].plans.limits.gold.request: is an unknown field; did you mean requests?",
            {
                "rules": [
                    {**RULE, "plans": {"from": {"header": "p"}, "limits": {"gold": {**RULE["limit"], "request": 1}}}}
                ]
            },
        ),
        (
            'spec.response.documentation: "ftp://x" is malformed; write an https',
            {"response": {"documentation": "ftp://x"}},
        ),
    ],
)
def test_a_policy_is_criticised_in_its_authors_terms(expected: str, spec: dict[str, Any]) -> None:
    (problem,) = policy_problems(**spec)
    assert problem.startswith(expected)


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        (
            "spec.subjects[0].x: is a number or a truth value, not a text; put the value into quotes",
            {"subjects": [{"x": 5}]},
        ),
        ("spec.subjects[0].x: is neither a text nor a map with sha256", {"subjects": [{"x": {"sha256": "5"}}]}),
        ("spec.subjects[0].x: must have 1 to 4096 characters", {"subjects": [{"x": ""}]}),
        ("spec.subjects[0]: has too few entries; at least 1", {"subjects": [{}]}),
        ("spec: must have exactly one of expiresAt and permanent: true; give it an end", {"permanent": False}),
        ("spec.startsAt: is no date and time; write RFC 3339", {"startsAt": "2026-13-01T00:00:00Z"}),
        ('spec.startsAt: "today" is malformed; write RFC 3339', {"startsAt": "today"}),
        ("spec.policyRef.name: is missing", {"policyRef": {}}),
        ("spec.permanent: is of the wrong type (str); write true or false", {"permanent": "yes"}),
    ],
)
def test_an_override_is_criticised_in_its_authors_terms(expected: str, spec: dict[str, Any]) -> None:
    (problem,) = override_problems(**spec)
    assert problem.startswith(expected)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = policy_problems(
        mode="Off", match={"hosts": ["A"]}, rules=[{"name": "A", "limit": {"requests": 0, "burst": 0}}]
    )
    assert len(found) == 5


def test_a_value_that_may_be_a_secret_is_never_quoted() -> None:
    """D61"""
    secret = "s3cret\ud83d" * 2
    texts = [
        *override_problems(subjects=[{"x": {"sha256": "s3cret"}}, {"x": "s3cret" * 1000}, {"x": ["s3cret"]}]),
        *policy_problems(exempt=[{"header": {"name": "x", "in": ["s3cret" * 1000, {"s3cret": 1}, secret]}}]),
    ]
    assert texts
    assert not any("s3cret" in text for text in texts)


words = st.sampled_from(["rules", "name", "limit", "subjects", "match", "x", "gateway", "policyRef"]) | st.text()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
)


@given(json_values, json_values)
def test_nothing_that_a_user_can_write_raises(metadata: Any, spec: Any) -> None:
    for parse_any in (parse_policy, parse_override):
        for obj in (
            {},
            {"metadata": metadata},
            {"metadata": metadata, "spec": spec},
            {"metadata": METADATA, "spec": spec},
        ):
            parsed = parse_any(obj)
            assert isinstance(parsed.spec, tuple) or spec


def test_a_malformed_parameter_of_a_key_is_not_taken_for_a_route() -> None:
    found = problems("RateLimitPolicy", {"rules": [{**RULE, "key": [{"path": "{org}"}]}]})
    assert [str(problem) for problem in found] == [
        'spec.rules[burst].key[0].path: "{org}" is malformed; write the name of a route\'s parameter, like org'
    ]
    (found,) = problems("RateLimitPolicy", {"rules": [RULE], "match": {"routes": [{"path": "x"}]}})
    assert found.hint == 'write a path that starts with "/"'
