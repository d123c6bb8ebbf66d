# SPDX-License-Identifier: Apache-2.0
"""What people said by hand, as `weir kill`, `unkill` and `promote` make it from their options and the policy.

Owns the options that they share and the values between a command and its errand. Talks to nobody: that is `errand`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from weir_operator.domain.problems import did_you_mean

WAIT_S = 15.0  # a change is live within 2 s normally; a limiter that is not by then needs a look


class Refused(Exception):  # noqa: N818  named by its consequence
    """It cannot be done; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a command would do: in words, and as a merge patch of the status."""

    question: str
    details: Sequence[tuple[str, str]]
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a change is made of besides the options."""

    policy: Mapping[str, Any]
    who: str
    now: datetime

    @property
    def rules(self) -> list[str]:
        """The names of the policy's rules, in its order."""
        return [rule["name"] for rule in self.policy["spec"]["rules"]]

    def entries(self, field: str) -> Mapping[str, Any]:
        """What people wrote into a field of the status."""
        return (self.policy.get("status") or {}).get(field) or {}

    def check_rule(self, name: str) -> None:
        """Raise Refused unless the policy has a rule of that name."""
        if name not in self.rules:
            meta = self.policy["metadata"]
            hint = did_you_mean(name, self.rules)
            raise Refused(f'{meta["namespace"]}/{meta["name"]} has no rule "{name}"; {hint}')


Planner = Callable[[argparse.Namespace, Context], Change]


def add_options(parser: argparse.ArgumentParser, plan: Planner, *, rule_help: str) -> None:
    """Add what the commands have in common; `plan` makes the change."""
    parser.add_argument("policy", metavar="POLICY", help="name of the RateLimitPolicy")
    parser.add_argument("rule", metavar="RULE", nargs="?", help=rule_help)
    parser.add_argument("-n", "--namespace", help="of the policy (default: that of the kubeconfig's context)")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--wait", type=float, default=WAIT_S, metavar="S", help=f"seconds to wait for the limiters (default {WAIT_S:g})"
    )
    parser.set_defaults(run=lambda options: _run(options, plan))


def _run(options: argparse.Namespace, plan: Planner) -> int:
    from weir_operator.cli.errand import run  # noqa: PLC0415  loads a client that planning on paper does without

    return run(options, plan)
