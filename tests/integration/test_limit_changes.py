# SPDX-License-Identifier: Apache-2.0
"""Limits that change under live counters, by edit, by plan, by cost, by override, and what the counters keep."""

from __future__ import annotations

import time

import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, limit, override, policy, rule, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.stores import EVERY_SERVER

pytestmark = EVERY_SERVER
HOUR_S = 3600


async def admitted(envoy: Envoy, key: str, requests: int, **headers: str) -> int:
    return sum([(await envoy.key(key, **headers)).allowed for _ in range(requests)])


@pytest.mark.requirement("R16")
async def test_a_lowered_limit_binds_a_warm_bucket_at_once(sidecar: Sidecar, envoy: Envoy) -> None:
    """D13, D46: 1000 to 10 after one request."""
    sidecar.publish(single(limit=limit(1000, period_s=HOUR_S)))
    assert await admitted(envoy, "k", 1) == 1
    sidecar.publish(single(limit=limit(10, period_s=HOUR_S)))
    answer = await envoy.key("k")
    assert answer.headers["ratelimit-policy"] == '"burst";q=10;w=3600'
    assert 1 + await admitted(envoy, "k", 30) <= 10


@pytest.mark.requirement("R16")
async def test_a_raised_limit_helps_at_once_and_gives_no_token_twice(sidecar: Sidecar, envoy: Envoy) -> None:
    """D46: 5 to 8 keeps the 5 that were used."""
    sidecar.publish(single(limit=limit(5, period_s=HOUR_S)))
    assert await admitted(envoy, "k", 7) == 5
    sidecar.publish(single(limit=limit(8, period_s=HOUR_S)))
    assert await admitted(envoy, "k", 7) == 3


@pytest.mark.requirement("R16")
async def test_a_raised_rate_helps_who_is_being_refused(sidecar: Sidecar, envoy: Envoy) -> None:
    """D46: who has used up an hourly limit is admitted at once when it becomes one a millisecond."""
    sidecar.publish(single(limit=limit(1, period_s=HOUR_S)))
    assert await admitted(envoy, "k", 3) == 1
    sidecar.publish(single(limit=limit(1000, burst=1)))
    assert (await envoy.key("k")).allowed


@pytest.mark.requirement("R16")
async def test_edits_of_every_kind_keep_the_limit_in_force(sidecar: Sidecar, envoy: Envoy) -> None:
    """D46: numbers, period, key, name, delete and add again, each on a warm key; no error is logged."""
    warm = {"x-api-key": "k", "x-weir-client-ip": "192.0.2.7"}
    changes = [
        rule(limit=limit(3, period_s=HOUR_S)),
        rule(limit=limit(5, period_s=HOUR_S)),
        rule(limit=limit(5, period_s=2 * HOUR_S)),
        rule(limit=limit(5, period_s=HOUR_S), key=[{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}]),
        rule("renamed", limit=limit(5, period_s=HOUR_S)),
    ]
    for change in changes:
        sidecar.publish(document(policy(change)))
        answers = [await envoy.get(headers=warm) for _ in range(8)]
        refused = [answer for answer in answers if not answer.allowed]
        assert len(refused) >= 3
        assert refused[0].problem["rule"] == change["name"]
    sidecar.publish(document())
    assert (await envoy.get(headers=warm)).headers == {}
    sidecar.publish(document(policy(rule("renamed", limit=limit(5, period_s=HOUR_S)))))
    assert not (await envoy.get(headers=warm)).allowed, "the counter is still there"
    assert "ERROR" not in sidecar.log()


@pytest.mark.requirement("R02", "R14")
async def test_the_limit_follows_the_plan_and_an_unknown_plan_gets_the_default(sidecar: Sidecar, envoy: Envoy) -> None:
    plans = {"from": {"header": "x-plan"}, "limits": {"enterprise": limit(6, period_s=HOUR_S)}}
    sidecar.publish(single(limit=limit(2, period_s=HOUR_S), plans=plans))
    assert await admitted(envoy, "small", 8) == 2
    assert await admitted(envoy, "big", 8, x_plan="enterprise") == 6
    assert await admitted(envoy, "odd", 8, x_plan="platinum") == 2
    assert sidecar.rule()["unknownPlan"] == 8
    assert sidecar.metric("weir_rule_decisions_total", outcome="unknown_plan") == 8


@pytest.mark.requirement("R13")
async def test_a_dear_request_costs_its_price_and_a_refused_one_nothing(sidecar: Sidecar, envoy: Envoy) -> None:
    """D03, D04: cost 10 from 15, then what is left serves cheap requests."""
    prices = {"/v1/exports": 10, "/free/*": 0}
    cost = [{"match": {"path": path, "methods": []}, "cost": price} for path, price in prices.items()]
    sidecar.publish(single(limit=limit(15, period_s=HOUR_S), cost=cost))
    assert (await envoy.key("k", "/v1/exports")).headers["ratelimit"].startswith('"burst";r=5;')
    refused = await envoy.key("k", "/v1/exports")
    assert (refused.status, refused.headers["ratelimit"].split(";")[1]) == (429, "r=5")
    assert all([(await envoy.key("k", "/free/x")).allowed for _ in range(20)])
    assert await admitted(envoy, "k", 7) == 5


async def until(store: Store, moment_s: int) -> None:
    """Wait for a moment of the clock that sidecars and this test share."""
    eventually(lambda: time.time() >= moment_s, 10)  # noqa: TID251  the test is about this clock


@pytest.mark.requirement("R15")
async def test_an_override_begins_and_ends_to_the_second_without_anybody_elses_help(
    store: Store, sidecar: Sidecar, envoy: Envoy
) -> None:
    """No operator runs here: the sidecar alone watches the clock."""
    now_s = int(time.time())  # noqa: TID251  the test is about this clock
    begins, ends = now_s + 2, now_s + 4
    window = override("vip", action="Set", limit={"burst": 8}, notBefore=begins, notAfter=ends)
    sidecar.publish(document(policy(rule(limit=limit(2, period_s=HOUR_S))), overrides=[window]))
    assert await admitted(envoy, "vip", 4) == 2
    await until(store, begins)
    assert await admitted(envoy, "vip", 10) == 6
    assert await admitted(envoy, "other", 4) == 2
    await until(store, ends)
    assert not (await envoy.key("vip")).allowed


@pytest.mark.requirement("R15")
async def test_overrides_exempt_and_block_their_subjects_only(sidecar: Sidecar, envoy: Envoy) -> None:
    exempt, block = override("probe", action="Exempt"), override("abuser", action="Block", id="team-orders/block")
    sidecar.publish(document(policy(rule(limit=limit(2, period_s=HOUR_S))), overrides=[exempt, block]))
    assert await admitted(envoy, "probe", 10) == 10
    blocked = await envoy.key("abuser")
    assert (blocked.status, blocked.headers["retry-after"]) == (429, "3600")
    assert "blocked" in blocked.problem["detail"]
    assert await admitted(envoy, "other", 4) == 2


async def test_a_shadow_rule_counts_and_leaves_every_answer_as_it_was(sidecar: Sidecar, envoy: Envoy) -> None:
    shadow = rule("shadow", mode="Shadow", limit=limit(1, period_s=HOUR_S))
    enforced = rule("real", limit=limit(4, period_s=HOUR_S))
    sidecar.publish(document(policy(shadow, enforced)))
    with_shadow = [await envoy.key("a") for _ in range(5)]
    sidecar.publish(document(policy(enforced)))
    without = [await envoy.key("b") for _ in range(5)]
    shape = [(answer.status, answer.headers.get("ratelimit-policy")) for answer in with_shadow]
    assert shape == [(answer.status, answer.headers.get("ratelimit-policy")) for answer in without]
    assert "shadow" not in str([answer.headers for answer in with_shadow])


@pytest.mark.parametrize("reaction", ["Skip", "Share", "Deny"])
async def test_a_missing_key_is_evidence_whatever_the_rule_does_about_it(
    sidecar: Sidecar, envoy: Envoy, reaction: str
) -> None:
    """D28."""
    sidecar.publish(single(onMissingKey=reaction))
    assert (await envoy.get(headers={})).allowed == (reaction != "Deny")
    await envoy.key("k")
    assert sidecar.rule()["missingKey"] == 1


async def test_requests_that_no_rule_covers_never_reach_the_store(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    exempt = [{"clientIP": ["10.0.0.0/8"]}]
    sidecar.publish(document(policy(rule(), rule("off", mode="Disabled"), exempt=exempt)))
    with store.client() as client:
        before = client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
        assert (await envoy.get(headers={"x-api-key": "k"}, host="elsewhere.example.com")).headers == {}
        assert (await envoy.get(headers={"x-api-key": "k", "x-weir-client-ip": "10.9.8.7"})).allowed
        assert (await envoy.get(headers={})).allowed
        assert client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0) == before
    assert sidecar.metric("weir_requests_total", decision="unmatched") == 1
    assert sidecar.metric("weir_requests_total", decision="exempt") == 1
    assert sidecar.rule()["missingKey"] == 1


@pytest.mark.requirement("R10")
async def test_one_request_is_one_script_call(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    by_address = rule("address", key=[{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}], limit=limit(50))
    sidecar.publish(document(policy(rule(limit=limit(50)), by_address, rule("all", key=[], limit=limit(50)))))
    with store.client() as client:
        before = client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
        for _ in range(10):
            assert (await envoy.get(headers={"x-api-key": "k", "x-weir-client-ip": "192.0.2.1"})).allowed
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == before + 10
