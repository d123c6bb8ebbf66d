# SPDX-License-Identifier: Apache-2.0
"""A policy applied with kubectl limits real traffic, over all gateways together; in shadow it changes nothing."""

import json

import http_sf
import pytest

from lab.client import Answer
from lab.team import Team
from lab.waiting import eventually

PER_KEY = {"key": [{"header": "x-api-key"}]}
FIVE_AN_HOUR = {"requests": 5, "period": "1h", "burst": 5}
VARYING = {"date", "x-envoy-upstream-service-time", "x-request-id"}


def what_the_client_sees(answer: Answer) -> tuple[int, list[tuple[str, str]], dict[str, object]]:
    """All of an answer but what differs between any two: times, the request's id, and with it the body's length."""
    lines = [(name, value) for name, value in answer.header_lines if name not in VARYING]
    echoed = answer.json()
    echoed["headers"] = [pair for pair in echoed["headers"] if pair[0].lower() != "x-request-id"]
    return answer.status, lines, echoed


@pytest.mark.requirement("R43")
def test_a_policy_in_shadow_changes_no_byte_and_counts_whom_it_would_refuse(
    team: Team, api_key: dict[str, str]
) -> None:
    before = what_the_client_sees(team.send(headers=api_key))
    team.apply_ready(team.policy(mode="Shadow", rules=[{"name": "burst", **PER_KEY, "limit": FIVE_AN_HOUR}]))
    during = [what_the_client_sees(team.send(headers=api_key, gateway=number % 2)) for number in range(12)]
    assert during == [before] * 12
    assert sum(rule["wouldReject"] for rule in team.rules()) == 7
    assert sum(rule["rejected"] for rule in team.rules()) == 0


@pytest.mark.requirement("R01", "R03", "R07")
def test_a_limit_holds_over_all_gateways_together(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[{"name": "burst", **PER_KEY, "limit": FIVE_AN_HOUR}]))
    assert team.statuses(8, headers=api_key) == [200] * 5 + [429] * 3


def test_keys_do_not_share_a_bucket_and_a_request_without_the_key_is_not_limited(
    team: Team, api_key: dict[str, str]
) -> None:
    """D28: a missing header never becomes one shared bucket by accident."""
    team.apply_ready(team.policy(rules=[{"name": "burst", **PER_KEY, "limit": FIVE_AN_HOUR}]))
    assert team.statuses(6, headers=api_key)[-1] == 429
    assert team.statuses(6, headers={"x-api-key": api_key["x-api-key"] + "-other"})[0] == 200
    assert team.statuses(8) == [200] * 8
    assert team.statuses(8, headers={"x-api-key": ""}) == [200] * 8


@pytest.mark.requirement("R30", "R32", "R33", "R34")
def test_a_refused_client_is_told_what_when_and_why(team: Team, api_key: dict[str, str]) -> None:
    """D17, D22: Retry-After is whole seconds, the structured fields parse strictly."""
    link = "https://developer.example.com/limits"
    limit = {"requests": 60, "period": "1m", "burst": 2}
    team.apply_ready(
        team.policy(rules=[{"name": "burst", **PER_KEY, "limit": limit}], response={"documentation": link})
    )
    allowed = team.send(headers=api_key)
    team.send(headers=api_key)
    refused = team.send(headers=api_key)
    assert (allowed.status, refused.status) == (200, 429)
    for answer in (allowed, refused):
        ((name, parameters),) = http_sf.parse((answer.header("ratelimit-policy") or "").encode(), tltype="list")
        assert (name, parameters) == ("burst", {"q": 2, "w": 2})
        ((name, _),) = http_sf.parse((answer.header("ratelimit") or "").encode(), tltype="list")
        assert name == "burst"
    assert refused.header("retry-after") == "1"
    assert refused.header("content-type") == "application/problem+json"
    assert refused.header("cache-control") == "no-store"
    problem = refused.json()
    assert problem["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert (problem["status"], problem["code"], problem["rule"]) == (429, "rate_limited", "burst")
    assert problem["policy"] == f"{team.namespace}/limits"
    assert (problem["retryAfterSeconds"], problem["documentation"]) == (1, link)
    assert problem["violated-policies"] == ["burst"]
    assert problem["instance"].startswith("urn:")


@pytest.mark.requirement("R34")
def test_a_silent_rule_tells_nobody_its_name_or_numbers(team: Team, api_key: dict[str, str]) -> None:
    rule = {"name": "secret", **PER_KEY, "limit": FIVE_AN_HOUR, "visibility": "Silent"}
    team.apply_ready(team.policy(rules=[rule]))
    allowed = team.send(headers=api_key)
    refused = [team.send(headers=api_key) for _ in range(5)][-1]
    assert (allowed.status, refused.status) == (200, 429)
    assert allowed.header("ratelimit") is None
    assert refused.header("ratelimit") is None
    assert int(refused.header("retry-after") or 0) >= 1
    assert refused.json() == {"type": "about:blank", "title": "Too Many Requests", "status": 429}


@pytest.mark.requirement("R31")
def test_the_old_header_fields_are_the_other_dialect_and_never_both(team: Team, api_key: dict[str, str]) -> None:
    rule = {"name": "burst", **PER_KEY, "limit": FIVE_AN_HOUR}
    team.apply_ready(team.policy(rules=[rule], response={"headers": "XRateLimit"}))
    seen = [team.send(headers=api_key) for _ in range(6)]
    assert [answer.header("x-ratelimit-limit") for answer in seen] == ["5"] * 6
    assert [answer.header("x-ratelimit-remaining") for answer in seen] == ["4", "3", "2", "1", "0", "0"]
    assert all(answer.header("ratelimit") is None for answer in seen)


def test_a_refused_head_has_the_headers_and_no_body(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[{"name": "burst", **PER_KEY, "limit": {"requests": 1, "period": "1h"}}]))
    with team.connect() as client:
        head = [client.send("HEAD", "/", host=team.host, headers=api_key) for _ in range(3)]
        assert [(answer.status, answer.body) for answer in head] == [(200, b""), (429, b""), (429, b"")]
        assert head[1].header("retry-after") is not None
        assert head[1].header("ratelimit") is not None
        assert client.connected


def test_a_big_body_reaches_the_upstream_whole_or_is_refused_at_once(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[{"name": "burst", **PER_KEY, "limit": {"requests": 1, "period": "1h"}}]))
    body = b"x" * 3_000_000
    allowed = team.send(method="POST", headers=api_key, body=body)
    assert (allowed.status, allowed.json()["bodyBytes"]) == (200, len(body))
    refused = team.send(method="POST", headers=api_key, body=body)
    assert refused.status == 429


def test_a_kept_connection_goes_on_after_refusals_and_sees_an_edit(team: Team, api_key: dict[str, str]) -> None:
    rule = {"name": "burst", **PER_KEY, "limit": {"requests": 1, "period": "1h"}}
    team.apply_ready(team.policy(rules=[rule]))
    with team.connect() as client:
        assert client.send("GET", "/", host=team.host, headers=api_key).status == 200
        assert [client.send("GET", "/", host=team.host, headers=api_key).status for _ in range(3)] == [429] * 3
        team.apply(team.policy(mode="Shadow", rules=[rule]))
        eventually(lambda: client.send("GET", "/", host=team.host, headers=api_key).status == 200, within_s=10)
        assert client.connected


def test_a_grpc_client_is_told_resource_exhausted(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[{"name": "burst", **PER_KEY, "limit": {"requests": 1, "period": "1h"}}]))
    call = {**api_key, "content-type": "application/grpc", "te": "trailers"}
    team.send("/shop.Orders/List", method="POST", headers=call, body=b"")
    refused = team.send("/shop.Orders/List", method="POST", headers=call, body=b"")
    assert (refused.status, refused.header("grpc-status")) == (200, "8")
    assert refused.header("grpc-message")


@pytest.mark.requirement("R02", "R14")
def test_the_plan_decides_the_limit(team: Team, api_key: dict[str, str]) -> None:
    plans = {"from": {"header": "x-plan"}, "limits": {"enterprise": {"requests": 8, "period": "1h"}}}
    team.apply_ready(
        team.policy(rules=[{"name": "burst", **PER_KEY, "limit": {"requests": 2, "period": "1h"}, "plans": plans}])
    )
    assert team.statuses(4, headers=api_key) == [200, 200, 429, 429]
    enterprise = {"x-api-key": api_key["x-api-key"] + "-big", "x-plan": "enterprise"}
    assert team.statuses(10, headers=enterprise) == [200] * 8 + [429] * 2


@pytest.mark.requirement("R13")
def test_an_expensive_route_costs_more(team: Team, api_key: dict[str, str]) -> None:
    cost = [
        {"match": {"path": "/v1/exports", "methods": ["POST"]}, "cost": 10},
        {"match": {"path": "/free"}, "cost": 0},
    ]
    limit = {"requests": 25, "period": "1h"}
    team.apply_ready(team.policy(rules=[{"name": "burst", **PER_KEY, "limit": limit, "cost": cost}]))
    exports = [team.send("/v1/exports", method="POST", headers=api_key).status for _ in range(3)]
    assert exports == [200, 200, 429]
    assert team.statuses(3, "/free", headers=api_key) == [200] * 3
    assert team.statuses(6, "/v1/orders", headers=api_key) == [200] * 5 + [429]


def test_the_exempt_are_neither_limited_nor_counted(team: Team, api_key: dict[str, str]) -> None:
    rules = [{"name": "burst", "key": [], "limit": {"requests": 1, "period": "1h"}}]
    exempt = [{"header": {"name": "x-api-key", "in": [api_key["x-api-key"]]}}, {"clientIP": ["127.0.0.77/32"]}]
    team.apply_ready(team.policy(rules=rules, exempt=exempt))
    assert team.statuses(5, headers=api_key) == [200] * 5
    assert [team.send(source="127.0.0.77").status for _ in range(5)] == [200] * 5
    assert team.statuses(2) == [200, 429]


@pytest.mark.requirement("R16")
def test_of_several_rules_a_request_passes_only_if_all_allow_and_a_refusal_charges_none(
    team: Team, api_key: dict[str, str]
) -> None:
    """D08: the looser counter shows what was admitted, not what was sent."""
    rules = [
        {"name": "tight", **PER_KEY, "limit": {"requests": 3, "period": "1h"}},
        {"name": "loose", **PER_KEY, "limit": {"requests": 10, "period": "1h"}},
    ]
    team.apply_ready(team.policy(rules=rules))
    assert team.statuses(8, headers=api_key) == [200] * 3 + [429] * 5
    last = team.send(headers=api_key)
    remaining = {str(name): parameters["r"] for name, parameters in _fields(last)}
    assert remaining == {"tight": 0, "loose": 7}
    assert json.loads(last.body)["rule"] == "tight"


def _fields(answer: Answer) -> list[tuple[str, dict[str, int]]]:
    return list(http_sf.parse((answer.header("ratelimit") or "").encode(), tltype="list"))
