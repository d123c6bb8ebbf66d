# SPDX-License-Identifier: Apache-2.0
"""Child processes that can be named again later: started with a log, remembered with their start time, ended by pid.

A pid alone is reused by the kernel; a pid with its start time (field 22 of /proc/PID/stat) is one process for
good. That pair is what `make down`, in another shell and hours later, uses to end exactly what `make up` started.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.02  # how often a wait looks again; small beside every start-up time, cheap beside every program


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which `pid` started; None when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()  # the command's name may itself contain spaces and parentheses
    return None if fields[0] in "ZX" else int(fields[19])


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port that was free a moment ago on `host`."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


class PartFailedError(RuntimeError):
    """A part ended or was not ready in time; the message names its log and quotes the log's end."""


@dataclass(frozen=True, slots=True)
class Part:
    """One running program of the lab: its name, pid, start time and log file."""

    name: str
    pid: int
    born: int
    log: Path

    @property
    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        reap(self.pid)
        return start_time(self.pid) == self.born

    def signal(self, number: int) -> None:
        """Send a signal, if the process is still the one that was started."""
        if self.alive:
            os.kill(self.pid, number)

    def pause(self) -> None:
        """Freeze it (SIGSTOP): it keeps its sockets and answers nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a crash would (SIGKILL) and wait until it is gone."""
        self._end(signal.SIGKILL, within_s=10)

    def stop(self, *, grace_s: float = 8.0) -> None:
        """SIGTERM, and SIGKILL for what has not ended after `grace_s`. Harmless on a process that is gone."""
        self.resume()
        if not self._end(signal.SIGTERM, within_s=grace_s):
            self.kill()

    def tail(self, lines: int = 25) -> str:
        """The last lines of its log, for error messages."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, number: int, *, within_s: float) -> bool:
        self.signal(number)
        deadline = time.monotonic() + within_s
        while self.alive:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True


def reap(pid: int) -> None:
    """Collect `pid` if it is an ended child of ours, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def spawn(
    name: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Part:
    """Start `argv` in a session of its own (a Ctrl-C in our terminal is for us to handle), output appended to `log`.

    `env` is added to this process's environment. Raises FileNotFoundError when the program does not exist.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        child = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd, start_new_session=True,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
    child.returncode = 0  # we reap by pid; this keeps subprocess from warning about a child it believes to be running
    return Part(name, child.pid, start_time(child.pid) or -1, log)


def save(parts: Sequence[Part], path: Path) -> None:
    """Write the list of parts, in start order, for another process to end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps([{"name": p.name, "pid": p.pid, "born": p.born, "log": str(p.log)} for p in parts], indent=1)
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.rename(path)


def load(path: Path) -> list[Part]:
    """The parts that `save` wrote; empty when there is no such file."""
    if not path.exists():
        return []
    return [Part(row["name"], row["pid"], row["born"], Path(row["log"])) for row in json.loads(path.read_text())]


def stop_all(parts: Sequence[Part]) -> None:
    """Stop in the opposite order of starting: whoever watches another part ends before it."""
    for part in reversed(parts):
        part.stop()
