# SPDX-License-Identifier: Apache-2.0
"""The script without a limiter: the calls that a limiter makes, the memory of a bucket, the instructions of a call.

Instructions are counted by callgrind where it is installed. They are the same on every machine, so they show a change
of the script that no clock on a shared machine would.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import redis

from figures import Figure
from lab.processes import free_port, spawn
from lab.store import Flavour, Store, StoreMissingError, find_server, start_store
from lab.waiting import eventually
from lab.workspace import LOGS, ROOT

SOURCE = (ROOT / "lua" / "decide.lua").read_text(encoding="utf-8")

_GENEROUS = (1, 1, 1_000_000_000, 1, 1)  # token bucket; increment, capacity, p, l: allows a thousand million at once
_EXHAUSTED = (1, 1_000_000_001, 1_000_000_000, 1_000_000_000, 1)  # can never pass
_SLIDING = (4, 1, 1_000_000_000, 1_000_000, 0)  # sliding window counter; cost, limit, period_us
_LOG = (5, 1, 10_000, 60_000_000, 0)  # sliding window log, in which a subject has few entries
_COUNTED = 1600
_PIPELINED = 16  # as many as a busy limiter has under way; alone, a call pays for a system call of its own
_SCENARIOS = (
    ("allowed", [_GENEROUS]),
    ("refused", [_EXHAUSTED]),
    ("three rules allowed", [_GENEROUS] * 3),
    ("sliding window counter allowed", [_SLIDING]),
    ("sliding window log allowed", [_LOG]),
)

Numbers = tuple[int, int, int, int, int]  # kind and the four numbers of the script's plan


def calls(store: Store, subjects: Sequence[str], rules: Sequence[Numbers] = (_GENEROUS,)) -> list[list[str | bytes]]:
    """One EVALSHA per subject, as a limiter sends it; the store has learnt the script then."""
    with store.client() as client:
        sha = str(client.script_load(SOURCE))
    return [_call(sha, subject, rules) for subject in subjects]


def measure(folder: Path) -> list[Figure]:
    """Bytes per bucket, and instructions per call where callgrind and Redis are installed."""
    return [*_bytes_per_bucket(folder), *_instructions(folder)]


def _call(sha: str, subject: str, rules: Sequence[Numbers]) -> list[str | bytes]:
    plan = b""
    for number, (kind, *row) in enumerate(rules):
        plan += struct.pack(">BBB8s4d", kind, 1, 1, sha256(bytes([number])).digest()[:8], *row)
    return ["EVALSHA", sha, "1", _key(subject), plan]


def _key(subject: str) -> str:
    digest = sha256(subject.encode()).hexdigest()
    return f"weir:2:{{{digest[:22]}}}:{digest[22:33]}"


def _bytes_per_bucket(folder: Path) -> list[Figure]:
    store = start_store(folder / "bytes", name="bytes")
    found = []
    try:
        for rules in (1, 3):
            with store.client() as client:
                client.execute_command(
                    *calls(store, [f"of-{rules}"], [(1, 1_000_000, 1_000_000_000, 10, 1)] * rules)[0]
                )
                used = client.memory_usage(_key(f"of-{rules}"), samples=0)
            name = f"store: bytes per bucket of {rules} rule{'s' if rules > 1 else ''} (MEMORY USAGE)"
            found.append(Figure(name, float(used or 0), "bytes"))
    finally:
        store.stop()
    return found


def _instructions(folder: Path) -> list[Figure]:
    try:
        server = find_server(Flavour.REDIS)
    except StoreMissingError:
        return []
    if shutil.which("valgrind") is None:
        return []
    figures = []
    for name, rules in _SCENARIOS:
        few, many = (_total(folder, server, rules, count) for count in (_PIPELINED, _PIPELINED + _COUNTED))
        figures.append(Figure(f"script: instructions per call, {name}", (many - few) / _COUNTED, ""))
    return figures


def _total(folder: Path, server: Path, rules: Sequence[Numbers], count: int) -> int:
    """Instructions of a server's whole life in which it answers so many calls."""
    port, log = free_port(), LOGS / "bench" / f"callgrind-{count}.log"
    log.unlink(missing_ok=True)
    argv = [
        "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind.out'}", str(server),
        "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--hz", "1", "--dir", str(folder),
    ]  # fmt: skip
    part = spawn("callgrind", argv, log=log)
    store = Store(part, folder / "unused.conf", server, port)
    try:
        with store.client() as client:
            eventually(lambda: _answers(client), 60.0, what=f"the store answers under callgrind; {log}")
            prepared = calls(store, [f"subject-{number % 400}" for number in range(count)], rules)
            for at in range(0, count, _PIPELINED):
                pipe = client.pipeline(transaction=False)
                for call in prepared[at : at + _PIPELINED]:
                    pipe.execute_command(*call)
                pipe.execute()
    finally:
        part.stop(grace_s=60.0)
    found = re.search(r"Collected : (\d+)", log.read_text(errors="replace"))
    assert found is not None, f"callgrind wrote no total; {log}"
    return int(found.group(1))


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False
