# SPDX-License-Identifier: Apache-2.0
"""One environment for all end-to-end tests; a namespace and hosts of its own for each test module.

Modules share gateways and the store, and cannot disturb each other: a namespace may limit only its own hosts, and the
operator enforces that.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.environment import Environment
from lab.layout import SHARED_MACHINE, TEAM_HOSTS, Layout, StoreKind
from lab.team import Team

_HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def environment() -> Iterator[Environment]:
    """Everything up, with a namespace for each test module."""
    own = {_namespace(path): (_host(path), f"*.{_host(path)}") for path in sorted(_HERE.glob("test_*.py"))}
    store = StoreKind(os.environ.get("STORE", StoreKind.SINGLE))
    hosts = {**TEAM_HOSTS, **own}
    # What is expected of a status must not depend on how long ago a test on a busy machine sent its last request.
    conditions = {"unmatchedAfter": "86400s", "unaskedAfter": "86400s"}
    layout = Layout(
        pairs=2,
        store=store,
        patience=SHARED_MACHINE,
        max_delay_ms=3_000,
        hosts=hosts,
        conditions=conditions,
        reviewed="webhook",
    )
    lab = Environment("test", layout)
    lab.start()
    try:
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="session")
def cluster(environment: Environment) -> Cluster:
    """The environment's Kubernetes API."""
    return environment.cluster


@pytest.fixture
def team(environment: Environment, request: pytest.FixtureRequest) -> Iterator[Team]:
    """The module's own team, without any policy before and after the test; every part runs again after it."""
    team = Team(environment, _namespace(request.path), _host(request.path))
    yield team
    environment.revive()
    team.leave()


@pytest.fixture(scope="module")
def standing_team(environment: Environment, request: pytest.FixtureRequest) -> Iterator[Team]:
    """The module's team, for modules whose tests share policies: cleaned after the last test."""
    team = Team(environment, _namespace(request.path), _host(request.path))
    yield team
    team.leave()


@pytest.fixture
def api_key() -> dict[str, str]:
    """A header with a key that no other test uses, so that its bucket is full."""
    return {"x-api-key": f"key-{uuid.uuid4()}"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    environment = getattr(item, "funcargs", {}).get("environment")
    if report.failed and environment is not None:
        report.sections += [(f"end of {part.log}", part.tail(12)) for part in environment.parts]
    return report


def _namespace(module: Path) -> str:
    return module.stem.removeprefix("test_").replace("_", "-")


def _host(module: Path) -> str:
    return f"{_namespace(module)}.test"
