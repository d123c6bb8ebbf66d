# SPDX-License-Identifier: Apache-2.0
"""What the kernel says about processes and about the machine: CPU time, memory, who else is busy. Linux only."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_GLANCE_S = 0.2
_QUIET_CPUS = 0.15  # of one CPU; an idle desktop or CI machine is well below


def cpu_s(pid: int) -> float:
    """CPU seconds, user and system, that a process has used so far, in steps of a tick (usually 10 ms)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_mb(pid: int) -> float:
    """Resident memory of a process in megabytes (10^6)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found.group(1)) * 1024 / 1e6


def busy_s() -> float:
    """CPU seconds that all processes of the machine together have used, without waiting for disks."""
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(
        int, Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_S


def own_cpu_s() -> float:
    """CPU seconds of this process and of the children that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def wait_quiet(within_s: float) -> None:
    """Return when nobody else keeps the machine busy, or after `within_s` all the same."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        before = busy_s()
        time.sleep(_GLANCE_S)
        if (busy_s() - before) / _GLANCE_S < _QUIET_CPUS:
            return


@contextmanager
def on_cpus(cpus: set[int]) -> Iterator[None]:
    """Processes started in here stay on these CPUs, if the machine has them."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus & before or before)
        yield
    finally:
        os.sched_setaffinity(0, before)


def two_sides() -> tuple[set[int], set[int]]:
    """The CPU of the servers under test, and that of the load; the same one where there is only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return {cpus[0]}, {cpus[-1]}
