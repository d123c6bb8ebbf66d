# SPDX-License-Identifier: Apache-2.0
"""One environment for all end-to-end tests; a namespace and hosts of its own for each test module.

Modules share gateways and the store, and cannot disturb each other: a namespace may limit only its own hosts, and the
operator enforces that. A policy that names no host is compiled with exactly those hosts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.client import Answer, Client
from lab.cluster import Cluster
from lab.environment import Environment
from lab.layout import TEAM_HOSTS, Layout
from lab.waiting import eventually

_HERE = Path(__file__).resolve().parent
_LIVE_S = 10.0  # within which an edit must be Ready everywhere, on a machine that also builds things


@dataclass(frozen=True, slots=True)
class Team:
    """A namespace of the module's own, the host it may limit, and what its people do with kubectl."""

    environment: Environment
    namespace: str
    host: str

    def apply(self, manifest: str) -> str:
        """`kubectl apply`; `HOST` in the manifest stands for the team's host."""
        return self.environment.cluster.apply(manifest.replace("HOST", self.host), self.namespace)

    def apply_ready(self, manifest: str) -> None:
        """Apply, and wait until everything in the namespace is Ready for its present generation."""
        self.apply(manifest)
        self.wait_ready()

    def wait_ready(self) -> None:
        """`kubectl wait`, until all is Ready and observed."""
        eventually(self._settled, _LIVE_S, what=f"everything in {self.namespace} is Ready")

    def kubectl(self, *arguments: str) -> str:
        """kubectl in the team's namespace."""
        return self.environment.cluster.kubectl("-n", self.namespace, *arguments)

    def objects(self) -> list[dict[str, Any]]:
        """All policies and overrides of the namespace."""
        return list(json.loads(self.kubectl("get", "rlpol,rlovr", "-o", "json"))["items"])

    def get(self, kind: str, name: str) -> Any:
        """One object."""
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def send(self, path: str = "/", *, gateway: int = 0, source: str | None = None, **request: Any) -> Answer:
        """One request for the team's host through one of the Envoys, on a connection of its own."""
        with Client(self.environment.urls[gateway], source=source) as client:
            return client.send(request.pop("method", "GET"), path, host=request.pop("host", self.host), **request)

    def _settled(self) -> bool:
        return all(_ready(found) for found in self.objects())


def _ready(found: dict[str, Any]) -> bool:
    status, generation = found.get("status", {}), found["metadata"]["generation"]
    ready = [c for c in status.get("conditions", []) if c["type"] == "Ready"]
    fresh = status.get("observedGeneration") == generation
    return fresh and bool(ready) and ready[0]["status"] == "True" and ready[0]["observedGeneration"] == generation


@pytest.fixture(scope="session")
def environment() -> Iterator[Environment]:
    """Everything up, with a namespace for each test module."""
    own = {_namespace(path): (_host(path), f"*.{_host(path)}") for path in sorted(_HERE.glob("test_*.py"))}
    lab = Environment("test", Layout(pairs=2, hosts={**TEAM_HOSTS, **own}))
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
    """The module's own team, without any policy before and after the test."""
    team = Team(environment, _namespace(request.path), _host(request.path))
    yield team
    team.kubectl("delete", "rlpol,rlovr", "--all", "--wait=true")
    eventually(lambda: _forgotten(team), _LIVE_S, what=f"no limiter knows a policy of {team.namespace}")


@pytest.fixture
def restart(environment: Environment) -> Iterator[Callable[[Any], None]]:
    """Start a killed program again, wait for it, and remember its new process."""

    def again(program: Any) -> None:
        program.restart()
        program.wait_ready()
        environment.save()

    yield again
    for program in [environment.operator, *(limiter.program for limiter in environment.limiters)]:
        if not program.part.alive:
            again(program)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    environment = getattr(item, "funcargs", {}).get("environment") or getattr(item, "funcargs", {}).get("team")
    if report.failed and environment is not None:
        lab = getattr(environment, "environment", environment)
        report.sections += [(f"end of {part.log}", part.tail(12)) for part in lab.parts if "store" not in part.name]
    return report


def _forgotten(team: Team) -> bool:
    limiters = team.environment.limiters
    rules = [rule for limiter in limiters for rule in limiter.status()["rules"]]
    return not any(rule["policy"].startswith(f"{team.namespace}/") for rule in rules)


def _namespace(module: Path) -> str:
    return module.stem.removeprefix("test_").replace("_", "-")[:60]


def _host(module: Path) -> str:
    return f"{_namespace(module)}.test"
