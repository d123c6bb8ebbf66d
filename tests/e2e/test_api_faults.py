# SPDX-License-Identifier: Apache-2.0
"""D50: the API server is away, frozen or behind a black hole. Limits hold meanwhile, and the same process recovers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from lab.client import fetch
from lab.cluster import KubectlError
from lab.distant import api_server, operator_by
from lab.environment import Environment
from lab.processes import Part, spawn
from lab.programs import Program
from lab.team import Team
from lab.waiting import eventually
from rig.toxiproxy import Proxy, start_toxiproxy

PER_KEY = {"name": "burst", "key": [{"header": "x-api-key"}]}
NOTICED_S = 60.0  # a request gives up after 15 s, one for the lease after 2 s
RECOVERED_S = 100.0  # a list every 5 s after a fault, and 75 s for what only the regular list finds


def edit(team: Team, requests: int) -> None:
    team.apply(team.policy(rules=[{**PER_KEY, "limit": {"requests": requests, "period": "1h"}}]))


def is_live(team: Team, requests: int) -> bool:
    """Whether the limiters run an edit: a client that no other test uses is told its limit."""
    answer = team.send(headers={"x-api-key": f"faults-{requests}"})
    return f";q={requests};" in f"{answer.header('ratelimit-policy')};"


def unanswered(operator: Program) -> float:
    """How many requests of the operator got no answer so far."""
    text = fetch(operator.metrics_url).body.decode()
    return sum(float(found) for found in re.findall(r'^weir_operator_api_answers_total{code="0",.*} (.*)$', text, re.M))


def role(operator: Program) -> str:
    return fetch(f"{operator.url}/readyz").body.decode().strip()


@pytest.fixture
def distant(environment: Environment, tmp_path: Path) -> Iterator[tuple[Program, Proxy]]:
    """An operator in place of the environment's, that reaches the API server through Toxiproxy."""
    toxiproxy = start_toxiproxy(tmp_path)
    try:
        proxy = toxiproxy.to(api_server(environment).port or 443)
        with operator_by(proxy.port, environment, tmp_path) as operator:
            yield operator, proxy
    finally:
        toxiproxy.part.stop()


@pytest.mark.requirement("R46")
def test_connections_that_swallow_everything_are_given_up_and_edits_arrive_after_them(
    distant: tuple[Program, Proxy], team: Team, api_key: dict[str, str]
) -> None:
    """A black hole: no reset, no end; watches that were open in it never say anything again."""
    operator, proxy = distant
    edit(team, 1)
    team.wait_ready()
    pid, before = operator.part.pid, unanswered(operator)
    with proxy.toxic("timeout", timeout=0), proxy.toxic("timeout", upstream=True, timeout=0):
        edit(team, 2)
        eventually(lambda: unanswered(operator) > before, NOTICED_S, what="the operator notices")
        eventually(lambda: role(operator).startswith("ok: stands by"), NOTICED_S, what="nobody claims to lead")
        assert team.statuses(2, headers=api_key) == [200, 429]
    eventually(lambda: is_live(team, 2), RECOVERED_S, what="the edit during the fault is live")
    edit(team, 3)
    eventually(lambda: is_live(team, 3), RECOVERED_S, what="an edit after the fault is live")
    assert (operator.part.alive, operator.part.pid) == (True, pid)
    assert fetch(f"{operator.url}/healthz").status == 200


def apiserver_of(environment: Environment) -> Part:
    found = [part for part in environment.cluster.parts if part.name == "kube-apiserver"]
    if not found:
        pytest.skip("this cluster's API server is not ours to break")
    return found[0]


@contextmanager
def frozen(environment: Environment) -> Iterator[None]:
    apiserver = apiserver_of(environment)
    apiserver.pause()
    try:
        yield
    finally:
        apiserver.resume()


@contextmanager
def killed(environment: Environment) -> Iterator[None]:
    """Dead, and started again with the same command line at the end."""
    apiserver, parts = apiserver_of(environment), environment.cluster.parts
    argv = Path(f"/proc/{apiserver.pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    apiserver.kill()
    try:
        yield
    finally:
        parts[parts.index(apiserver)] = spawn(apiserver.name, argv, log=apiserver.log)
        environment.save()


def answers(environment: Environment) -> bool:
    """Whether the API server is ready."""
    try:
        return environment.cluster.kubectl("get", "--raw", "/readyz") == "ok"
    except KubectlError:
        return False


@pytest.mark.requirement("R46")
@pytest.mark.parametrize("fault", [frozen, killed])
def test_limits_hold_without_an_api_server_and_edits_arrive_when_it_is_back(
    team: Team, api_key: dict[str, str], fault: Callable[[Environment], AbstractContextManager[None]]
) -> None:
    operator = team.environment.operator
    edit(team, 1)
    team.wait_ready()
    pid, before = operator.part.pid, unanswered(operator)
    with fault(team.environment):
        eventually(lambda: unanswered(operator) > before, NOTICED_S, what="the operator notices")
        assert team.statuses(3, headers=api_key) == [200, 429, 429]
        assert fetch(f"{operator.url}/healthz").status == 200
    eventually(lambda: answers(team.environment), NOTICED_S, what="the API server is back")
    edit(team, 4)
    eventually(lambda: is_live(team, 4), RECOVERED_S, what="an edit after the fault is live")
    team.wait_ready()
    assert (operator.part.alive, operator.part.pid) == (True, pid)
