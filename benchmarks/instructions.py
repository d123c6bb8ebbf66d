# SPDX-License-Identifier: Apache-2.0
"""`make bench-instructions`: count the instructions of a script call and of a decision, compare with the accepted.

Exit status: 0 = all counts are where they were accepted, 1 = one has moved by more than 3 %, 2 = it cannot count here.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent / "tests" / "e2e"))

import callgrind  # noqa: E402 - the path to the lab comes first
import count_script  # noqa: E402
import count_sidecar  # noqa: E402
import gate  # noqa: E402
import load  # noqa: E402
from figures import Figure  # noqa: E402
from lab.progress import say  # noqa: E402

ACCEPTED = _HERE / "instructions.toml"
_SIDECAR = "sidecar"
_TARGETS = {  # must, stretch
    ("script", "allowed"): (52_000.0, 45_000.0),
    ("script", "refused"): (30_000.0, 26_000.0),
    ("script", "three rules"): (75_000.0, 65_000.0),
    ("sidecar", "one rule allowed"): (36_000.0, 12_000.0),
}


def main() -> int:
    """Count, compare, and accept where that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help=f"write what is counted to {ACCEPTED.name}")
    parser.add_argument("--only", choices=["script", "sidecar"], help="one part")
    options = parser.parse_args()
    if not callgrind.available():
        say(callgrind.MISSING)
        return 2
    counted = count(options.only)
    if options.accept:
        ACCEPTED.write_text(gate.written(counted, gate.read(ACCEPTED)), encoding="utf-8")
    rows = gate.compare(counted, gate.read(ACCEPTED))
    say(f"\n{gate.table(rows)}\n")
    complaints = gate.complaints(rows)
    if complaints:
        say("\n".join(complaints))
        say(f"If that is meant: make bench-instructions ACCEPT=1, then look at git diff benchmarks/{ACCEPTED.name}")
    return 1 if complaints else 0


def count(only: str | None = None) -> dict[str, dict[str, float]]:
    """Count everything, as many lives at a time as there are CPUs: a busy machine makes it slower, not different."""
    with tempfile.TemporaryDirectory(prefix="weir-count-") as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder, counted = Path(name), {}
        if only in (None, "script"):
            section = count_script.version(count_script.server())
            counted[section] = _script(pool, folder / "script")
        if only in (None, "sidecar"):
            load.build()
            counted[_SIDECAR] = _sidecar(pool, folder / "sidecar")
    return counted


def figures(counted: gate.Counts) -> list[Figure]:
    """The counts with their targets, for `make bench`."""
    found = []
    for section, scenarios in counted.items():
        part, of = ("sidecar", "decision") if section == _SIDECAR else ("script", "call")
        for scenario, value in scenarios.items():
            must, stretch = _TARGETS.get((part, scenario), (None, None))
            found.append(Figure(f"{part}: instructions per {of}, {scenario}", value, "", must, stretch))
        if part == "script":
            further = (scenarios["three rules"] - scenarios["allowed"]) / 2
            found.append(Figure("script: instructions per further rule", further, ""))
    return found


def _script(pool: ThreadPoolExecutor, folder: Path) -> dict[str, float]:
    counts = {name: pool.submit(count_script.count, name, folder / name) for name in count_script.scenarios()}
    return {name: count.result() for name, count in counts.items()}


def _sidecar(pool: ThreadPoolExecutor, folder: Path) -> dict[str, float]:
    rig = count_sidecar.Rig.start(folder)
    try:
        few = pool.submit(rig.life, folder / "few", None)
        lives = {name: pool.submit(rig.life, folder / name, name) for name in count_sidecar.scenarios()}
        return {name: count_sidecar.per_call(life.result() - few.result()) for name, life in lives.items()}
    finally:
        rig.stop()


if __name__ == "__main__":
    sys.exit(main())
