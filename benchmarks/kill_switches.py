# SPDX-License-Identifier: Apache-2.0
"""From a person's patch of a kill switch to every gateway doing what it says, beside what a big gateway holds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from statistics import median
from typing import Any

import policies
from figures import Figure, quantile
from lab.environment import Environment
from lab.layout import Layout
from lab.progress import step
from lab.switching import patch_status
from lab.team import Team
from lab.waiting import eventually

_NAMESPACE = "team-orders"
_HOST = "killed.example.com"
_AT_ONCE = 50  # objects that one kubectl creates: it has a minute, also on a machine that others use
_LOADED_S = 600.0
_POLL_S = 0.005
_GIVE_UP_S = 30.0
_MUST_S = 2.0
_clients = count()


def measure(*, switches: int, crowd: tuple[int, int]) -> list[Figure]:
    """Bring the lab up with so many policies and overrides, set and end a switch in turn, take the lab down."""
    environment = Environment("bench", Layout(pairs=2, hosts={_NAMESPACE: ("*.example.com",)}))
    environment.start()
    try:
        team = Team(environment, _NAMESPACE, _HOST)
        with step(f"Create {crowd[0]} policies and {crowd[1]} overrides"):
            _load(team, crowd)
        limit = {"requests": 1, "period": "1h"}
        team.apply(team.policy(rules=[{"name": "burst", "key": [{"header": "x-api-key"}], "limit": limit}]))
        _wait(team, time.monotonic(), refuses=True)
        # what creating left to be written, statuses above all, is not what a switch has to wait for
        eventually(lambda: _all_ready(team), _LOADED_S, what="every status is written")
        samples = sorted(_switch(team, off=number % 2 == 0) for number in range(switches))
    finally:
        environment.stop()
    loaded = f"{crowd[0]:,} policies and {crowd[1]:,} overrides"
    p99 = quantile(samples, 0.99)
    return [
        Figure(f"kill switch to every limiter, {loaded}, p99 of {switches}", p99, "s", _MUST_S),
        Figure(f"kill switch to every limiter, {loaded}, p50 of {switches}", median(samples), "s"),
    ]


def _switch(team: Team, *, off: bool) -> float:
    """Seconds from before `kubectl patch` until every gateway treats clients that it never saw accordingly."""
    started = time.monotonic()
    entry = {"mode": "Disabled", "reason": "benchmark"} if off else None
    patch_status(team, {"killSwitches": {"burst": entry}}, by="benchmark")
    return _wait(team, started, refuses=not off)


def _wait(team: Team, started: float, *, refuses: bool) -> float:
    for gateway in range(len(team.environment.urls)):
        with team.connect(gateway) as client:
            while _refuses(client, team.host) != refuses:
                if time.monotonic() - started > _GIVE_UP_S:
                    raise RuntimeError(f"gateway {gateway} does not follow after {_GIVE_UP_S} s")
                time.sleep(_POLL_S)
    return time.monotonic() - started


def _refuses(client: Any, host: str) -> bool:
    """Whether the second request of a new client is refused."""
    headers = {"x-api-key": f"client-{next(_clients)}"}
    return [client.send(host=host, headers=headers).status for _ in range(2)][1] == 429


def _load(team: Team, crowd: tuple[int, int]) -> None:
    objects = [*policies.varied(crowd[0]), *policies.overrides(crowd[1], of=max(1, crowd[0]))]
    for chunk in _chunks(objects):
        items = [{**each, "metadata": {"name": each["metadata"]["name"]}} for each in chunk]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        team.kubectl("create", "--validate=false", "-f", "-", input=listed)


def _chunks(objects: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    rest = iter(objects)
    while chunk := list(islice(rest, _AT_ONCE)):
        yield chunk


def _all_ready(team: Team) -> bool:
    template = r'{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}'
    found = team.kubectl("get", "rlpol,rlovr", "-o", f"jsonpath={template}").split()
    return set(found) == {"True"}
