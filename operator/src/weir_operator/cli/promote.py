# SPDX-License-Identifier: Apache-2.0
"""`weir promote`: approve a rule's present generation by hand. Owns its options and its words."""

from __future__ import annotations

import argparse
from typing import Any

from weir_operator.api.intervening import APPROVALS
from weir_operator.cli.intervention import Change, Context, add_options
from weir_operator.cli.kill import reason
from weir_operator.domain.times import time_text


def add_to(commands: Any) -> None:
    """Add the subcommand to argparse's subparsers."""
    parser = commands.add_parser(
        "promote",
        help="enforce a rule that waits in its rollout",
        description="Approves the present generation of a policy's rules, also past evidence that speaks against it. "
        "A later edit of the policy needs an approval of its own.",
        epilog="Needs get and patch of ratelimitpolicies/status, as the cluster role weir-switcher has.",
        allow_abbrev=False,
    )
    parser.add_argument("--reason", type=reason, required=True, help="why; stands in the status, the Event and the log")
    add_options(parser, plan, rule_help="the rule (default: all rules of the policy)")


def plan(options: argparse.Namespace, context: Context) -> Change:
    """Return what is to be written. Raises Refused."""
    if options.rule is not None:
        context.check_rule(options.rule)
    names = context.rules if options.rule is None else [options.rule]
    meta = context.policy["metadata"]
    entry = {
        "generation": meta["generation"],
        "by": context.who,
        "reason": options.reason,
        "at": time_text(context.now.timestamp()),
    }
    what = f"generation {meta['generation']} of {meta['namespace']}/{meta['name']}"
    return Change(
        f"Promote {what}?",
        [("rules", ", ".join(names)), ("reason", options.reason)],
        {APPROVALS: dict.fromkeys(names, entry)},
    )
