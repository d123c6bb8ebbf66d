# SPDX-License-Identifier: Apache-2.0
"""What the compiler promises for every input: order is nothing, no object harms another, limiters take the result."""

import json
import random
from dataclasses import replace

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_operator.domain.algorithms import Limit, check_limit
from weir_operator.domain.compiler import Compiled, compile_ruleset
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import Action, Algorithm, Calendar, Mode, Scope
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.ruleset import (
    Cost,
    Rule,
    Ruleset,
    document_schema,
    parse_document,
    publish,
    to_bytes,
)
from weir_operator.domain.specs import (
    AddressExemption,
    ClaimSource,
    ClientIPSource,
    CookieSource,
    CostSpec,
    HeaderExemption,
    HeaderSource,
    HostSource,
    LimitPatch,
    LimitSpec,
    Meta,
    MethodSource,
    OverrideInput,
    OverrideSpec,
    PathSource,
    PlansSpec,
    PolicyInput,
    PolicySpec,
    PrincipalSource,
    QuerySource,
    RouteSpec,
    RuleSpec,
    SubjectValue,
)

GATEWAY = Gateway(
    "edge",
    "weir-system",
    allowed_namespaces=frozenset({"a", "b"}),
    hosts={"a": ("a.test", "*.a.test"), "b": ("*",)},
    max_delay_ms=1,
)
BROKEN = (invalid("spec.rules", "is missing"),)


def compiled(policies: list[PolicyInput], overrides: list[OverrideInput], previous: Ruleset | None = None) -> Compiled:
    return compile_ruleset(policies, overrides, GATEWAY, previous)


names = st.sampled_from(["burst", "daily", "peak"])
counts = st.one_of(st.integers(-1, 20), st.sampled_from([10**6, 10**12, 10**13]))
periods = st.sampled_from([0, 999, 1_000, 1_000_000, 999_983, 86_400_000_000, 10**15])
limits = st.one_of(
    st.builds(LimitSpec, counts, periods, st.none() | counts),
    st.builds(
        LimitSpec,
        counts,
        st.none() | periods,
        algorithm=st.sampled_from(Algorithm),
        queue=st.none() | st.integers(-1, 9),
        max_delay_us=st.none() | periods,
        calendar=st.none() | st.sampled_from(Calendar),
        time_zone=st.sampled_from([None, "UTC", "Europe/Berlin", "Mars/Olympus"]),
    ),
)
headers = st.sampled_from(["x-api-key", "X-User", "cookie", "no token", "host", ""])
values = st.sampled_from(["k1", "k2", "", " pad", "ü", "203.0.113.7", "2001:db8::1", "::ffff:203.0.113.7"])
sources = st.one_of(
    st.builds(HeaderSource, headers),
    st.builds(ClientIPSource, st.integers(-1, 33), st.integers(-1, 129)),
    st.builds(CookieSource, headers),
    st.builds(QuerySource, st.sampled_from(["k", "a b", "filter[a]"])),
    st.builds(ClaimSource, st.sampled_from(["sub", "a.b", "", "a\\.b"])),
    st.builds(PathSource, st.sampled_from(["id", "org"])),
    st.sampled_from([PrincipalSource(), HostSource(), MethodSource()]),
)
routes = st.builds(
    RouteSpec,
    st.sampled_from(["/", "/*", "/v1/*", "/v1/a", "/v1/{id}", "/V1/A", "x", "/a//b"]),
    st.sampled_from([(), ("GET",), ("GET", "POST"), ("get",)]),
)
exemptions = st.one_of(
    st.builds(
        AddressExemption, st.lists(st.sampled_from(["10.0.0.0/8", "10.0.0.1/8", "0.0.0.0/0", "::/0"])).map(tuple)
    ),
    st.builds(HeaderExemption, headers, st.lists(values, max_size=2).map(tuple)),
)
rules = st.builds(
    RuleSpec,
    names,
    limits,
    st.lists(sources, max_size=2).map(tuple),
    plans=st.none()
    | st.builds(
        PlansSpec,
        st.builds(HeaderSource, headers) | st.builds(ClaimSource, st.sampled_from(["plan", "."])),
        st.lists(st.tuples(values, limits), max_size=2, unique_by=lambda plan: plan[0]).map(tuple),
    ),
    cost=st.lists(st.builds(CostSpec, routes, st.integers(-1, 30)), max_size=2).map(tuple),
    scope=st.sampled_from(Scope),
)
policy_specs = st.builds(
    PolicySpec,
    st.lists(rules, max_size=2).map(tuple),
    st.sampled_from(Mode),
    st.lists(st.sampled_from(["a.test", "x.a.test", "*.a.test", "b.test", "UP.test"]), max_size=2).map(tuple),
    st.lists(routes, max_size=2).map(tuple),
    st.lists(exemptions, max_size=2).map(tuple),
)
subjects = st.lists(
    st.builds(
        SubjectValue,
        st.sampled_from(["x-api-key", "X-User", "clientIP", "x y", "host", "cookie:k", "sub", "path:id"]),
        values,
        st.booleans(),
    ),
    max_size=2,
).map(tuple)
override_specs = st.builds(
    OverrideSpec,
    st.sampled_from(["p0", "p1", "p2"]),
    st.lists(subjects, max_size=2).map(tuple),
    st.sampled_from(Action),
    st.lists(names, max_size=2).map(tuple),
    st.none()
    | st.builds(
        LimitPatch,
        st.none() | counts,
        st.none() | periods,
        st.none() | counts,
        st.none() | st.integers(-1, 9),
        st.none() | periods,
    ),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.sampled_from([None, "2.5", "0", "1000", "x"]),
)
good_limits = st.one_of(
    st.builds(LimitSpec, st.integers(20, 30), st.sampled_from([1_000, 1_000_000])),
    st.builds(
        LimitSpec,
        st.integers(20, 30),
        st.sampled_from([1_000, 1_000_000]),
        algorithm=st.sampled_from(sorted(set(Algorithm) - {Algorithm.LEAKY_BUCKET})),
    ),
    st.just(LimitSpec(25, 1_000_000, algorithm=Algorithm.LEAKY_BUCKET, queue=2, max_delay_us=1000)),
    st.just(LimitSpec(25, algorithm=Algorithm.FIXED_WINDOW, calendar=Calendar.WEEK)),
)
good_rules = st.builds(
    RuleSpec,
    names,
    good_limits,
    st.sampled_from([(), (HeaderSource("x-api-key"),), (HeaderSource("x-user"), ClientIPSource())]),
)
good_policy_specs = st.builds(
    PolicySpec, st.lists(good_rules, min_size=1, max_size=2, unique_by=lambda r: r.name).map(tuple)
)


VALUES = {"x-api-key": "k1", "x-user": "u1", "clientIP": "203.0.113.7"}


@st.composite
def good_override_specs(draw: st.DrawFn, target: PolicyInput) -> OverrideSpec:
    """An override that fits the target, as long as that has a rule with a key."""
    rules = target.spec.rules if isinstance(target.spec, PolicySpec) else ()
    keys = [rule.key for rule in rules if rule.key] or [(HeaderSource("x-api-key"),)]
    names = [part.name if isinstance(part, HeaderSource) else "clientIP" for part in draw(st.sampled_from(keys))]
    named = draw(st.sampled_from([names, names[:1]]))
    subject = tuple(SubjectValue(name, VALUES.get(name, "v1")) for name in named)
    patch = draw(st.none() | st.builds(LimitPatch, burst=st.integers(10, 30)) | st.just(LimitPatch(5)))
    action = draw(st.sampled_from(sorted(set(Action) - {Action.SET}))) if patch is None else Action.SET
    end = draw(st.none() | st.integers(5, 9))
    factor = "2.5" if action is Action.MULTIPLY else None
    return OverrideSpec(target.meta.name, (subject,), action, limit=patch, not_after=end, factor=factor)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[PolicyInput], list[OverrideInput]]:
    """Up to three policies and three overrides in two namespaces, good and bad ones mixed."""
    specs = st.one_of(good_policy_specs, good_policy_specs, policy_specs, st.just(BROKEN))
    policies = [
        PolicyInput(Meta(draw(st.sampled_from("ab")), f"p{n}", "u", draw(st.integers(1, 3)), 0), "edge", draw(specs))
        for n in range(draw(st.integers(0, 3)))
    ]
    overrides = []
    for n in range(draw(st.integers(0, 3)) if policies else 0):
        target = draw(st.sampled_from(policies))
        spec = draw(
            st.one_of(good_override_specs(target), good_override_specs(target), override_specs, st.just(BROKEN))
        )
        name = spec.policy if isinstance(spec, OverrideSpec) else target.meta.name
        meta = Meta(target.meta.namespace, f"o{n}", "u", 1, draw(st.integers(0, 2)))
        overrides.append(OverrideInput(meta, name, spec))
    return policies, overrides


@settings(max_examples=100)
@given(worlds(), worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_objects_changes_no_byte(
    world: tuple[list[PolicyInput], list[OverrideInput]],
    earlier: tuple[list[PolicyInput], list[OverrideInput]],
    random: random.Random,
) -> None:
    """D47"""
    previous = compiled(*earlier).ruleset
    expected = compiled(*world, previous)
    shuffled = [random.sample(objects, len(objects)) for objects in world]
    actual = compile_ruleset(*shuffled, GATEWAY, previous)  # type: ignore[arg-type]
    assert to_bytes(publish(expected.ruleset, 1)) == to_bytes(publish(actual.ruleset, 1))
    assert (expected.policies, expected.overrides) == (actual.policies, actual.overrides)


@settings(max_examples=100)
@given(worlds(), st.one_of(policy_specs, st.just(BROKEN)))
def test_a_further_policy_changes_nothing_of_what_others_get(
    world: tuple[list[PolicyInput], list[OverrideInput]], spec: PolicySpec | tuple[Problem, ...]
) -> None:
    """D44"""
    policies, overrides = world
    expected = compiled(policies, overrides)
    actual = compiled([*policies, PolicyInput(Meta("a", "new", "u", 1, 0), "edge", spec)], overrides)
    assert all(piece in actual.ruleset.policies for piece in expected.ruleset.policies)
    assert expected.ruleset.overrides == actual.ruleset.overrides
    assert {**actual.policies, **expected.policies} == actual.policies
    assert {name: o.accepted for name, o in expected.overrides.items()} == {
        name: o.accepted for name, o in actual.overrides.items()
    }


@settings(max_examples=100)
@given(worlds(), st.integers(0, 2))
def test_breaking_one_policy_leaves_the_ruleset_as_it_was(
    world: tuple[list[PolicyInput], list[OverrideInput]], place: int
) -> None:
    """D44, R45: the broken one keeps its last accepted version, the others do not notice."""
    policies, overrides = world
    before = compiled(policies, overrides)
    broken = [
        replace(item, spec=BROKEN, meta=replace(item.meta, generation=9)) if index == place else item
        for index, item in enumerate(policies)
    ]
    after = compiled(broken, overrides, before.ruleset)
    assert before.ruleset == after.ruleset


@settings(max_examples=100)
@given(worlds(), worlds())
def test_whatever_comes_in_what_goes_out_is_a_document_that_limiters_take(
    world: tuple[list[PolicyInput], list[OverrideInput]], earlier: tuple[list[PolicyInput], list[OverrideInput]]
) -> None:
    """D44: a document that limiters refuse would stop every other policy from updating."""
    result = compiled(*world, compiled(*earlier).ruleset).ruleset
    document = publish(result, 1)
    assert parse_document(to_bytes(document)) == document
    jsonschema.Draft202012Validator(document_schema()).validate(json.loads(to_bytes(document)))
    pieces = {piece.id: piece for piece in result.policies}
    assert list(pieces) == sorted(pieces)
    for piece in result.overrides:
        rules = [rule for rule in pieces[piece.policy].rules if rule.name in piece.rules]
        assert sorted(piece.rules) == sorted(rule.name for rule in rules)
        assert piece.not_after is None or piece.not_after > (piece.not_before or 0)
        for rule in rules:
            after = [piece.over(limit) for limit in _limits(rule)]
            assert all(_fits(limit, rule.cost) for limit in after)
    for rule in (rule for piece in result.policies for rule in piece.rules):
        assert all(_fits(limit, rule.cost) for limit in _limits(rule))


def _limits(rule: Rule) -> list[Limit]:
    return [rule.limit, *(rule.plans.limits.values() if rule.plans else ())]


def _fits(limit: Limit, cost: tuple[Cost, ...]) -> bool:
    return check_limit(limit, "") == [] and all(entry.cost <= limit.largest_cost for entry in cost)
