# SPDX-License-Identifier: Apache-2.0
"""A store for each module, a cluster for all, emptied between tests; sidecars and connections that end with a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lab.store import Flavour, Store, StoreCluster, start_cluster, start_store
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.stores import available
from rig.toxiproxy import Toxiproxy, start_toxiproxy


@pytest.fixture(scope="module")
def module_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The server that this machine has; with `EVERY_SERVER` each of those that are supported."""
    flavour = available(getattr(request, "param", Flavour.ANY))
    store = start_store(tmp_path_factory.mktemp("store"), flavour=flavour)
    yield store
    store.stop()


@pytest.fixture
def store(module_store: Store) -> Store:
    """A running store without keys."""
    with module_store.client() as client:
        client.flushall()
    return module_store


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[Store]:
    """A store of the test's own, to be broken."""
    store = start_store(tmp_path, name="frail")
    yield store
    store.resume()
    store.stop()


@pytest.fixture(scope="session", params=[Flavour.REDIS, Flavour.VALKEY])
def session_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreCluster]:
    """Three primaries, each with a replica: for all modules, because to agree takes them ten seconds."""
    cluster = start_cluster(tmp_path_factory.mktemp("cluster"), flavour=available(request.param), replicas=1)
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(session_cluster: StoreCluster) -> Iterator[StoreCluster]:
    """A whole cluster without keys, which the test may break."""
    for node in session_cluster.primaries():
        node.run("FLUSHALL")
    yield session_cluster
    session_cluster.resume()
    session_cluster.restart()


@pytest.fixture(scope="session")
def toxiproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    """The fault-injecting proxy's server, for all tests."""
    server = start_toxiproxy(tmp_path_factory.mktemp("toxiproxy"))
    yield server
    server.part.stop()


@pytest.fixture
def start_sidecar(tmp_path: Path) -> Iterator[Callable[..., Sidecar]]:
    """Starts a sidecar for a store's URL; arguments are Sidecar's. Prints its log when the test fails."""
    started: list[Sidecar] = []

    def start(store_url: str, **options: Any) -> Sidecar:
        sidecar = Sidecar(tmp_path, store_url, name=f"limiter-{len(started)}", **options)
        started.append(sidecar)
        sidecar.wait_up()
        return sidecar

    yield start
    for sidecar in started:
        sidecar.part.stop()
        print(f"--- {sidecar.name}\n{sidecar.part.tail()}")


@pytest.fixture
def sidecar(store: Store, start_sidecar: Callable[..., Sidecar]) -> Sidecar:
    """A sidecar that is connected to the store and has no rules yet."""
    sidecar = start_sidecar(store.url)
    sidecar.wait_store("Up")
    return sidecar


@pytest.fixture
def pair(cluster: StoreCluster, start_sidecar: Callable[..., Sidecar]) -> list[Sidecar]:
    """Two sidecars that are connected to the cluster and have no rules yet."""
    sidecars = [start_sidecar(cluster.url), start_sidecar(cluster.url)]
    for sidecar in sidecars:
        sidecar.wait_store("Up")
    return sidecars


@pytest_asyncio.fixture
async def envoy(sidecar: Sidecar) -> AsyncIterator[Envoy]:
    """A connection to `sidecar`."""
    async with Envoy.beside(sidecar.socket) as envoy:
        yield envoy
