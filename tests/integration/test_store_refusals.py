# SPDX-License-Identifier: Apache-2.0
"""A store that answers, and refuses: each refusal is told apart, says what to do, and charges nothing by halves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from lab.store import Store, start_store
from lab.waiting import eventually
from rig.documents import document, limit, policy, rule, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar

OPEN = {"x-ratelimit-mode": "open"}


def failures(sidecar: Sidecar, reason: str) -> float:
    return sidecar.metric("weir_store_failures_total", reason=reason)


async def ask_until_failed(sidecar: Sidecar, envoy: Envoy, reason: str) -> None:
    """Ask until a request failed for this reason, and the state of the store is told by it."""
    async with asyncio.timeout(30):
        while failures(sidecar, reason) == 0:
            assert (await envoy.key("k")).allowed


@pytest.mark.requirement("R24")
async def test_a_key_of_another_type_concerns_its_subject_alone(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """WRONGTYPE, thirty times: neither the store's state nor its breaker takes that for a fault of the server."""
    sidecar.publish(single(limit=limit(1_000, period_s=3600)))
    await envoy.key("spoilt")
    with store.client() as client:
        (key,) = client.keys("weir:*")
        client.delete(key)
        client.hset(key, "somebody", "else")
    answers = [await envoy.key("spoilt") for _ in range(30)]
    assert all(answer.headers == OPEN for answer in answers)
    assert failures(sidecar, "wrongtype") == 30
    assert "ratelimit" in (await envoy.key("other")).headers
    assert sidecar.status()["store"]["state"] == "Up"
    assert sidecar.metric("weir_store_breakers_open") == 0


@pytest.mark.requirement("R24")
async def test_a_call_that_fails_at_one_rule_charges_none(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """A log has a key of its own; when that one is spoilt, the bucket of the same call is not touched."""
    log: dict[str, Any] = {"algorithm": "SlidingWindowLog", "requests": 100, "periodUs": 3_600_000_000}
    sidecar.publish(document(policy(rule(limit=limit(100, period_s=3600)), rule("log", limit=log))))
    await envoy.key("k")
    with store.client() as client:
        kept = {key: client.get(key) for key in client.keys("weir:*") if client.type(key) == b"string"}
        longest = max(kept, key=len)
        client.delete(longest)
        client.hset(longest, "somebody", "else")
        for _ in range(5):
            assert (await envoy.key("k")).headers == OPEN
        (bucket,) = kept.keys() - {longest}
        assert client.get(bucket) == kept[bucket]


@pytest.mark.requirement("R23", "R24")
async def test_a_full_store_that_is_seldom_asked_stays_down_until_it_takes_writes(
    tmp_path: Path, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D35: it answers pings. Else it would be told as up, and as down with the next request, until it has room."""
    store = start_store(tmp_path, name="full")
    try:
        sidecar = start_sidecar(store.url)
        sidecar.wait_store("Up")
        sidecar.publish(single())
        with store.client() as client:
            client.config_set("maxmemory", 1)
            async with Envoy.beside(sidecar.socket) as envoy:
                assert (await envoy.key("k")).headers == OPEN
                eventually(lambda: tried(client) >= 4, 20, what="the limiter has tried some times whether it can write")
                assert sidecar.log().count("store is up") == 1
                client.config_set("maxmemory", 0)
                sidecar.wait_store("Up")
                assert "ratelimit" in (await envoy.key("k")).headers
    finally:
        store.stop()


def tried(client: redis.Redis) -> int:
    """How often somebody has tried to write beside the script, in vain."""
    return int(client.info("commandstats").get("cmdstat_psetex", {"rejected_calls": 0})["rejected_calls"])


@contextmanager
def running_for_ever(store: Store) -> Iterator[None]:
    """Somebody's script that does not end, until it is killed."""

    def run() -> None:
        with store.client() as client, pytest.raises(redis.ResponseError):
            client.eval("while true do end", 0)

    with store.client() as client:
        client.config_set("busy-reply-threshold", 50)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        with store.client() as client:
            eventually(client.script_kill, 10, what="the script is killed")
        thread.join()


@pytest.mark.requirement("R21", "R24")
async def test_a_script_that_does_not_end_is_told_with_its_remedy_and_over_when_it_is_killed(
    tmp_path: Path, start_sidecar: Callable[..., Sidecar]
) -> None:
    """BUSY, then SCRIPT KILL."""
    store = start_store(tmp_path, name="busy")
    try:
        sidecar = start_sidecar(store.url, flags=("--store-deadline", "50ms"))
        sidecar.wait_store("Up")
        sidecar.publish(single(limit=limit(1_000, period_s=3600)))
        async with Envoy.beside(sidecar.socket) as envoy:
            with running_for_ever(store):
                await ask_until_failed(sidecar, envoy, "busy")
                assert "SCRIPT KILL" in sidecar.status()["store"]["error"]
            sidecar.wait_store("Up")
            assert "ratelimit" in (await envoy.key("k")).headers
    finally:
        store.stop()


@pytest.mark.requirement("R24")
async def test_a_replica_without_its_primary_is_told_with_its_remedy(
    tmp_path: Path, start_sidecar: Callable[..., Sidecar]
) -> None:
    """MASTERDOWN, until it is a primary again."""
    store = start_store(tmp_path, name="orphan", extra=("replica-serve-stale-data no",))
    try:
        sidecar = start_sidecar(store.url)
        sidecar.wait_store("Up")
        sidecar.publish(single(limit=limit(1_000, period_s=3600)))
        async with Envoy.beside(sidecar.socket) as envoy:
            store.run("REPLICAOF", "127.0.0.1", 1)
            await ask_until_failed(sidecar, envoy, "loading")
            assert "lost its primary" in sidecar.status()["store"]["error"]
            store.run("REPLICAOF", "NO", "ONE")
            sidecar.wait_store("Up")
            assert "ratelimit" in (await envoy.key("k")).headers
    finally:
        store.stop()


@pytest.mark.requirement("R24")
async def test_a_replica_is_not_well_because_it_can_be_reached(
    frail: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """READONLY under slow traffic: each refusal ends the link, and a new link proves nothing before a write."""
    sidecar = start_sidecar(frail.url)
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(1_000, period_s=3600)))
    with frail.client() as client:
        async with Envoy.beside(sidecar.socket) as envoy:
            client.replicaof("127.0.0.1", 1)
            await ask_until_failed(sidecar, envoy, "readonly")
            states = set()
            for _ in range(7):  # the pauses before a new link grow to a second meanwhile
                before, failed = links(client), failures(sidecar, "readonly")
                async with asyncio.timeout(20):
                    while failures(sidecar, "readonly") == failed:
                        if links(client) > before:
                            await envoy.key("k")
                        states.add(sidecar.status()["store"]["state"])
            assert states == {"Down"}
            client.replicaof("NO", "ONE")
            await asyncio.to_thread(sidecar.wait_store, "Up")


def links(client: redis.Redis) -> int:
    """How often somebody has connected to the store."""
    return int(client.info("stats")["total_connections_received"])


@pytest.mark.requirement("R24")
def test_a_missing_password_is_told_with_its_remedy(tmp_path: Path, start_sidecar: Callable[..., Sidecar]) -> None:
    """NOAUTH: the URL has no password, and the server asks for one."""
    store = start_store(tmp_path, name="locked", password="the-right-one")
    try:
        sidecar = start_sidecar(f"redis://127.0.0.1:{store.port}")
        sidecar.wait_store("Down")
        assert "asks for a password" in sidecar.status()["store"]["error"]
    finally:
        store.stop()
