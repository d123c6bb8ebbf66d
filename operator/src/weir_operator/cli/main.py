# SPDX-License-Identifier: Apache-2.0
"""The program `weir`: finds the subcommand and runs it.

Exit status: 0 = done, 1 = it cannot be done and the message says why, 2 = the command line is wrong.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Sequence

from weir_operator.cli import capacity, kill, promote, rollout, unkill

_COMMANDS = (rollout, kill, unkill, promote, capacity)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    options = parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    whole = argparse.ArgumentParser(prog="weir", description="What people ask and tell Weir.", allow_abbrev=False)
    whole.add_argument("--version", action="version", version=f"weir {importlib.metadata.version('weir-operator')}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return whole


if __name__ == "__main__":
    sys.exit(main())
