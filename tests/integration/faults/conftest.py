# SPDX-License-Identifier: Apache-2.0
"""Sidecars with the deadline that users get, a store to be broken, and the table of how long requests waited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from lab.store import Flavour, Store
from rig.judge import HEADER, lines
from rig.sidecar import Sidecar, prompt
from rig.toxiproxy import Proxy, Toxiproxy
from rig.traffic import Running, Traffic

_WIDTH = 57  # of what a fault is called in the table
_TABLE = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How long requests waited: for people to read, and never the measure of a test."""
    rows = config.stash.get(_TABLE, [])
    if rows:
        terminalreporter.section("how long requests waited")
        terminalreporter.write_line("\n".join([HEADER, *rows]))


@pytest.fixture
def proxy(toxiproxy: Toxiproxy, frail: Store) -> Proxy:
    """The way to `frail`, to be broken."""
    return toxiproxy.to(frail.port)


@pytest.fixture
def start_sidecar(start_sidecar: Callable[..., Sidecar]) -> Callable[..., Sidecar]:
    """With the deadline that users get, which is what this folder is about."""

    def start(url: str, **options: object) -> Sidecar:
        sidecar = prompt(start_sidecar)(url, **options)
        sidecar.wait_store("Up")
        return sidecar

    return start


@pytest.fixture
def running(request: pytest.FixtureRequest) -> Running:
    """Steady traffic over sidecars; what it waited is a part of the table at the end, whatever becomes of the test."""
    table = request.config.stash.setdefault(_TABLE, [])
    test, _, case = request.node.name.removeprefix("test_").rstrip("]").partition("[")
    fault = test.replace("_", " ")[:_WIDTH] if case in {"", *Flavour} else case

    @asynccontextmanager
    async def run(*sidecars: Sidecar, targets: tuple[str, ...] = ()) -> AsyncIterator[Traffic]:
        traffic = Traffic(sidecars, targets)
        try:
            async with traffic:
                yield traffic
        finally:
            table.extend(lines(fault, traffic))

    return run
