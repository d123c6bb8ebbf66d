# SPDX-License-Identifier: Apache-2.0
"""`make bench`: measure everything that has a target, print Markdown tables, write results/latest.json.

It judges nothing: the exit status says whether it could measure, and the column "met" says the rest, because times on
a shared machine are no reason to fail a build.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent / "tests" / "e2e"))

import bare_script  # noqa: E402 - the path to the lab comes first
import callgrind  # noqa: E402
import compiling  # noqa: E402
import contention  # noqa: E402
import edits  # noqa: E402
import instructions  # noqa: E402
import kill_switches  # noqa: E402
import load  # noqa: E402
import scenarios  # noqa: E402
import summary  # noqa: E402
from figures import Figure, markdown, write  # noqa: E402
from lab.progress import say  # noqa: E402

_RESULTS = _HERE / "results" / "latest.json"


def main() -> int:
    """Measure what was asked for; the results file is written only by a whole run."""
    options = _parser().parse_args()
    figures: list[Figure] = []
    details: list[Figure] = []
    windows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        scratch = Path(folder)

        def decisions() -> list[Figure]:
            measured = scenarios.run(scratch / "decisions", options.rounds, options.seconds)
            windows.extend(window.raw() for window in measured.windows)
            details.extend(summary.details(measured.windows))
            say(f"\n{summary.table(measured.windows)}")
            return summary.figures(measured.windows, measured.idle_mb)

        parts: dict[str, tuple[str, Callable[[], list[Figure]]]] = {
            "operator": ("Compile and render", compiling.measure),
            "script": ("Bytes of a subject in the store", lambda: bare_script.measure(scratch)),
            "instructions": ("Instructions, where there is valgrind", _instructions),
            "decisions": ("Decisions beside echo and script", decisions),
            "cluster": ("Contention over the slots of a cluster", lambda: contention.measure(scratch / "cluster")),
            "edits": (f"{options.edits} edits in the lab", lambda: edits.measure(edits=options.edits)),
            "switches": (
                f"{options.edits} kill switches in the lab",
                lambda: kill_switches.measure(switches=options.edits, crowd=(options.policies, options.overrides)),
            ),
        }
        if options.only in (None, "decisions", "cluster", "instructions"):
            load.build()
        for name, (what, measure) in parts.items():
            if options.only in (None, name):
                say(f"\n· {what}")
                figures += measure()
    say(f"\n{markdown(figures)}\n")
    if options.only is None:
        write([*figures, *details], windows, _RESULTS)
        say(f"Written to {_RESULTS.relative_to(_HERE.parent)}.")
    return 0


def _instructions() -> list[Figure]:
    if not callgrind.available():
        say(callgrind.MISSING)
        return []
    return instructions.figures(instructions.count())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["operator", "script", "instructions", "decisions", "cluster", "edits", "switches"]
    parser.add_argument("--only", choices=parts, help="one part, no file written")
    parser.add_argument("--rounds", type=int, default=3, help="windows per subject and load (default: 3)")
    parser.add_argument("--seconds", type=float, default=2.5, help="length of a window (default: 2.5)")
    parser.add_argument("--edits", type=int, default=50, help="edits of a policy, kill switches (default: 50)")
    parser.add_argument("--policies", type=int, default=1000, help="beside a kill switch (default: 1000)")
    parser.add_argument("--overrides", type=int, default=12_000, help="beside a kill switch (default: 12000)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
