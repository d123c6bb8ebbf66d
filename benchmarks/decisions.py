# SPDX-License-Identifier: Apache-2.0
"""A decision through the sidecar, beside a bare HTTP/2 echo and the bare script, in one shuffled run.

The servers share one CPU and the load has another. All are up at once, windows come in random order, and a window in
which somebody else was busy is repeated. Only ratios within a run mean anything; what is absolute stands beside them.
"""

from __future__ import annotations

import random
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import bare_script
import load
import policies
from figures import Figure, median_of
from lab.client import fetch
from lab.processes import Part, free_port, spawn
from lab.progress import say
from lab.store import Store, start_store
from lab.waiting import eventually
from lab.workspace import LOGS, VENV
from machine import busy_s, cpu_s, on_cpus, own_cpu_s, resident_mb, two_sides, wait_quiet

PEAK_PER_S = 2400  # of the traffic that the product is designed for
_KEYS = [f"key-{number:04}" for number in range(1000)]
_FOREIGN_CPUS = 0.10  # of one CPU, used by others during a window: above, it is measured again
_ATTEMPTS = 3
_UP_S = 30.0
_POLICIES, _OVERRIDES = 1000, 12_000  # of the second sidecar: what a big gateway holds


_CROWDED = f"sidecar with {_POLICIES:,} policies and {_OVERRIDES:,} overrides"


@dataclass(frozen=True, slots=True)
class Subject:
    """Something under load: where it listens, what it is asked, and whose CPU time counts."""

    name: str
    address: load.Address
    target: dict[str, Any]
    connections: int
    part: Part


@dataclass(frozen=True, slots=True)
class Window:
    """What one window of load showed."""

    report: load.Report
    cpu_us: float  # of the subject's process, per call
    clean: bool  # nobody else was busy


@contextmanager
def subjects(folder: Path) -> Iterator[list[Subject]]:
    """Start the store, the echo and a sidecar with one rule; end them all."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = LOGS / "bench"
    servers, _ = two_sides()
    parts: list[Part] = []
    try:
        with on_cpus(servers):
            store = start_store(logs, name="store")
            parts.append(store.part)
            echo = folder / "echo.sock"
            parts.append(spawn("echo", load.echo_command({"unix": str(echo)}), log=logs / "echo.log"))
            sidecar = _Sidecar(folder / "one", [policies.generous()])
            crowd = [policies.generous(), *policies.varied(_POLICIES)]
            crowded = _Sidecar(folder / "many", crowd, policies.overrides(_OVERRIDES, of=_POLICIES))
            parts += [each.start(store, logs) for each in (sidecar, crowded)]
        eventually(echo.exists, _UP_S, what="the echo listens")
        for each, part in ((sidecar, parts[2]), (crowded, parts[3])):
            eventually(each.is_ready, _UP_S, what=part.tail())
        checks = load.checks(_KEYS, policies.HOST)
        script = load.commands(bare_script.calls(store, _KEYS))
        yield [
            Subject("echo", {"unix": str(echo)}, checks, 4, parts[1]),
            Subject("sidecar", {"unix": str(sidecar.socket)}, checks, 4, parts[2]),
            Subject(_CROWDED, {"unix": str(crowded.socket)}, checks, 4, parts[3]),
            Subject("script", {"tcp": f"127.0.0.1:{store.port}"}, script, 1, parts[0]),
        ]
    finally:
        for part in reversed(parts):
            part.stop()


def measure(folder: Path, rounds: int, seconds: float) -> list[Figure]:
    """All figures of this module, from so many windows of so many seconds per server and load."""
    with subjects(folder) as servers:
        idle_mb = _idle_mb(servers[1].part)
        windows: dict[tuple[str, str], list[Window]] = defaultdict(list)
        for number in range(rounds):
            jobs = [(subject, point) for subject in servers for point in ("peak", "saturation")]
            jobs.remove((servers[2], "peak"))  # its latency is the other sidecar's; its cost is the question
            random.shuffle(jobs)
            for subject, point in jobs:
                windows[subject.name, point].append(_window(subject, [each.part for each in servers], point, seconds))
            say(f"  round {number + 1} of {rounds}")
    noisy = sum(not window.clean for found in windows.values() for window in found)
    if noisy:
        say(f"  {noisy} windows were kept although others were busy: run it again on a quiet machine")
    return [*_latencies(windows), *_costs(windows), Figure("sidecar: resident memory, idle", idle_mb, "MB", 25.0)]


def _latencies(windows: dict[tuple[str, str], list[Window]]) -> list[Figure]:
    p50 = {name: [w.report.p50_us for w in windows[name, "peak"]] for name in ("echo", "script", "sidecar")}
    p99 = {name: [w.report.p99_us for w in windows[name, "peak"]] for name in ("echo", "script", "sidecar")}
    ratio = median(p50["sidecar"]) / (median(p50["echo"]) + median(p50["script"]))
    above_ms = (median(p99["sidecar"]) - median(p99["echo"])) / 1000
    at = f"at {PEAK_PER_S:,}/s"
    return [
        Figure(f"decision p50 {at} / (echo p50 + script p50)", ratio, "", 1.3),
        Figure(f"decision p99 {at} above the echo's", above_ms, "ms", 2.0),
        *(median_of(p50[name], f"{name}: p50 {at}", "us") for name in p50),
        *(median_of(p99[name], f"{name}: p99 {at}", "us") for name in p99),
    ]


def _costs(windows: dict[tuple[str, str], list[Window]]) -> list[Figure]:
    names = ("echo", "sidecar", _CROWDED, "script")
    saturated = {name: [w.cpu_us for w in windows[name, "saturation"]] for name in names}
    ratio = median(saturated["sidecar"]) / median(saturated["echo"])
    crowd = median(saturated[_CROWDED]) / median(saturated["sidecar"])
    return [
        Figure("CPU per decision at saturation / bare echo", ratio, "", 5.0),
        Figure(f"CPU per decision with {_POLICIES:,} policies and {_OVERRIDES:,} overrides / with one", crowd, "", 1.2),
        *(median_of(saturated[name], f"{name}: CPU per call at saturation", "us") for name in names),
        median_of([w.cpu_us for w in windows["sidecar", "peak"]], f"sidecar: CPU per call at {PEAK_PER_S:,}/s", "us"),
        median_of([w.report.per_s for w in windows["sidecar", "saturation"]], "sidecar: decisions at saturation", "/s"),
    ]


def _window(subject: Subject, parts: list[Part], point: str, seconds: float) -> Window:
    pace = load.CLOSED if point == "saturation" else load.open_loop(PEAK_PER_S)
    for attempt in range(1, _ATTEMPTS + 1):
        wait_quiet(within_s=3.0)
        window = _measure(subject, parts, pace, seconds)
        if window.clean or attempt == _ATTEMPTS:
            return window
    raise AssertionError("unreachable")


def _measure(subject: Subject, parts: list[Part], pace: dict[str, Any], seconds: float) -> Window:
    _, generator = two_sides()
    with on_cpus(generator):
        load.drive(subject.address, subject.target, pace, connections=subject.connections, seconds=0.3)
        started, foreign_before, cpu_before = time.monotonic(), _foreign_s(parts), cpu_s(subject.part.pid)
        report = load.drive(subject.address, subject.target, pace, connections=subject.connections, seconds=seconds)
        used_s, foreign_s = cpu_s(subject.part.pid) - cpu_before, _foreign_s(parts) - foreign_before
    clean = foreign_s / (time.monotonic() - started) < _FOREIGN_CPUS
    return Window(report, used_s * 1e6 / report.calls, clean)


def _foreign_s(parts: list[Part]) -> float:
    return busy_s() - own_cpu_s() - sum(cpu_s(part.pid) for part in parts)


class _Sidecar:
    """A sidecar with a ruleset of its own, in a folder of its own."""

    def __init__(self, folder: Path, objects: list[dict[str, Any]], exceptions: Sequence[dict[str, Any]] = ()) -> None:
        self.socket = folder / "limiter.sock"
        self._rules, self._admin = folder / "rules", free_port()
        policies.publish(policies.compile_and_render(objects, exceptions), self._rules)

    def start(self, store: Store, logs: Path) -> Part:
        argv = [
            str(VENV / "bin" / "weir-limiter"), "serve", "--gateway", policies.GATEWAY.name, "--instance", "bench",
            "--listen", f"unix:{self.socket}", "--admin", f"127.0.0.1:{self._admin}", "--rules-dir", str(self._rules),
            "--log-level", "warn",
        ]  # fmt: skip
        env = {"WEIR_LIMITER_STORE": store.url, "WEIR_LIMITER_HASH_KEY": secrets.token_hex(32)}
        return spawn("limiter", argv, log=logs / f"limiter-{self._rules.parent.name}.log", env=env)

    def is_ready(self) -> bool:
        return fetch(f"http://127.0.0.1:{self._admin}/readyz").status == 200


def _idle_mb(part: Part) -> float:
    time.sleep(1.0)  # what the start needed and gave back is not idle memory
    return resident_mb(part.pid)
