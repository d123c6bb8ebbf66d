# SPDX-License-Identifier: Apache-2.0
"""Instructions of one call of the script in a real store. They hold for a version of the store, which is named."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import redis

import callgrind
from bare_script import EXHAUSTED, GENEROUS, LOG, SLIDING, Numbers, calls
from lab.processes import Part, free_port
from lab.store import Flavour, Store, StoreMissingError, find_server

_COUNTED = 1600
_PIPELINED = 16  # as many as a busy limiter has under way; alone, a call pays for a system call of its own
_SCENARIOS: dict[str, Sequence[Numbers]] = {
    "allowed": [GENEROUS],
    "refused": [EXHAUSTED],
    "three rules": [GENEROUS] * 3,
    "sliding window counter": [SLIDING],
    "sliding window log": [LOG],
}


def server() -> Path:
    """Debian's Redis, for which the targets were set; where it is not installed, the pinned one of a wheel."""
    try:
        return find_server(Flavour.REDIS)
    except StoreMissingError:
        return find_server(Flavour.NEWEST_REDIS)


def version(program: Path) -> str:
    """What the server calls itself, for example `redis 7.0.15`."""
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return f"redis {re.findall(r'v=([0-9.]+)', printed)[0]}"


def scenarios() -> list[str]:
    """What is counted."""
    return list(_SCENARIOS)


def count(scenario: str, folder: Path) -> float:
    """Instructions of one call."""
    few, many = (
        _life(folder / f"{number}", _SCENARIOS[scenario], number) for number in (_PIPELINED, _PIPELINED + _COUNTED)
    )
    return (many - few) / _COUNTED


def _life(folder: Path, rules: Sequence[Numbers], number: int) -> int:
    port, program = free_port(), server()
    argv = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--hz", "1", "--dir", "/"]
    store = Store(Part("callgrind", 0, 0, folder / "unused.log"), folder / "unused.conf", program, port)

    def ready() -> bool:
        try:
            return bool(store.run("PING"))
        except redis.ConnectionError:
            return False

    def use() -> None:
        prepared = calls(store, [f"subject-{n % 400}" for n in range(number)], rules)
        with store.client() as client:
            for at in range(0, number, _PIPELINED):
                pipe = client.pipeline(transaction=False)
                for call in prepared[at : at + _PIPELINED]:
                    pipe.execute_command(*call)
                pipe.execute()

    return callgrind.life(callgrind.Counted("store", argv, ready), folder, use)
