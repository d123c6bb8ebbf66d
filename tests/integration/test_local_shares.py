# SPDX-License-Identifier: Apache-2.0
"""What limiters grant by themselves while the store is away: their shares, no more, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lab.processes import free_port
from lab.store import Store
from rig.asking import ask_until
from rig.documents import document, leaky, limit, policy, rule
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.toxiproxy import Toxiproxy

HOUR_S = 3600


def nowhere() -> str:
    """A store where nothing listens."""
    return f"redis://127.0.0.1:{free_port()}"


def shared(requests: int, limiters: int | None = 1, **members: Any) -> bytes:
    """One rule of so many requests per hour and key, which the limiters split, unless `members` have a factor."""
    members = {"limit": limit(requests, period_s=HOUR_S), "onStoreFailure": "Local", **members}
    return document(policy(rule(**members)), **({} if limiters is None else {"limiters": limiters}))


async def admitted(envoy: Envoy, key: str, requests: int) -> int:
    return sum([(await envoy.key(key)).allowed for _ in range(requests)])


@pytest.mark.requirement("R22", "R24")
async def test_a_split_limit_is_granted_once_by_all_limiters_together(start_sidecar: Callable[..., Sidecar]) -> None:
    """D41: ten an hour over five limiters are two in each; five times that is the whole and no more."""
    total = 0
    for _ in range(5):
        sidecar = start_sidecar(nowhere())
        sidecar.publish(shared(10, limiters=5))
        async with Envoy.beside(sidecar.socket) as envoy:
            total += await admitted(envoy, "k", 10)
    assert total == 10


@pytest.mark.requirement("R13", "R22")
async def test_a_dear_request_passes_in_each_limiter_although_its_share_is_smaller(
    start_sidecar: Callable[..., Sidecar],
) -> None:
    """D41: of twenty an hour four limiters have five each; an export costs ten, and is not lost for the outage."""
    export = [{"match": {"path": "/export", "methods": []}, "cost": 10}]
    sidecar = start_sidecar(nowhere())
    sidecar.publish(shared(20, limiters=4, cost=export))
    async with Envoy.beside(sidecar.socket) as envoy:
        exports = [(await envoy.get("/export", {"x-api-key": "k"})).allowed for _ in range(2)]
        assert exports == [True, False]
        assert await admitted(envoy, "other", 20) == 10


@pytest.mark.requirement("R22")
async def test_a_fleet_that_grows_during_the_outage_splits_anew_without_a_fresh_budget(
    start_sidecar: Callable[..., Sidecar],
) -> None:
    """D41: scaled from one to five while the store is away."""
    sidecar = start_sidecar(nowhere())
    sidecar.publish(shared(10, limiters=1))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert await admitted(envoy, "k", 1) == 1
        sidecar.publish(shared(10, limiters=5))
        assert await admitted(envoy, "k", 10) == 1, "of two, one is used"
        assert await admitted(envoy, "other", 10) == 2


@pytest.mark.requirement("R22")
async def test_a_factor_holds_in_every_limiter(start_sidecar: Callable[..., Sidecar]) -> None:
    for _ in range(2):
        sidecar = start_sidecar(nowhere())
        sidecar.publish(shared(3, limiters=None, localFactorMilli=2_000))
        async with Envoy.beside(sidecar.socket) as envoy:
            assert await admitted(envoy, "k", 10) == 6


@pytest.mark.requirement("R22", "R23", "R30")
async def test_clients_metrics_and_status_are_told_of_the_share(start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(nowhere())
    sidecar.publish(shared(10, limiters=5))
    async with Envoy.beside(sidecar.socket) as envoy:
        passed = await envoy.key("k")
        assert passed.headers == {
            "x-ratelimit-mode": "local",
            "ratelimit-policy": '"burst";q=2;w=3600',
            "ratelimit": '"burst";r=1;t=1800',
        }
        await envoy.key("k")
        refused = await envoy.key("k")
    assert (refused.status, refused.headers["x-ratelimit-mode"], refused.headers["retry-after"]) == (
        429,
        "local",
        "1800",
    )
    assert "while its counters cannot be reached" in refused.problem["detail"]
    assert sidecar.metric("weir_requests_total", decision="local") == 2
    assert sidecar.metric("weir_requests_total", decision="refused") == 1
    burst = {"policy": "team-orders/orders-api", "rule": "burst"}
    assert sidecar.metric("weir_rule_decisions_total", outcome="local_allowed", **burst) == 2
    assert sidecar.metric("weir_rule_decisions_total", outcome="local_rejected", **burst) == 1
    assert sidecar.metric("weir_rule_store_failures_total", reason="connection", **burst) == 3
    evidence = sidecar.rule()
    assert {name: evidence[name] for name in ("requests", "rejected", "storeFailures", "local")} == {
        "requests": 3, "rejected": 1, "storeFailures": 3, "local": 3,
    }  # fmt: skip
    assert sidecar.status()["memory"] == {"subjects": 1, "evictions": 0}


async def test_the_mode_header_of_a_share_can_be_switched_off(start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(nowhere(), flags=("--no-mode-header",))
    sidecar.publish(shared(10, limiters=5))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert "x-ratelimit-mode" not in (await envoy.key("k")).headers


@pytest.mark.requirement("R22")
async def test_a_denial_by_the_store_is_final_and_asks_no_share(sidecar: Sidecar, envoy: Envoy) -> None:
    """D34: two from the store, a hundred times that from the share; with the store there only the two count."""
    sidecar.publish(shared(2, limiters=None, localFactorMilli=100_000))
    assert await admitted(envoy, "k", 20) == 2
    dear = [{"match": {"path": "/dear", "methods": []}, "cost": 2}]
    sidecar.publish(shared(2, limiters=None, localFactorMilli=100_000, cost=dear))
    assert (await envoy.key("k", "/dear")).status == 429
    assert sidecar.status()["memory"]["subjects"] == 0, "the share was not asked"
    assert sidecar.rule()["local"] == 0


@pytest.mark.requirement("R22", "R24")
async def test_a_share_is_not_fresh_each_time_that_the_store_comes_and_goes(
    store: Store, toxiproxy: Toxiproxy, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D41: what was granted during one outage is gone in the next, and its denials are final (D34, the mirror)."""
    proxy = toxiproxy.to(store.port)
    sidecar = start_sidecar(proxy.url, flags=("--store-deadline", "10ms"))
    sidecar.publish(shared(1_000, limiters=250))
    granted = 0
    async with Envoy.beside(sidecar.socket) as envoy:
        for _ in range(3):
            await ask_until(sidecar, envoy, "Up")
            with proxy.toxic("latency", latency=60):
                await ask_until(sidecar, envoy, "Down")
                for _ in range(10):
                    answer = await envoy.key("client")
                    assert answer.headers["x-ratelimit-mode"] == "local"
                    granted += answer.allowed
    assert granted == 4


@pytest.mark.requirement("R22")
async def test_closed_rules_refuse_before_a_share_is_taken_and_open_ones_pass_beside_it(
    start_sidecar: Callable[..., Sidecar],
) -> None:
    sidecar = start_sidecar(nowhere())
    everywhere: dict[str, Any] = {"hosts": [], "routes": []}
    login = {"hosts": [], "routes": [{"path": "/login", "methods": []}]}
    hourly = {"limit": limit(2, period_s=HOUR_S)}
    both = [rule(onStoreFailure="Local", **hourly), rule("free", key=[], **hourly)]
    closed = rule("login", onStoreFailure="Closed", **hourly)
    policies = policy(*both, id="a/all", match=everywhere), policy(closed, id="b/login", match=login)
    sidecar.publish(document(*policies, limiters=1))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k", "/login")).status for _ in range(5)] == [503] * 5
        passed = [await envoy.key("k", "/") for _ in range(3)]
    assert [answer.allowed for answer in passed] == [True, True, False]
    assert passed[0].headers == {"x-ratelimit-mode": "open"}, "one of its rules passed unlimited"


@pytest.mark.requirement("R22")
async def test_a_share_of_a_leaky_bucket_holds_requests_as_the_whole_does(
    start_sidecar: Callable[..., Sidecar],
) -> None:
    """Ten a second over two limiters leave every 200 ms here; of the queue of four, two wait here."""
    sidecar = start_sidecar(nowhere())
    sidecar.publish(document(policy(rule(onStoreFailure="Local", limit=leaky(10, queue=4, max_delay_s=5))), limiters=2))
    async with Envoy.beside(sidecar.socket) as envoy:
        answers = await asyncio.gather(*(envoy.key("k") for _ in range(4)))
    assert sorted(answer.allowed for answer in answers) == [False, True, True, True]
    assert {answer.headers["x-ratelimit-mode"] for answer in answers} == {"local"}
    assert sidecar.metric("weir_hold_seconds_count") == 2
    assert sidecar.metric("weir_hold_seconds_sum") > 0.5


@pytest.mark.requirement("R22", "R24")
async def test_memory_is_bounded_whatever_the_outage_brings(start_sidecar: Callable[..., Sidecar]) -> None:
    """D31: shares for thousands of subjects, twice; the second round needs no more memory than the first."""
    sidecar = start_sidecar(nowhere())
    sidecar.publish(shared(10, limiters=1))
    async with Envoy.beside(sidecar.socket) as envoy:

        async def flood(name: str) -> None:
            for batch in range(40):
                await asyncio.gather(*(envoy.key(f"{name}-{batch}-{number}") for number in range(100)))

        await flood("client")
        await flood("client")
        before = sidecar.resident_bytes()
        for _ in range(3):
            await flood("client")
        assert sidecar.status()["memory"] == {"subjects": 4_000, "evictions": 0}
        assert sidecar.resident_bytes() - before < 2 << 20
