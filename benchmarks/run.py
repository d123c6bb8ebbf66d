# SPDX-License-Identifier: Apache-2.0
"""`make bench`: measure everything that has a target, print a Markdown table, write results/latest.json.

It judges nothing: the exit status says whether it could measure, and the column "met" says the rest, because times on
a shared machine are no reason to fail a build.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent / "tests" / "e2e"))

import bare_script  # noqa: E402 - the path to the lab comes first
import compiling  # noqa: E402
import decisions  # noqa: E402
import edits  # noqa: E402
import load  # noqa: E402
from figures import Figure, markdown, write  # noqa: E402
from lab.progress import say  # noqa: E402

_RESULTS = _HERE / "results" / "latest.json"


def main() -> int:
    """Measure what was asked for; the results file is written only by a whole run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", choices=["decisions", "script", "operator", "edits"], help="one part, no file written"
    )
    parser.add_argument("--rounds", type=int, default=5, help="windows per server and load (default: 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a window (default: 3)")
    parser.add_argument("--edits", type=int, default=50, help="edits of a policy (default: 50)")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    if arguments.only in (None, "decisions"):
        load.build()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        scratch = Path(folder)
        windows = (arguments.rounds, arguments.seconds)
        parts: dict[str, tuple[str, Callable[[], list[Figure]]]] = {
            "operator": ("Compile and render", compiling.measure),
            "script": ("The bare script", lambda: bare_script.measure(scratch)),
            "decisions": ("Decisions beside echo and script", lambda: decisions.measure(scratch / "d", *windows)),
            "edits": (f"{arguments.edits} edits in the lab", lambda: edits.measure(edits=arguments.edits)),
        }
        for name, (what, measure) in parts.items():
            if arguments.only in (None, name):
                say(f"\n· {what}")
                figures += measure()
    say(f"\n{markdown(figures)}\n")
    if arguments.only is None:
        write(figures, _RESULTS)
        say(f"Written to {_RESULTS.relative_to(_HERE.parent)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
