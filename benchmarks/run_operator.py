# SPDX-License-Identifier: Apache-2.0
"""`make bench-operator`: the operator at the size that it must bear; prints a table, writes results/operator.json.

Like `make bench` it judges nothing: the exit status says whether it could measure.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent / "tests" / "e2e"))

import big_gateway  # noqa: E402 - the path to the lab comes first
import compiling  # noqa: E402
from figures import markdown, write  # noqa: E402
from lab.progress import say  # noqa: E402

_RESULTS = _HERE / "results" / "operator.json"


def main() -> int:
    """Measure; the results file is written only by a run of the full size."""
    options = _parser().parse_args()
    size = big_gateway.Size(options.policies, options.overrides, options.namespaces, options.limiters)
    figures = [*compiling.measure(), *big_gateway.measure(size, edits_count=options.edits)]
    say(f"\n{markdown(figures)}\n")
    if size == big_gateway.Size():
        write(figures, [], _RESULTS)
        say(f"Written to {_RESULTS.relative_to(_HERE.parent)}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = big_gateway.Size()
    parser.add_argument("--policies", type=int, default=size.policies)
    parser.add_argument("--overrides", type=int, default=size.overrides)
    parser.add_argument("--namespaces", type=int, default=size.namespaces)
    parser.add_argument("--limiters", type=int, default=size.limiters, help="at least 3; two of them are real")
    parser.add_argument("--edits", type=int, default=50, help="edits of a policy (default: 50)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
