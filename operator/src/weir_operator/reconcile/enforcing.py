# SPDX-License-Identifier: Apache-2.0
"""Whether a policy's limits are really enforced now, and what stands in for them if not.

Owns the precedence of the reasons and the words of `Enforcing`. Pure, without numbers that move by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from weir_operator.domain.conditions import Reason, Status
from weir_operator.domain.limits import FailureMode, Mode, Scope
from weir_operator.domain.ruleset import Policy, Rule

Judgement = tuple[Status, Reason, str]

NAMED_RULES = 3  # of each failure mode in a message; the rest is counted

MODE_MESSAGES = {
    Mode.ENFORCE: "enforced",
    Mode.SHADOW: "mode Shadow: requests over the limit are counted, none is refused",
    Mode.DISABLED: "mode Disabled: nothing is counted and nothing is refused",
}
_STAND_INS = {
    FailureMode.OPEN: "everything passes by {} (Open)",
    FailureMode.CLOSED: "everything is refused by {} (Closed)",
    FailureMode.LOCAL: "each limiter grants its own share of {} (Local)",
}


def enforcing(piece: Policy | None, running: int, total: int, stores_down: int) -> Judgement:
    """Judge a policy that runs on `running` of `total` limiters, of which `stores_down` lack their store."""
    if piece is None or running == 0:
        return Status.FALSE, Reason.NOT_PROGRAMMED, "no limiter runs it as it is: see Programmed"
    mode = piece.rules[0].mode  # one mode for all rules of a policy
    if mode is Mode.SHADOW:
        return Status.FALSE, Reason.SHADOW_MODE, MODE_MESSAGES[mode]
    if mode is Mode.DISABLED:
        return Status.FALSE, Reason.SWITCHED_OFF, MODE_MESSAGES[mode]
    failing = failing_rules(piece)
    if stores_down and failing:
        local = all(rule.on_store_failure is FailureMode.LOCAL for rule in failing)
        reason = Reason.DEGRADED if local else Reason.STORE_UNAVAILABLE
        return Status.FALSE, reason, store_message(failing, stores_down, total)
    return Status.TRUE, Reason.ENFORCING, f"enforced on {of(running, total)}"


def failing_rules(piece: Policy) -> tuple[Rule, ...]:
    """The rules that need the store."""
    return tuple(rule for rule in piece.rules if rule.scope is not Scope.INSTANCE)


def store_message(failing: Sequence[Rule], stores_down: int, total: int) -> str:
    """Say what stands in for the rules that need the store where it is away."""
    parts = []
    for mode, words in _STAND_INS.items():
        names = [rule.name for rule in failing if rule.on_store_failure is mode]
        if names:
            parts.append(words.format(some(names, NAMED_RULES)))
    return f"the store is down on {of(stores_down, total)}: {'; '.join(parts)}"


def of(running: int, total: int) -> str:
    """`2 of 3 limiters`."""
    return f"{running} of {total} limiter{'' if total == 1 else 's'}"


def some(names: Sequence[str], shown: int) -> str:
    """The first few names; the rest is counted."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
