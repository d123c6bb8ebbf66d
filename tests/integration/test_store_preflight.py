# SPDX-License-Identifier: Apache-2.0
"""What makes a server a bad store is told in /status, in a metric and in the log, with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.store import Flavour, Store, start_store
from lab.waiting import eventually
from rig.documents import limit, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.stores import available, documented_rights, set_user

CHECKS = ("eviction", "role", "version", "rights")


@pytest.fixture(params=[Flavour.REDIS, Flavour.NEWEST_REDIS, Flavour.VALKEY])
def own_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A server of the test's own, of each flavour in turn."""
    store = start_store(tmp_path, name="own", flavour=available(request.param))
    yield store
    store.stop()


def finding(sidecar: Sidecar, check: str) -> dict[str, Any]:
    """What was found about one thing. Raises AssertionError before anything was."""
    found = {entry["check"]: entry for entry in sidecar.status()["store"]["preflight"]}
    assert set(found) == set(CHECKS), "not looked at yet"
    return dict(found[check])


def assert_only_wrong(sidecar: Sidecar, check: str) -> str:
    """Exactly this check fails, everywhere where that shows; return what people are told."""
    eventually(lambda: not finding(sidecar, check)["ok"], 10, what=f"{check} is found wrong")
    for other in CHECKS:
        good = other != check
        assert finding(sidecar, other)["ok"] is good
        assert sidecar.metric("weir_store_preflight_ok", check=other) == good
    message = str(finding(sidecar, check)["message"])
    assert message in sidecar.log()
    return message


@pytest.mark.requirement("R49")
def test_a_server_as_it_should_be_passes_every_check(own_store: Store, start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(own_store.url)
    for check in CHECKS:
        eventually(lambda check=check: finding(sidecar, check) == {"check": check, "ok": True, "message": ""}, 10)
        assert sidecar.metric("weir_store_preflight_ok", check=check) == 1


@pytest.mark.requirement("R49")
def test_an_eviction_policy_that_forgets_counters_is_reported(
    tmp_path: Path, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D35."""
    store = start_store(tmp_path, name="evicting", extra=("maxmemory-policy allkeys-lru",))
    try:
        sidecar = start_sidecar(store.url)
        message = assert_only_wrong(sidecar, "eviction")
        assert "allkeys-lru" in message
        assert "set maxmemory-policy noeviction" in message
        assert sidecar.status()["store"]["state"] == "Up", "it still limits"
    finally:
        store.stop()


@pytest.mark.requirement("R49")
async def test_a_replica_given_as_primary_is_reported_with_its_primary(
    own_store: Store, tmp_path: Path, start_sidecar: Callable[..., Sidecar]
) -> None:
    replica = start_store(tmp_path, name="replica", extra=(f"replicaof 127.0.0.1 {own_store.port}",))
    try:
        sidecar = start_sidecar(replica.url)
        message = assert_only_wrong(sidecar, "role")
        assert f"127.0.0.1:{own_store.port}" in message
        sidecar.publish(single())
        async with Envoy.beside(sidecar.socket) as envoy:
            assert (await envoy.key("k")).headers == {"x-ratelimit-mode": "open"}
        assert sidecar.metric("weir_store_failures_total", reason="readonly") == 1
    finally:
        replica.stop()


@pytest.mark.requirement("R49")
async def test_a_user_without_evalsha_is_reported_with_what_is_missing(
    own_store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    set_user(own_store, documented_rights() + " -evalsha")
    sidecar = start_sidecar(as_user(own_store))
    assert "may not run EVALSHA" in assert_only_wrong(sidecar, "rights")
    sidecar.publish(single())
    async with Envoy.beside(sidecar.socket) as envoy:
        assert (await envoy.key("k")).headers == {"x-ratelimit-mode": "open"}
    assert sidecar.metric("weir_store_failures_total", reason="auth") == 1


@pytest.mark.requirement("R49")
def test_a_user_of_other_keys_is_reported(own_store: Store, start_sidecar: Callable[..., Sidecar]) -> None:
    set_user(own_store, documented_rights().replace("~weir:*", "~other:*"))
    message = assert_only_wrong(start_sidecar(as_user(own_store)), "rights")
    assert "GET" in message
    assert "weir:*" in message


@pytest.mark.requirement("R49")
async def test_a_user_with_exactly_the_documented_rights_passes_and_decides(
    own_store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D32: and a probe that the user may not send proves that the server lives."""
    set_user(own_store, documented_rights())
    sidecar = start_sidecar(as_user(own_store))
    for check in CHECKS:
        eventually(lambda check=check: finding(sidecar, check)["ok"], 10)
        assert finding(sidecar, check)["message"] == ""
    sidecar.publish(single(limit=limit(1, period_s=3600)))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).allowed for _ in range(2)] == [True, False]
        own_store.run("SCRIPT FLUSH")
        assert not (await envoy.key("k")).allowed
    with own_store.client() as client:
        eventually(lambda: "ping" in str(client.acl_log()), 15, what="a probe was refused")
    assert sidecar.log().count("store is down") == 0


@pytest.mark.requirement("R49")
def test_a_server_that_does_not_tell_is_no_error(own_store: Store, start_sidecar: Callable[..., Sidecar]) -> None:
    """Managed services often refuse INFO and CONFIG."""
    set_user(own_store, documented_rights().replace(" +info", ""))
    sidecar = start_sidecar(as_user(own_store))
    for check in ("eviction", "role", "version"):
        eventually(lambda check=check: finding(sidecar, check)["ok"], 10)
        assert finding(sidecar, check)["message"].startswith("could not be checked")
        assert sidecar.metric("weir_store_preflight_ok", check=check) == 1
    assert finding(sidecar, "rights") == {"check": "rights", "ok": True, "message": ""}


def as_user(store: Store) -> str:
    """The store's URL for that user."""
    return f"redis://limiter:pass@127.0.0.1:{store.port}"
