# SPDX-License-Identifier: Apache-2.0
"""Instructions of a program's whole life, counted by callgrind. Nothing here knows what the program does.

A count of a call is the difference between two lives, of which one has more calls: what a start and an end cost falls
out. Counts do not depend on the clock, so they mean something on a busy machine.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.processes import spawn
from lab.waiting import eventually

_START_S = 120.0  # a program runs fifty times slower under it, and the machine may be busy
_END_S = 60.0
MISSING = "valgrind is not on PATH; Debian and Fedora call the package valgrind"


@dataclass(frozen=True, slots=True)
class Counted:
    """A program to be counted: its command line, its environment, and how it says that it is ready for calls."""

    name: str
    argv: Sequence[str]
    ready: Callable[[], bool]
    env: Mapping[str, str] = field(default_factory=dict)


def available() -> bool:
    """Whether this machine can count."""
    return shutil.which("valgrind") is not None


def life(program: Counted, folder: Path, use: Callable[[], None]) -> int:
    """Start it, let `use` use it, end it; return how many instructions it executed. `folder` is its own."""
    folder.mkdir(parents=True)
    log = folder / "callgrind.log"
    argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind.out'}", *program.argv]
    part = spawn(program.name, argv, log=log, env=program.env)
    try:
        eventually(program.ready, _START_S, what=f"{program.name} answers under callgrind; {log}")
        use()
    finally:
        part.stop(grace_s=_END_S)
    return total(log.read_text(errors="replace"), program.name)


def total(log: str, name: str) -> int:
    """The sum that callgrind writes at the end. Raises RuntimeError with the log's end when there is none."""
    found = re.search(r"Collected : (\d+)", log)
    if found is None:
        raise RuntimeError(f"callgrind wrote no total for {name}; its log ends in {log[-500:]!r}")
    return int(found.group(1))
