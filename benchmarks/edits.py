# SPDX-License-Identifier: Apache-2.0
"""From `kubectl apply` to enforced on every gateway, over many edits, in the lab with everything real."""

from __future__ import annotations

import time
from itertools import count
from statistics import median

from figures import Figure, quantile
from lab.environment import Environment
from lab.layout import TEAM_HOSTS, Layout
from lab.team import Team

_NAMESPACE = "team-orders"
_POLL_S = 0.005
_GIVE_UP_S = 30.0
_MUST_S, _STRETCH_S = 2.0, 0.5
_clients = count()


def measure(*, edits: int) -> list[Figure]:
    """Bring the lab up, edit one policy again and again, take the lab down."""
    environment = Environment("bench", Layout(pairs=2))
    environment.start()
    try:
        team = Team(environment, _NAMESPACE, TEAM_HOSTS[_NAMESPACE][0])
        team.apply_ready(policy(team, burst=1))
        samples = sorted(edit(team, burst=2 + number) for number in range(edits))
    finally:
        environment.stop()
    p99 = quantile(samples, 0.99)
    return [
        Figure(f"policy edit to enforced on every gateway, p99 of {edits}", p99, "s", _MUST_S, _STRETCH_S),
        Figure(f"policy edit to enforced on every gateway, p50 of {edits}", median(samples), "s"),
    ]


def edit(team: Team, *, burst: int) -> float:
    """Seconds from before `kubectl apply` until both gateways answer by the new limit to clients they never saw."""
    started = time.monotonic()
    team.apply(policy(team, burst=burst))
    for gateway in range(len(team.environment.urls)):
        with team.connect(gateway) as client:
            while _burst_of(client.send(host=team.host, headers=_new_client()).header("ratelimit-policy")) != burst:
                if time.monotonic() - started > _GIVE_UP_S:
                    raise RuntimeError(f"gateway {gateway} does not enforce the edit after {_GIVE_UP_S} s")
                time.sleep(_POLL_S)
    return time.monotonic() - started


def policy(team: Team, *, burst: int) -> str:
    """The policy that is edited, for the team's host."""
    limit = {"requests": 1, "period": "1h", "burst": burst}
    return team.policy(rules=[{"name": "burst", "key": [{"header": "x-api-key"}], "limit": limit}])


def _new_client() -> dict[str, str]:
    return {"x-api-key": f"client-{next(_clients)}"}


def _burst_of(ratelimit_policy: str | None) -> int:
    return int(ratelimit_policy.split("q=")[1].split(";")[0]) if ratelimit_policy else 0
