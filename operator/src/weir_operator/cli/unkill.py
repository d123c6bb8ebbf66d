# SPDX-License-Identifier: Apache-2.0
"""`weir unkill`: end a kill switch, or all of a policy's. Owns its options and its words."""

from __future__ import annotations

import argparse
from typing import Any

from weir_operator.api.intervening import KILL_SWITCHES
from weir_operator.cli.intervention import Change, Context, Refused, add_options
from weir_operator.cli.kill import shown_switch
from weir_operator.domain.interventions import ALL_RULES


def add_to(commands: Any) -> None:
    """Add the subcommand to argparse's subparsers."""
    parser = commands.add_parser(
        "unkill",
        help="end a kill switch",
        description="Ends kill switches: the rules do what the spec says again within two seconds.",
        epilog="Needs get and patch of ratelimitpolicies/status, as the cluster role weir-switcher has.",
        allow_abbrev=False,
    )
    add_options(parser, plan, rule_help=f"the rule, or '{ALL_RULES}' (default: every switch of the policy)")


def plan(options: argparse.Namespace, context: Context) -> Change:
    """Return what is to be written. Raises Refused."""
    switches = context.entries(KILL_SWITCHES)
    meta = context.policy["metadata"]
    policy = f"{meta['namespace']}/{meta['name']}"
    if not switches:
        raise Refused(f"no kill switch is set on {policy}")
    names = sorted(switches) if options.rule is None else [options.rule]
    if names[0] not in switches:
        raise Refused(
            f'no kill switch is set on "{names[0]}" of {policy}; there is one on {", ".join(sorted(switches))}'
        )
    details = [(name, shown_switch(switches[name])) for name in names]
    if ALL_RULES in switches and ALL_RULES not in names:
        details.append(("stays", f"{ALL_RULES}: {shown_switch(switches[ALL_RULES])}"))
    return Change(f"End on {policy}:", details, {KILL_SWITCHES: dict.fromkeys(names)})
