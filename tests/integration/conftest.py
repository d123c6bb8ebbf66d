# SPDX-License-Identifier: Apache-2.0
"""A store for each module, emptied between tests; sidecars and connections that end with their test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lab.store import Flavour, Store, start_store
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.stores import available


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


@pytest_asyncio.fixture
async def envoy(sidecar: Sidecar) -> AsyncIterator[Envoy]:
    """A connection to `sidecar`."""
    async with Envoy.beside(sidecar.socket) as envoy:
        yield envoy
