# SPDX-License-Identifier: Apache-2.0
"""The stores that the conformance tests run on: one server, and one cluster, of each flavour for the whole session."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from core import Core
from lab.store import Flavour, Store, StoreCluster, StoreMissingError, find_server, start_cluster, start_store
from script import Script

SERVERS = [Flavour.REDIS, Flavour.NEWEST_REDIS, Flavour.VALKEY]
CLUSTERS = [Flavour.REDIS, Flavour.VALKEY]

_NAMESPACES = count()

# A slow machine is no counter-example, and the session's servers may be shared by all examples of a test.
settings.register_profile(
    "conformance",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("conformance")


@pytest.fixture(scope="session", params=SERVERS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A server of each flavour in turn. The oldest Redis where it is installed; wheels bring the others."""
    running = start_store(tmp_path_factory.mktemp("store"), flavour=_available(request.param))
    yield running
    running.stop()


@pytest.fixture(scope="session", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreCluster]:
    """Three primaries of each flavour in turn."""
    running = start_cluster(tmp_path_factory.mktemp("cluster"), flavour=_available(request.param))
    yield running
    running.stop()


@pytest.fixture
def script(store: Store) -> Iterator[Script]:
    """The script over the server, with keys that no other test uses."""
    clock_stands = "valkey" in store.server.name
    with store.client() as client:
        yield Script(client, f"test-{next(_NAMESPACES)}", ttl_tolerance_ms=0 if clock_stands else 1000)


@pytest.fixture
def core_module() -> Any:
    """The limiter's extension module. On a CI machine it has been built before this ring, so there it may not miss."""
    if "CI" not in os.environ:
        pytest.importorskip("weir_limiter._core", reason="the limiter is not built")
    return importlib.import_module("weir_limiter._core")


@pytest.fixture
def core(core_module: Any) -> Core:
    """The Rust core."""
    return Core(core_module.evaluate)


def _available(flavour: Flavour) -> Flavour:
    try:
        find_server(flavour)
    except StoreMissingError as missing:
        pytest.skip(str(missing))
    return flavour
