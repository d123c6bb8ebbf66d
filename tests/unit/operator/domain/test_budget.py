# SPDX-License-Identifier: Apache-2.0
"""The rule budget: judged by requests that really meet too many rules, against a plain search over all requests."""

import functools
import itertools
import random
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_operator.domain import crowds
from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.budget import Applicant, Budget
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.matching import PathPattern, parse_path
from weir_operator.domain.ruleset import Match, Policy, Response, Route, Rule
from weir_operator.domain.specs import HeaderSource, LimitSpec, Meta, PolicyInput, PolicySpec, RouteSpec, RuleSpec

RULE = Rule(
    "r", Mode.ENFORCE, (), MissingKey.SKIP, TokenBucket(1, 1000, 1), None, (), FailureMode.OPEN, Visibility.PUBLIC, "c"
)


def policy(
    name: str, hosts: tuple[str, ...] = (), *routes: str | Route, rules: int = 1, mode: Mode = Mode.ENFORCE
) -> Policy:
    listed = tuple(Route(route, ()) if isinstance(route, str) else route for route in routes)
    made = tuple(replace(RULE, name=f"r{n}", mode=mode) for n in range(rules))
    return Policy(f"team/{name}", 1, Match(hosts, listed), (), made, Response(Dialect.NONE, None))


def refused(budget: int, *policies: Policy) -> dict[str, str]:
    """What is refused, in the order of creation that the arguments have."""
    found = Budget(budget).exceeded_by(Applicant(policy, age) for age, policy in enumerate(policies))
    return {name: str(problem) for name, problem in found.items()}


@pytest.mark.requirement("R40")
def test_the_last_of_the_policies_that_meet_in_one_request_is_refused_with_that_request() -> None:
    first = policy("first", ("api.test",), "/v1/*", rules=5)
    second = policy("second", ("*.test",), "/{version}/users", rules=2)
    third = policy("third", (), "/v1/users", rules=2)
    assert refused(8, first, second, third) == {
        "team/third": "spec.match: a request for api.test/v1/users would meet 9 rules, and at most 8 are allowed on "
        "this gateway; 7 of them are of older policies: team/first, team/second; match fewer hosts or routes, or write "
        "fewer rules, or ask the gateway's administrator for a larger ruleBudget"
    }
    assert list(refused(8, third, second, first)) == ["team/first"]
    assert refused(9, first, second, third) == {}


def test_a_policy_with_too_many_rules_of_its_own_is_refused_alone() -> None:
    assert refused(8, policy("big", rules=9)) == {
        "team/big": "spec.rules: has 9 rules, and a request may meet at most 8 on this gateway; write fewer rules, or "
        "several policies for different routes, or ask the gateway's administrator for a larger ruleBudget"
    }


def test_a_catch_all_is_not_blamed_for_neighbours_that_never_meet() -> None:
    neighbours = [policy(f"n{n}", (f"h{n}.test",), "/v1/*", rules=6) for n in range(5)]
    assert refused(8, *neighbours, policy("everything", rules=2)) == {}
    assert list(refused(8, *neighbours, policy("everything", rules=3))) == ["team/everything"]


def test_policies_that_overlap_in_pairs_need_not_meet_in_one_request() -> None:
    routes = [Route("/a", methods) for methods in (("GET", "PUT"), ("PUT", "POST"), ("GET", "POST"))]
    by_method = [policy(f"p{n}", (), route) for n, route in enumerate(routes)]
    assert refused(2, *by_method) == {}
    assert list(refused(1, *by_method)) == ["team/p1", "team/p2"]


def test_get_covers_head() -> None:
    reads, heads = policy("reads", (), Route("/a", ("GET",))), policy("heads", (), Route("/a", ("HEAD",)))
    (told,) = refused(1, reads, heads).values()
    assert "HEAD */a would meet 2 rules" in told


def test_several_routes_of_one_policy_count_once() -> None:
    assert refused(2, policy("p", (), "/*", "/a/*", "/a/b", rules=2)) == {}


def test_disabled_rules_cost_nothing_and_shadow_rules_do() -> None:
    enforced = policy("enforced", rules=2)
    assert refused(2, enforced, policy("off", mode=Mode.DISABLED, rules=16)) == {}
    assert list(refused(2, enforced, policy("shadow", mode=Mode.SHADOW))) == ["team/shadow"]


def test_a_refused_policy_takes_no_place_from_those_after_it() -> None:
    assert list(refused(3, policy("a", rules=2), policy("b", rules=2), policy("c", rules=1))) == ["team/b"]


def test_a_wildcard_does_not_match_its_own_domain() -> None:
    assert refused(1, policy("wild", ("*.a.test",)), policy("apex", ("a.test",))) == {}
    assert list(refused(1, policy("wild", ("*.a.test",)), policy("deep", ("*.b.a.test",)))) == ["team/deep"]


def test_what_runs_already_stays_and_counts() -> None:
    applicants = [Applicant(policy("a", rules=2), 0), Applicant(policy("b", rules=2), 1, fixed=True)]
    assert Budget(3).exceeded_by(applicants) == {}
    applicants.append(Applicant(policy("c"), 2))
    assert list(Budget(4).exceeded_by(applicants)) == ["team/c"]


def test_a_search_that_is_given_up_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    crowded = [policy(f"p{n}") for n in range(9)]
    assert list(refused(8, *crowded)) == ["team/p8"]
    monkeypatch.setattr(crowds, "HOST_STEPS", 0)
    assert refused(8, *crowded) == {}


def tangled(host: str, seed: int = 0) -> list[Policy]:
    """Two policies whose paths can meet in more ways than can be walked."""
    dice = random.Random(seed)
    paths = [
        "/" + "/".join(f"{{p{n}}}" if dice.random() < 0.7 else dice.choice("ab") for n in range(60)) for _ in range(128)
    ]
    return [policy(f"{host}-{n}", (host,), *paths[n::2], rules=5) for n in range(2)]


def test_paths_that_cannot_be_walked_to_the_end_do_not_take_the_budget_from_other_hosts() -> None:
    plain = [policy(f"p{n}", ("plain.test",), "/v1/*", rules=5) for n in range(2)]
    walk = crowds._Walk(tangled("a.test"), [5, 5], 8)
    walk.crowds()
    assert walk._left <= 0
    assert "team/p1" in refused(8, *tangled("a.test"), *plain)


def test_all_hosts_together_are_walked_for_a_bounded_time_the_easy_ones_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "HOST_STEPS", 1_000)
    monkeypatch.setattr(crowds, "MAX_STEPS", 3_000)
    plain = [policy(f"p{n}", ("plain.test",), "/v1/*", rules=5) for n in range(2)]
    hard = [each for n in range(9) for each in tangled(f"h{n}.test", n)]
    walk = crowds._Walk([*hard, *plain], [5] * 20, 8)
    assert [len(members) for _, members in walk._hosts_to_walk()] == [2] * 10
    assert walk.crowds()[-1].members == (18, 19)
    assert walk._left <= 0


def test_patterns_with_parameters_at_many_places_are_judged_at_once() -> None:
    """Walked without foresight, these have 21^3 combinations."""
    places = ("/{{a}}/{{b}}/x{k}-{n}", "/{{a}}/y{k}-{n}/{{c}}", "/z{k}-{n}/{{b}}/{{c}}")
    grid = [policy(f"p{n}", (), *(place.format(k=k, n=n) for place in places for k in range(21))) for n in range(12)]
    walk = crowds._Walk(grid, [1] * len(grid), 8)
    assert walk.crowds() == []
    walk._suspects()
    assert walk._left > crowds.HOST_STEPS - 10_000


segments = st.sampled_from(["a", "b", "{p}"])
paths = st.builds(
    lambda parts, rest: "/" + "/".join([*(part.replace("p", f"p{n}") for n, part in enumerate(parts)), *rest]),
    st.lists(segments, max_size=3),
    st.sampled_from([(), ("*",)]),
)
hosts = st.lists(st.sampled_from(["a.t", "b.a.t", "*.a.t", "*.t", "c"]), max_size=2, unique=True).map(tuple)
methods = st.sampled_from([(), ("GET",), ("POST",), ("GET", "POST"), ("HEAD",)])
routes = st.lists(st.builds(Route, paths, methods), max_size=3)
ALL_HOSTS = ["a.t", "b.a.t", "x.a.t", "x.b.a.t", "x.t", "c", "d"]
ALL_PATHS = [parts for length in range(5) for parts in itertools.product("abz", repeat=length)]
ALL_METHODS = ["GET", "POST", "HEAD", "PUT"]
PARSED = functools.cache(parse_path)


@st.composite
def applicants(draw: st.DrawFn) -> list[Applicant]:
    def version(n: int) -> Policy:
        return policy(f"p{n}", draw(hosts), *draw(routes), rules=draw(st.integers(1, 3)))

    return [
        Applicant(version(n), draw(st.integers(0, 2)), instead=version(n) if draw(st.booleans()) else None)
        for n in range(draw(st.integers(1, 5)))
    ]


def sees_host(policy: Policy, host: str) -> bool:
    return not policy.match.hosts or any(
        host.endswith(pattern[1:]) if pattern.startswith("*") else host == pattern for pattern in policy.match.hosts
    )


def sees_route(policy: Policy, path: tuple[str, ...], method: str) -> bool:
    return not policy.match.routes or any(route_matches(r, path, method) for r in policy.match.routes)


def route_matches(route: Route, path: tuple[str, ...], method: str) -> bool:
    pattern = PARSED(route.path, "")
    assert isinstance(pattern, PathPattern)
    long_enough = len(path) >= len(pattern.segments) if pattern.open_ended else len(path) == len(pattern.segments)
    by_path = long_enough and all(p in (None, s) for p, s in zip(pattern.segments, path, strict=False))
    return by_path and (not route.methods or method in route.methods or (method == "HEAD" and "GET" in route.methods))


@pytest.mark.requirement("R40")
@settings(max_examples=100)
@given(applicants(), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_verdict_is_that_of_a_search_over_all_requests(
    given: list[Applicant], budget: int, dice: random.Random
) -> None:
    versions = [version for applicant in given for version in applicant.versions]
    by_host = {tuple(sees_host(each, host) for each in versions) for host in ALL_HOSTS}
    by_route = {
        tuple(sees_route(each, *route) for each in versions) for route in itertools.product(ALL_PATHS, ALL_METHODS)
    }
    requests = {tuple(map(all, zip(*both, strict=True))) for both in itertools.product(by_host, by_route)}
    placed: dict[str, int] = {}
    expected = set()
    for applicant in sorted(given, key=lambda a: a.rank):
        name, (first, *others) = applicant.policy.id, [n for n, v in enumerate(versions) if v.id == applicant.policy.id]
        met = max(
            (sum(len(versions[n].rules) for n in placed.values() if r[n]) for r in requests if r[first]), default=0
        )
        if met + len(versions[first].rules) > budget:
            expected.add(name)
            if applicant.instead is None:
                continue
            first = others[0] if others else first
        placed[name] = first
    shuffled = dice.sample(given, len(given))
    found = Budget(budget).exceeded_by(shuffled)
    assert found.keys() == expected
    for name, problem in found.items():
        assert problem.reason is Reason.BUDGET_EXCEEDED
        told = re.match(r"(?:a request for|(\S+)) (\S+?)(/\S*) would meet (\d+) rules", problem.message)
        if told is None:
            assert next(len(a.policy.rules) for a in given if a.policy.id == name) > budget
            continue
        method, host, path, count = told[1] or "PUT", told[2].replace("*", "d"), told[3].strip("/"), int(told[4])
        route = tuple(path.split("/")) if path else (), method
        asking = next(a.policy for a in given if a.policy.id == name)
        assert sees_host(asking, host)
        assert sees_route(asking, *route)
        there = {each: versions[n] for each, n in placed.items() if f"{each}" in problem.message}
        there.pop(name, None)
        assert all(sees_host(each, host) and sees_route(each, *route) for each in there.values())
        assert count == sum(len(each.rules) for each in there.values()) + len(asking.rules)


def compiled(inputs: list[PolicyInput], previous: object = None) -> tuple[dict[str, str], list[str]]:
    gateway = Gateway("edge", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
    result = compile_ruleset(inputs, [], gateway, previous)  # type: ignore[arg-type]
    reasons = {name: str(outcome.problems[0].reason) for name, outcome in result.policies.items() if outcome.problems}
    return reasons, [piece.id for piece in result.ruleset.policies]


def asked(name: str, rules: int, created: int, generation: int = 1, path: str = "/*") -> PolicyInput:
    made = tuple(RuleSpec(f"r{n}", LimitSpec(5, 1_000_000), (HeaderSource("x"),)) for n in range(rules))
    return PolicyInput(Meta("t", name, "u", generation, created), "edge", PolicySpec(made, routes=(RouteSpec(path),)))


def test_a_new_policy_over_the_budget_stays_out_of_the_ruleset() -> None:
    assert compiled([asked("new", 4, 9), asked("old", 5, 1)]) == ({"t/new": "BudgetExceeded"}, ["t/old"])


def test_when_an_older_policy_grows_the_newer_one_is_told_but_its_limits_stay() -> None:
    gateway = Gateway("edge", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
    before = compile_ruleset([asked("old", 4, 1), asked("new", 4, 9)], [], gateway, None).ruleset
    after = compile_ruleset([asked("old", 6, 1, 2), asked("new", 4, 9)], [], gateway, before)
    assert after.policies["t/old"].accepted
    outcome = after.policies["t/new"]
    assert (outcome.problems[0].reason, outcome.kept, outcome.kept_generation) == (Reason.BUDGET_EXCEEDED, True, 1)
    assert [piece.id for piece in after.ruleset.policies] == ["t/new", "t/old"]


def test_an_edit_over_the_budget_keeps_the_version_before_it_and_leaves_its_room_to_nobody() -> None:
    gateway = Gateway("edge", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
    before = compile_ruleset([asked("old", 4, 1), asked("new", 4, 9)], [], gateway, None).ruleset
    grown = [asked("old", 4, 1), asked("new", 6, 9, 2), asked("newest", 1, 10)]
    after = compile_ruleset(grown, [], gateway, before)
    assert {name: outcome.accepted for name, outcome in after.policies.items()} == {
        "t/old": True,
        "t/new": False,
        "t/newest": False,
    }
    assert [len(piece.rules) for piece in after.ruleset.policies] == [4, 4]


def test_nobody_is_refused_because_of_a_policy_that_is_not_there() -> None:
    gateway = Gateway("edge", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
    oldest, before = asked("z", 4, 1, path="/r"), asked("y", 2, 2, path="/r")
    running = compile_ruleset([oldest, before], [], gateway, None).ruleset
    grown, both = asked("y", 5, 2, 2, path="/r"), asked("w", 4, 3)
    result = compile_ruleset([oldest, grown, both, asked("x", 5, 4, path="/s")], [], gateway, running)
    assert {name: outcome.accepted for name, outcome in result.policies.items()} == {
        "t/z": True,
        "t/y": False,  # what runs of it stays, and leaves no room for w
        "t/w": False,
        "t/x": True,
    }
    assert result.policies["t/y"].kept
