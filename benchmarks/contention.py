# SPDX-License-Identifier: Apache-2.0
"""How many requests a cluster refuses too early: rules of one request in different slots, a shared budget nearly spent.

Half of the requests are refused by a rule of their own, and hold a unit of the shared budget until it is given back.
The other half fit into the shared budget exactly, so each refusal among them is one too early.
"""

from __future__ import annotations

from pathlib import Path

import load
import policies
import sidecars
from figures import Figure
from lab.processes import stop_all
from lab.store import start_cluster

_BUDGET = 500
_IN_FLIGHT = 32
FIGURE = "cluster: refused too early with two slots in one request and the budget nearly spent"


def measure(folder: Path) -> list[Figure]:
    """Spend a budget of so many under contention."""
    cluster = start_cluster(folder)
    parts = [node.part for node in cluster.nodes]
    spent = [load.request(policies.CONTENDED_HOST, f"spent-{number}") for number in range(_BUDGET)]
    fresh = [load.request(policies.CONTENDED_HOST, f"fresh-{number}", apart=True) for number in range(_BUDGET)]
    try:
        rules = policies.render(policies.parse([policies.contended(2 * _BUDGET)]))
        limiter = sidecars.start(folder / "limiter", rules, cluster.url, flags=("--store-deadline", "1s"))
        parts.append(limiter.part)
        limiter.wait_ready()
        first = _drive(limiter.socket, spent)
        if first.all.allowed != _BUDGET:
            raise RuntimeError(f"{first.all.refused} of {_BUDGET} were refused before anything was spent")
        contended = _drive(limiter.socket, [each for pair in zip(fresh, spent, strict=True) for each in pair])
    finally:
        stop_all(parts)
    return [Figure(FIGURE, 100 * contended.apart.refused / contended.apart.calls, "%")]


def _drive(socket: Path, requests: list[dict[str, object]]) -> load.Report:
    pace = load.counted(len(requests), in_flight=_IN_FLIGHT)
    return load.drive({"unix": str(socket)}, load.checks(requests), pace, connections=1, seconds=1.0)
