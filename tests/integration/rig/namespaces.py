# SPDX-License-Identifier: Apache-2.0
"""Faults below a process: mounts and a network that only it sees, and that are gone when it is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.processes import Part, spawn
from lab.waiting import eventually

_READY_S = 10.0
_RIGHT, _WRONG = "02:00:00:00:00:02", "02:00:00:00:00:03"  # the far end's hardware address, and one that nobody has


def private_mounts(*commands: str) -> tuple[str, ...]:
    """What to put a command line behind, so that it runs where these shell commands have mounted something.

    The test is skipped where that is not allowed.
    """
    enter = ("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--mount")
    _require((*enter, "true"), "mount namespaces")
    return (*enter, "sh", "-ec", "; ".join([*commands, 'exec "$@"']), "sh")


def seen_by(part: Part, path: Path) -> Path:
    """A path as a process with mounts of its own sees it."""
    return Path(f"/proc/{part.pid}/root{path}")


@dataclass(frozen=True, slots=True)
class Segment:
    """A network of two addresses: ours, and the far one, which belongs to what runs behind `within`."""

    part: Part
    device: str
    far: str

    @property
    def within(self) -> tuple[str, ...]:
        """What to put a command line behind, so that it runs at the far end."""
        return ("nsenter", f"--net=/proc/{self.part.pid}/ns/net")

    @contextmanager
    def dropping(self) -> Iterator[None]:
        """Lose every packet to the far end, and so every answer, without a word: frames go to an address of nobody."""
        self._send_to(_WRONG)
        try:
            yield
        finally:
            self._send_to(_RIGHT)

    def _send_to(self, hardware: str) -> None:
        _ip("neigh", "replace", self.far, "lladdr", hardware, "nud", "permanent", "dev", self.device)


@contextmanager
def segment(folder: Path) -> Iterator[Segment]:
    """A network while the body runs. The test is skipped where making one is not allowed."""
    _require(("unshare", "--net", "ip", "link", "add", "type", "veth"), "virtual networks")
    part = spawn("far-end", ["unshare", "--net", "sleep", "infinity"], log=folder / "far-end.log")
    try:
        yield _join(part)
    finally:
        part.stop()  # takes the namespace and both ends of the cable with it


def _join(part: Part) -> Segment:
    here = Path("/proc/self/ns/net").readlink()
    eventually(lambda: Path(f"/proc/{part.pid}/ns/net").readlink() != here, _READY_S, what="the namespace is there")
    device, block = f"weir{part.pid}", f"198.18.{part.pid % 256}"  # a block that is set aside for tests of networks
    joined = Segment(part, device, f"{block}.2")
    _ip("link", "add", device, "type", "veth", "peer", "name", "far", "address", _RIGHT, "netns", str(part.pid))
    _ip("address", "add", f"{block}.1/30", "dev", device)
    _ip("link", "set", device, "up")
    for command in (["address", "add", f"{joined.far}/30", "dev", "far"], ["link", "set", "far", "up"]):
        subprocess.run([*joined.within, "ip", *command], check=True)
    joined._send_to(_RIGHT)
    return joined


def _require(command: tuple[str, ...], what: str) -> None:
    try:
        subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"this machine has no {what} for us: {failure}")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
