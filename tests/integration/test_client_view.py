# SPDX-License-Identifier: Apache-2.0
"""What clients see: fields for strict parsers, waits that are true, problems that name the rule, and silence."""

from __future__ import annotations

import re
from typing import Any

import http_sf
import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import POLICY, document, limit, policy, rule, single
from rig.envoy import Answer, Envoy
from rig.sidecar import Sidecar

HOUR_S = 3600


def fields(answer: Answer) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """RateLimit-Policy and RateLimit, parsed strictly: by item name, the parameters."""

    def parse(name: str) -> dict[str, dict[str, Any]]:
        items = http_sf.parse(answer.headers[name].encode(), tltype="list")
        assert all(type(item) is str for item, _ in items), "items must be Strings"
        return dict(items)

    return parse("ratelimit-policy"), parse("ratelimit")


@pytest.mark.requirement("R32", "R34")
async def test_the_fields_count_down_and_stand_on_allowed_and_refused_answers(sidecar: Sidecar, envoy: Envoy) -> None:
    """D21, D22."""
    sidecar.publish(single(limit=limit(3, period_s=HOUR_S)))
    answers = [await envoy.key("k") for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
    parsed = [fields(answer) for answer in answers]
    assert [left["burst"]["r"] for _, left in parsed] == [2, 1, 0, 0, 0]
    assert all(quota == {"burst": {"q": 3, "w": HOUR_S}} for quota, _ in parsed)
    assert all(left["burst"]["t"] >= 1 for _, left in parsed)
    refused = answers[-1]
    assert int(refused.headers["retry-after"]) >= parsed[-1][1]["burst"]["t"]


async def test_two_rules_are_listed_by_the_same_names_in_both_fields(sidecar: Sidecar, envoy: Envoy) -> None:
    """D22: names with digits and dashes, and one name in two policies."""
    first = policy(rule("a-1"), rule("burst"), id="team-a/one")
    second = policy(rule("burst", limit=limit(50)), id="team-b/two")
    sidecar.publish(document(first, second))
    quota, left = fields(await envoy.key("k"))
    assert list(quota) == list(left) == ["a-1", "one.burst", "two.burst"]


@pytest.mark.requirement("R30", "R33")
async def test_a_refusal_is_a_problem_that_names_policy_and_rule(sidecar: Sidecar, envoy: Envoy) -> None:
    documented = {"headers": "RateLimit", "documentation": "https://developer.example.com/limits"}
    sidecar.publish(document(policy(rule(limit=limit(1, period_s=60), code="quota_exceeded"), response=documented)))
    await envoy.key("k")
    refused = await envoy.key("k", x_request_id="6ba7b810-9dad-41d1-80b4-00c04fd430c8")
    problem = refused.problem
    assert refused.status == problem["status"] == 429
    assert problem["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert problem["instance"] == "urn:uuid:6ba7b810-9dad-41d1-80b4-00c04fd430c8"
    assert (problem["code"], problem["policy"], problem["rule"]) == ("quota_exceeded", POLICY, "burst")
    assert problem["violated-policies"] == ["burst"]
    assert problem["documentation"] == documented["documentation"]
    assert str(problem["retryAfterSeconds"]) == refused.headers["retry-after"]
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["cache-control"] == "no-store"
    assert refused.headers["x-envoy-ratelimited"] == "true"
    assert refused.metadata == {"policy": POLICY, "rule": "burst", "decision": "refused", "mode": "Enforce"}
    assert "\n" not in refused.body
    other = await envoy.key("k", x_request_id="not-a-uuid")
    assert re.fullmatch(rf"urn:weir:decision:{sidecar.name}-\d+", other.problem["instance"])


@pytest.mark.requirement("R31")
@pytest.mark.parametrize(("dialect", "epoch"), [("XRateLimit", False), ("XRateLimitEpoch", True)])
async def test_the_x_dialects_are_sent_alone(
    store: Store, sidecar: Sidecar, envoy: Envoy, dialect: str, *, epoch: bool
) -> None:
    sidecar.publish(document(policy(rule(limit=limit(2, period_s=100)), response={"headers": dialect})))
    answers = [await envoy.key("k") for _ in range(3)]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
    assert all(answer.headers["x-ratelimit-limit"] == "2" for answer in answers)
    assert all("ratelimit" not in answer.headers for answer in answers)
    reset = int(answers[-1].headers["x-ratelimit-reset"])
    if epoch:
        with store.client() as client:
            reset -= client.time()[0]
    assert 98 <= reset <= 101


@pytest.mark.requirement("R34")
async def test_a_silent_rule_says_nothing_but_when_to_come_back(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(single(limit=limit(1, period_s=60), visibility="Silent"))
    allowed, refused = await envoy.key("k"), await envoy.key("k")
    assert allowed.headers == {}
    assert refused.problem == {"type": "about:blank", "title": "Too Many Requests", "status": 429}
    assert set(refused.headers) == {"retry-after", "content-type", "cache-control", "x-envoy-ratelimited"}


@pytest.mark.requirement("R30")
@pytest.mark.parametrize("rate", [(1, 0.5), (5, 1), (3, 10), (10, 7)], ids=str)
async def test_retry_after_is_rounded_up_and_true(
    store: Store, sidecar: Sidecar, envoy: Envoy, rate: tuple[int, float]
) -> None:
    """D15, D17: who waits exactly so long passes; the wait is not padded by a second or more."""
    requests, period_s = rate
    sidecar.publish(single(limit=limit(requests, period_s=period_s, burst=1)))
    interval_s = period_s / requests
    assert (await envoy.key("k")).allowed
    with store.client() as client:
        # On a slow machine a token may come back between two requests, but not between all of them.
        while (refused := await envoy.key("k")).allowed:
            pass
        seconds, microseconds = client.time()
        text = refused.headers["retry-after"]
        assert re.fullmatch(r"[1-9]\d*", text)
        assert int(text) < interval_s + 1
        due = seconds + microseconds / 1e6 + int(text)
        eventually(lambda: sum(part * unit for part, unit in zip(client.time(), (1, 1e-6), strict=True)) >= due, 10)
    assert (await envoy.key("k")).allowed


async def test_a_request_dearer_than_the_bucket_is_told_no_time(sidecar: Sidecar, envoy: Envoy) -> None:
    """D03: no wait helps, so none is promised, and nothing is charged."""
    cost = [{"match": {"path": "/dear", "methods": []}, "cost": 5}]
    plans = {"from": {"header": "x-plan"}, "limits": {"tiny": limit(5, period_s=HOUR_S, burst=5)}}
    sidecar.publish(single(limit=limit(5, period_s=HOUR_S), cost=cost, plans=plans))
    assert (await envoy.key("k", "/dear")).allowed
    refused = await envoy.key("k", "/dear")
    assert int(refused.headers["retry-after"]) == HOUR_S


async def test_a_missing_key_that_is_denied_is_told_which(sidecar: Sidecar, envoy: Envoy) -> None:
    """D28, D29: empty is missing."""
    sidecar.publish(single(onMissingKey="Deny"))
    for headers in ({}, {"x-api-key": ""}):
        refused = await envoy.get(headers=headers)
        assert (refused.status, refused.problem["code"]) == (429, "missing_key")
        assert "x-api-key" in refused.problem["detail"]
        assert "retry-after" not in refused.headers


@pytest.mark.requirement("R37")
async def test_the_client_address_is_only_what_envoy_says(sidecar: Sidecar, envoy: Envoy) -> None:
    """D24, D25, D27: X-Forwarded-For counts for nothing; one /64 is one client; mapped IPv4 is IPv4."""
    key = [{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}]
    sidecar.publish(single(key=key, limit=limit(1, period_s=HOUR_S)))

    async def passes(address: str, forwarded: str = "1.2.3.4") -> bool:
        return (await envoy.get(headers={"x-weir-client-ip": address, "x-forwarded-for": forwarded})).allowed

    assert await passes("192.0.2.1")
    assert not await passes("192.0.2.1", forwarded="5.6.7.8")
    assert not await passes("::ffff:192.0.2.1")
    assert await passes("::ffff:10.0.0.1")
    assert await passes("2001:db8:1:2::1")
    assert not await passes("2001:0db8:0001:0002:ffff::9")
    assert await passes("2001:db8:1:3::1")


@pytest.mark.parametrize("content_type", ["application/grpc", "application/grpc+proto"])
async def test_a_grpc_client_gets_resource_exhausted(sidecar: Sidecar, envoy: Envoy, content_type: str) -> None:
    sidecar.publish(single(limit=limit(1, period_s=HOUR_S)))
    await envoy.key("k", content_type=content_type)
    refused = await envoy.key("k", content_type=content_type)
    assert (refused.status, refused.headers["grpc-status"]) == (200, "8")
    assert re.fullmatch(r"[\x20-\x7e]+", refused.headers["grpc-message"])
    assert "retry-after" in refused.headers


async def test_head_and_big_posts_are_decided_like_any_request(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(single(limit=limit(2, period_s=HOUR_S)))
    assert (await envoy.get(headers={"x-api-key": "k"}, method="HEAD")).allowed
    assert (await envoy.get(headers={"x-api-key": "k", "content-length": "3000000"}, method="POST")).allowed
    assert (await envoy.get(headers={"x-api-key": "k"}, method="HEAD")).status == 429


async def test_respelled_paths_share_one_count(sidecar: Sidecar, envoy: Envoy) -> None:
    """D60."""
    route = {"hosts": [], "routes": [{"path": "/login", "methods": ["POST"]}]}
    sidecar.publish(document(policy(rule(limit=limit(1, period_s=HOUR_S)), match=route)))
    spellings = [
        "/login",
        "/login/",
        "//login",
        "/./login",
        "/x/../login",
        "/%6cogin",
        "/LOGIN",
        "/login?x=1",
        "/login;a=b",
    ]
    answers = [await envoy.get(path, {"x-api-key": "k"}, method="POST") for path in spellings]
    assert [answer.status for answer in answers] == [200] + [429] * (len(spellings) - 1)
