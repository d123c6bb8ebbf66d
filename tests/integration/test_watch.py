# SPDX-License-Identifier: Apache-2.0
"""The watch on the ConfigMap: edits arrive, and neither a deleted object nor an absent API server takes rules away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lab.store import Store
from rig.apiserver import NAMESPACE, ApiServer
from rig.documents import document, limit, policy, revision_of, rule, single
from rig.envoy import Envoy
from rig.sidecar import GLASS, NAME, Sidecar


@pytest_asyncio.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer(NAME, GLASS) as api:
        yield api


@pytest.fixture
def start_watching(start_sidecar: Callable[..., Sidecar], store: Store, api: ApiServer, tmp_path: Path) -> Any:
    """Starts a sidecar that watches `api`, in a thread, because this event loop is the API server's."""
    flags = ("--rules-configmap", f"{NAMESPACE}/{NAME}")
    env = {"KUBECONFIG": str(api.kubeconfig(tmp_path))}
    return lambda: asyncio.to_thread(start_sidecar, store.url, flags=flags, env=env)


async def publish(api: ApiServer, sidecar: Sidecar, text: bytes) -> None:
    api.write({"ruleset.json": text.decode()})
    await asyncio.to_thread(sidecar.wait_revision, revision_of(text))


async def wait_watch(sidecar: Sidecar, state: str, error: str = "") -> None:
    """Return once the watch's state and error are these."""
    async with asyncio.timeout(10):
        while True:
            watch = (await asyncio.to_thread(sidecar.status))["watch"]
            if watch["state"] == state and error in watch["error"]:
                return


@pytest.mark.requirement("R44")
async def test_every_edit_arrives_through_the_watch(api: ApiServer, start_watching: Any) -> None:
    sidecar = await start_watching()
    for _ in range(20):
        await publish(api, sidecar, single())
    assert sidecar.ruleset()["source"] == "Watch"
    assert sidecar.metric("weir_watch_connected") == 1
    assert api.forbidden == [], "the limiter may only ask for its own ConfigMaps"


@pytest.mark.requirement("R45")
async def test_a_deleted_configmap_leaves_the_last_good_rules_and_is_reported(
    api: ApiServer, start_watching: Any
) -> None:
    sidecar = await start_watching()
    await publish(api, sidecar, single(limit=limit(2, period_s=3600)))
    api.delete()
    await wait_watch(sidecar, "Connected", "does not exist; the last good rules stay")
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).allowed for _ in range(3)] == [True, True, False]
    await publish(api, sidecar, single())
    await wait_watch(sidecar, "Connected", "")


@pytest.mark.requirement("R45")
async def test_an_absent_api_server_leaves_the_rules_and_its_return_brings_the_newest(
    api: ApiServer, start_watching: Any
) -> None:
    sidecar = await start_watching()
    await publish(api, sidecar, single(limit=limit(2, period_s=3600)))
    await api.stop()
    await wait_watch(sidecar, "Disconnected")
    assert sidecar.metric("weir_watch_connected") == 0
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).allowed for _ in range(3)] == [True, True, False]
    newest = single()
    api.write({"ruleset.json": newest.decode()})
    await api.start()
    await asyncio.to_thread(sidecar.wait_revision, revision_of(newest))
    await wait_watch(sidecar, "Connected")


async def test_a_watch_that_stands_again_says_so_without_an_edit(api: ApiServer, start_watching: Any) -> None:
    sidecar = await start_watching()
    await publish(api, sidecar, single())
    await api.stop()
    await wait_watch(sidecar, "Disconnected")
    await api.start()
    await wait_watch(sidecar, "Connected")
    assert sidecar.metric("weir_watch_connected") == 1


@pytest.mark.requirement("R45")
async def test_the_mount_serves_while_the_api_server_is_away_and_the_higher_revision_wins(
    api: ApiServer, start_watching: Any
) -> None:
    await api.stop()
    sidecar = await start_watching()
    older, mounted, newer = single(), single(), single()
    await asyncio.to_thread(sidecar.publish, mounted)
    assert sidecar.ruleset()["source"] == "Mount"
    api.write({"ruleset.json": older.decode()})
    await api.start()
    await wait_watch(sidecar, "Connected")
    assert sidecar.ruleset()["revision"] == revision_of(mounted)
    await publish(api, sidecar, newer)
    assert sidecar.ruleset()["source"] == "Watch"


async def test_a_configmap_without_a_document_is_reported(api: ApiServer, start_watching: Any) -> None:
    sidecar = await start_watching()
    await publish(api, sidecar, document(policy(rule())))
    api.write({"other.json": "{}"})
    await wait_watch(sidecar, "Connected", "neither ruleset.json nor ruleset.json.gz")
