# SPDX-License-Identifier: Apache-2.0
"""`weir rollout`: where each rule of a policy stands and what it waits for. Owns its options; changes nothing."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from weir_operator.cli.rollout_view import exit_status, rows, table

EXIT_REFUSED = 1
FORMATS = ("table", "json")


def add_to(commands: Any) -> None:
    """Add the subcommand to argparse's subparsers."""
    parser = commands.add_parser(
        "rollout",
        help="show where a policy's rules stand on their way from shadow to enforced",
        description="Prints for each rule which version is enforced, how far the new one is and what it waits for.",
        epilog="Exit status: 0 = no rule waits, 1 = it cannot be said, 3 = a rule waits, 4 = a rule was rolled back. "
        "Needs get of ratelimitpolicies/status.",
        allow_abbrev=False,
    )
    parser.add_argument("policy", metavar="POLICY", help="name of the RateLimitPolicy")
    parser.add_argument("-n", "--namespace", help="of the policy (default: that of the kubeconfig's context)")
    parser.add_argument("-o", "--output", choices=FORMATS, default=FORMATS[0], help="how (default: %(default)s)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print it; return the exit status."""
    from weir_operator.cli.reading import Unread, read_policy  # noqa: PLC0415  loads a client that paper does without
    from weir_operator.clock import SystemClock  # noqa: PLC0415

    try:
        policy = asyncio.run(read_policy(options.namespace, options.policy))
    except Unread as error:
        print(f"weir {options.command}: {error}", file=sys.stderr)
        return EXIT_REFUSED
    found = rows(policy, SystemClock().now().timestamp())
    if options.output == "json":
        print(json.dumps({"policy": options.policy, "rules": found}, indent=2))
    elif found:
        print(table(found))
    else:
        print("The operator has said nothing of this policy's rules yet: see its conditions.")
    return exit_status(found)
