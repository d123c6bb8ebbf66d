# SPDX-License-Identifier: Apache-2.0
"""An operator on the real API server with as many objects, namespaces and limiters as a large company has."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import edits
import policies
from figures import Figure, quantile
from lab.client import fetch, sample
from lab.environment import Environment
from lab.layout import Layout
from lab.processes import free_port, spawn
from lab.progress import step
from lab.team import Team

_REAL = 2  # limiters beside an Envoy; the others only answer /status
_AT_ONCE = 250  # objects that one kubectl creates: it has a minute
_LOADED_S = 600.0
_QUIET_S = 4.0  # without a write after which the operator has said all: two polls of the limiters
_IDLE_S = 30.0
_POLL_S = 0.5
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Size:
    """How big the gateway is."""

    policies: int = 1000
    overrides: int = 12_000
    namespaces: int = 100
    limiters: int = 100

    def __str__(self) -> str:
        return f"{self.policies:,} policies and {self.overrides:,} overrides in {self.namespaces} namespaces"

    @property
    def teams(self) -> list[str]:
        """The namespaces, in order."""
        return [f"team-{number:03}" for number in range(self.namespaces)]


def measure(size: Size, *, edits_count: int) -> list[Figure]:
    """Bring the lab up with all objects, start the operator cold, edit, let it idle, take the lab down."""
    mirrors = tuple(free_port() for _ in range(size.limiters - _REAL))
    hosts = dict.fromkeys(size.teams, ("*.example.com",))
    environment = Environment("bench-operator", Layout(pairs=_REAL, hosts=hosts, other_admin_ports=mirrors))
    environment.start()
    mirror = None
    try:
        mirror = spawn(
            "mirrors",
            (sys.executable, str(Path(__file__).with_name("mirrors.py")), "--of", environment.limiters[0].url,
             "--ports", *map(str, mirrors)),
            log=environment.logs / "mirrors.log",
        )  # fmt: skip
        return _figures(environment, size, edits_count)
    finally:
        if mirror is not None:
            mirror.stop()
        environment.stop()


def _figures(environment: Environment, size: Size, edits_count: int) -> list[Figure]:
    environment.operator.part.stop()
    with step(f"Create {size}"):
        _load(environment, size)
    with step("Start the operator, and wait until everything is Programmed"):
        cold_s = _cold_start(environment, size)
    with step(f"Edit a policy {edits_count} times"):
        samples = _edits(environment, size.teams[0], edits_count)
    _wait_quiet(environment)
    with step(f"Let it idle for {_IDLE_S:.0f} s"):
        writes, share = _idle(environment)
    return [
        Figure(f"operator, {size}: cold start to all Programmed", cold_s, "s", 60.0),
        Figure(f"operator, {size}: edit to enforced, p99 of {edits_count}", quantile(samples, 0.99), "s", 2.0, 0.5),
        Figure(f"operator, {size}: edit to enforced, p50 of {edits_count}", median(samples), "s"),
        Figure(f"operator, {size}: resident memory at most", _memory_mb(environment, "VmHWM"), "MB", 400.0),
        Figure(f"operator, {size}: resident memory at the end", _memory_mb(environment, "VmRSS"), "MB"),
        Figure(f"operator, {size}: writes in {_IDLE_S:.0f} s without news", writes, "", 0.0),
        Figure(f"operator, {size}: share of a core while it polls {size.limiters} limiters", share * 100, "%", 5.0),
    ]


def _load(environment: Environment, size: Size) -> None:
    objects = iter(_objects(size))
    while chunk := list(islice(objects, _AT_ONCE)):
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": chunk})
        environment.cluster.kubectl("create", "-f", "-", input=document)


def _objects(size: Size) -> Iterator[dict[str, Any]]:
    """Each team's policies, and an equal number of overrides for each policy."""
    made = [*policies.varied(size.policies), *policies.overrides(size.overrides, of=size.policies)]
    for number, each in enumerate(made):
        place = number if number < size.policies else (number - size.policies) % size.policies
        metadata = {"name": each["metadata"]["name"], "namespace": size.teams[place % size.namespaces]}
        yield {**each, "metadata": metadata}


def _cold_start(environment: Environment, size: Size) -> float:
    """Seconds from the start of the process to the last status, after which everything is Programmed."""
    started = time.monotonic()
    environment.operator.restart()
    environment.operator.wait_ready()
    last_s = _wait_quiet(environment, at_least=size.policies + size.overrides) - started
    template = r'{range .items[*]}{.status.conditions[?(@.type=="Programmed")].status}{"\n"}{end}'
    found = environment.cluster.kubectl("get", "rlpol,rlovr", "-A", "-o", f"jsonpath={template}").split()
    if len(found) != size.policies + size.overrides or set(found) != {"True"}:
        raise RuntimeError(f"{found.count('True')} of {size.policies + size.overrides} objects are Programmed")
    return last_s


def _wait_quiet(environment: Environment, *, at_least: int = 0) -> float:
    """Wait until nothing has been written for a while; return when the last write was seen."""
    deadline = time.monotonic() + _LOADED_S
    seen, at = -1.0, time.monotonic()
    while seen < at_least or time.monotonic() - at < _QUIET_S:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the operator still writes after {_LOADED_S:.0f} s, {seen:.0f} times so far")
        with suppress(OSError):  # a machine that is busy with the first pass may let nobody ask
            writes = _writes(environment)
            if writes != seen:
                seen, at = writes, time.monotonic()
        time.sleep(_POLL_S)
    return at


def _edits(environment: Environment, namespace: str, count: int) -> list[float]:
    team = Team(environment, namespace, "edited.example.com")
    team.apply(edits.policy(team, burst=1))
    _wait_quiet(environment)
    return sorted(edits.edit(team, burst=2 + number) for number in range(count))


def _idle(environment: Environment) -> tuple[float, float]:
    """The writes, and the share of a core, of some time in which nothing happens."""
    before, cpu_s, started = _writes(environment), _cpu_s(environment), time.monotonic()
    time.sleep(_IDLE_S)
    passed_s = time.monotonic() - started
    return _writes(environment) - before, (_cpu_s(environment) - cpu_s) / passed_s


def _writes(environment: Environment) -> float:
    body = fetch(environment.operator.metrics_url).body.decode()
    statuses = (sample(body, "weir_operator_status_writes_total", resource=f"ratelimit{kind}") for kind in _KINDS)
    return sum(statuses) + sample(body, "weir_operator_config_map_writes_total", gateway="edge")


_KINDS = ("policies", "overrides")


def _cpu_s(environment: Environment) -> float:
    stat = Path(f"/proc/{environment.operator.part.pid}/stat").read_text(encoding="ascii")
    fields = stat.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S  # utime and stime


def _memory_mb(environment: Environment, line: str) -> float:
    status = Path(f"/proc/{environment.operator.part.pid}/status").read_text(encoding="ascii")
    (text,) = (entry.split()[1] for entry in status.splitlines() if entry.startswith(line))
    return int(text) / 1024
