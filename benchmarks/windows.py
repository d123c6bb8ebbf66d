# SPDX-License-Identifier: Apache-2.0
"""One window of load on one subject, judged: a window in which somebody else was busy is repeated.

The servers share one CPU and the load has another. Knows nothing of what is under load.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

import load
from lab.processes import Part
from machine import busy_s, cpu_s, on_cpus, own_cpu_s, two_sides, wait_quiet

SATURATION = "saturation"
_FOREIGN_CPUS = 0.10  # of one CPU, used by others during a window: above, it is measured again
ATTEMPTS = 3
_WARM_UP_S = 0.3
_QUIET_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Subject:
    """Something under load: where it listens, what it is asked, and whose CPU time is counted under which name."""

    name: str
    address: load.Address
    target: dict[str, Any]
    connections: int
    parts: Mapping[str, Part]
    before: Callable[[], object] = field(default=lambda: None)  # each window
    during: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)


@dataclass(frozen=True, slots=True)
class Window:
    """What one window of load showed. `point` is a rate per second as text, or saturation."""

    subject: str
    point: str
    report: load.Report
    cpu_us: Mapping[str, float]  # of each counted process, per call
    clean: bool  # nobody else was busy

    def raw(self) -> dict[str, Any]:
        """The window as JSON."""
        return asdict(self)


def measure(subject: Subject, point: str, seconds: float, running: Sequence[Part]) -> Window:
    """Load the subject for so long. `running` are all processes of the run: their CPU time is not somebody else's."""
    for attempt in range(1, ATTEMPTS + 1):
        wait_quiet(within_s=_QUIET_WITHIN_S)
        window = _measure(subject, point, seconds, running)
        if window.clean or attempt == ATTEMPTS:
            return window
    raise AssertionError("unreachable")


def _measure(subject: Subject, point: str, seconds: float, running: Sequence[Part]) -> Window:
    pace = load.CLOSED if point == SATURATION else load.open_loop(int(point))
    _, generator = two_sides()
    subject.before()
    with on_cpus(generator):
        _drive(subject, pace, _WARM_UP_S)
        started, foreign_before = time.monotonic(), _foreign_s(running)
        before = {name: cpu_s(part.pid) for name, part in subject.parts.items()}
        with subject.during():
            report = _drive(subject, pace, seconds)
        used_s = {name: cpu_s(part.pid) - before[name] for name, part in subject.parts.items()}
        foreign_s = _foreign_s(running) - foreign_before
    clean = foreign_s / (time.monotonic() - started) < _FOREIGN_CPUS
    cpu_us = {name: seconds * 1e6 / report.all.calls for name, seconds in used_s.items()}
    return Window(subject.name, point, report, cpu_us, clean)


def _drive(subject: Subject, pace: load.Pace, seconds: float) -> load.Report:
    return load.drive(subject.address, subject.target, pace, connections=subject.connections, seconds=seconds)


def _foreign_s(running: Sequence[Part]) -> float:
    return busy_s() - own_cpu_s() - sum(cpu_s(part.pid) for part in running)
