# SPDX-License-Identifier: Apache-2.0
"""`weir kill`: weaken a rule, or all of a policy's, at once and for a time. Owns its options and its words."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta
from typing import Any

from weir_operator.api.intervening import KILL_SWITCHES
from weir_operator.api.interventions import MAX_REASON
from weir_operator.api.types import DURATION_FORM, parse_duration_us
from weir_operator.cli.intervention import Change, Context, add_options
from weir_operator.domain.interventions import ALL_RULES
from weir_operator.domain.limits import Mode
from weir_operator.domain.times import time_text

FOREVER = "forever"
SECOND_US = 1_000_000
_EFFECTS = {
    Mode.DISABLED: "counts nothing and refuses nobody",
    Mode.SHADOW: "counts, and refuses nobody",
}


def add_to(commands: Any) -> None:
    """Add the subcommand to argparse's subparsers."""
    parser = commands.add_parser(
        "kill",
        help="switch a rule off at once, for a time",
        description="Switches a rule off on every limiter within two seconds, whatever the spec says. No GitOps sync "
        "and no restart undoes it; it ends by itself, or with `weir unkill`.",
        epilog="Needs get and patch of ratelimitpolicies/status, as the cluster role weir-switcher has.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--for",
        dest="duration",
        type=_duration,
        required=True,
        metavar="TIME",
        help=f"how long, like 2h or 30m; `{FOREVER}`: until `weir unkill`",
    )
    parser.add_argument("--reason", type=reason, required=True, help="why; stands in the status, the Event and the log")
    parser.add_argument(
        "--mode",
        type=Mode,
        choices=list(_EFFECTS),
        default=Mode.DISABLED,
        help="Disabled (the default): the rule does nothing; Shadow: it counts and refuses nobody",
    )
    add_options(parser, plan, rule_help="the rule (default: all rules of the policy)")


def plan(options: argparse.Namespace, context: Context) -> Change:
    """Return what is to be written. Raises Refused."""
    name = options.rule or ALL_RULES
    if options.rule is not None:
        context.check_rule(options.rule)
    end = None if options.duration is None else context.now + options.duration
    entry = {
        "mode": str(options.mode),
        "reason": options.reason,
        "by": context.who,
        "expiresAt": None if end is None else time_text(end.timestamp()),
    }
    what = f"rule {options.rule}" if options.rule is not None else f"all rules ({', '.join(context.rules)})"
    until = "until somebody ends it" if end is None else f"until {time_text(end.timestamp())}"
    meta = context.policy["metadata"]
    details = [("effect", f"{options.mode}: {_EFFECTS[options.mode]}, {until}"), ("reason", options.reason)]
    previous = context.entries(KILL_SWITCHES).get(name)
    if previous is not None:
        details.append(("replaces", shown_switch(previous)))
    return Change(f"Switch off {what} of {meta['namespace']}/{meta['name']}?", details, {KILL_SWITCHES: {name: entry}})


def shown_switch(entry: Any) -> str:
    """Return an entry of the status in a line."""
    until = entry.get("expiresAt") or "somebody ends it"
    return f"{entry.get('mode')} by {entry.get('by', 'nobody')} until {until}: {entry.get('reason', 'no reason given')}"


def reason(text: str) -> str:
    """Parse a reason for the record."""
    if not 0 < len(text.strip()) <= MAX_REASON:
        raise argparse.ArgumentTypeError(f"must have 1 to {MAX_REASON} characters")
    return text.strip()


def _duration(text: str) -> timedelta | None:
    if text == FOREVER:
        return None
    length_us = parse_duration_us(text) if re.fullmatch(DURATION_FORM, text) else 0
    if length_us < SECOND_US:  # the limiters compare whole seconds
        raise argparse.ArgumentTypeError(f"'{text}' is no time of a second or more: write 2h, 30m or {FOREVER}")
    return timedelta(microseconds=length_us)
