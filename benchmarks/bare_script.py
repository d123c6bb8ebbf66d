# SPDX-License-Identifier: Apache-2.0
"""The script without a limiter: the calls that a limiter makes, and the memory of a subject's counters."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from figures import Figure
from lab.store import Store, start_store
from lab.workspace import ROOT

SOURCE = (ROOT / "lua" / "decide.lua").read_text(encoding="utf-8")

Numbers = tuple[int, int, int, int, int]  # kind and the four numbers of the script's plan

GENEROUS: Numbers = (1, 1, 1_000_000_000, 1, 1)  # token bucket; increment, capacity, p, l: allows 10^9 at once
EXHAUSTED: Numbers = (1, 1_000_000_001, 1_000_000_000, 1_000_000_000, 1)  # can never pass
SLIDING: Numbers = (4, 1, 1_000_000_000, 1_000_000, 0)  # sliding window counter; cost, limit, period_us
LOG: Numbers = (5, 1, 10_000, 60_000_000, 0)  # sliding window log, in which a subject has few entries
_LASTING: Numbers = (1, 10**12, 10**15, 1, 1)  # what it charges takes days to drain, so that no counter expires

# One above a power of two the store's tables have just doubled and are at their emptiest: the worst bytes per subject.
_SUBJECTS = 140_000
_AT_ONCE = 2000

FURTHER = "store: bytes per further rule"


def calls(store: Store, subjects: Sequence[str], rules: Sequence[Numbers] = (GENEROUS,)) -> list[list[str | bytes]]:
    """One EVALSHA per subject, as a limiter sends it; the store has learnt the script then."""
    with store.client() as client:
        sha = str(client.script_load(SOURCE))
    return [_call(sha, subject, rules) for subject in subjects]


def names(rules: int) -> tuple[str, str]:
    """The figures of a subject with so many rules: the value alone, and with its share of the store's tables."""
    subject = f"store: bytes per subject of {rules} rule{'s' if rules > 1 else ''}"
    return f"{subject} (MEMORY USAGE)", f"{subject}, tables included"


def measure(folder: Path) -> list[Figure]:
    """Bytes per subject of one, two and three rules; the allocator rounds, so a further rule is the dearest of them."""
    found = []
    for rules in (1, 2, 3):
        store = start_store(folder / "bytes", name="bytes")
        try:
            sizes = _bytes_per_subject(store, rules)
        finally:
            store.stop()
        found += [Figure(name, size, "bytes") for name, size in zip(names(rules), sizes, strict=True)]
    one, two, three = (figure.value for figure in found[1::2])
    return [*found, Figure(FURTHER, max(two - one, (three - one) / 2), "bytes")]


def _bytes_per_subject(store: Store, rules: int) -> tuple[float, float]:
    prepared = calls(store, [f"subject-{number}" for number in range(_SUBJECTS)], [_LASTING] * rules)
    with store.client() as client:
        before = client.info("memory")["used_memory"]
        for at in range(0, len(prepared), _AT_ONCE):
            pipe = client.pipeline(transaction=False)
            for call in prepared[at : at + _AT_ONCE]:
                pipe.execute_command(*call)
            pipe.execute()
        used = client.info("memory")["used_memory"] - before
        return float(client.memory_usage(_key("subject-0"), samples=0) or 0), used / _SUBJECTS


def _call(sha: str, subject: str, rules: Sequence[Numbers]) -> list[str | bytes]:
    plan = b""
    for number, (kind, *row) in enumerate(rules):
        plan += struct.pack(">BBB8s4d", kind, 1, 1, sha256(bytes([number])).digest()[:8], *row)
    return ["EVALSHA", sha, "1", _key(subject), plan]


def _key(subject: str) -> str:
    digest = sha256(subject.encode()).hexdigest()
    return f"weir:2:{{{digest[:22]}}}:{digest[22:33]}"
