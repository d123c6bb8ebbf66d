# SPDX-License-Identifier: Apache-2.0
"""Whether a policy's limits are really applied now, and what stands in for them if not.

Owns the precedence of the reasons and the words of `Enforcing`: first what is not applied, then what is, with the
limiters by name. Pure, without numbers that move by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from weir_operator.domain.conditions import Reason, Status
from weir_operator.domain.limits import FailureMode, Mode, Scope
from weir_operator.domain.ruleset import Policy, Rule
from weir_operator.reconcile.coverage import Coverage
from weir_operator.reconcile.fleet import of, some

Judgement = tuple[Status, Reason, str]

NAMED_RULES = 3  # of each failure mode in a message; the rest is counted
NAMED_LIMITERS = 3  # likewise

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


def enforcing(piece: Policy | None, coverage: Coverage, *, superseded: bool = False) -> Judgement:
    """Judge the version of a policy that should run; `superseded`: the spec has a newer one that cannot.

    The first of these that holds gives the reason: nothing should run; its mode; no store; a limiter without it; a
    limiter that does not answer; a limiter with an earlier version; a newer spec that cannot run.
    """
    if piece is None:
        return Status.FALSE, Reason.NOT_PROGRAMMED, f"no limiter should run it: see Accepted{_still(coverage)}"
    mode = piece.rules[0].mode  # one mode for all rules of a policy
    if mode is not Mode.ENFORCE:
        reason = Reason.SHADOW_MODE if mode is Mode.SHADOW else Reason.SWITCHED_OFF
        return Status.FALSE, reason, MODE_MESSAGES[mode] + _still(coverage)
    applied = _applied(coverage)
    failing = failing_rules(piece)
    if coverage.storeless and failing:
        local = all(rule.on_store_failure is FailureMode.LOCAL for rule in failing)
        reason = Reason.DEGRADED if local else Reason.STORE_UNAVAILABLE
        return Status.FALSE, reason, store_message(piece, failing, coverage)
    return _judge_limiters(coverage, applied, superseded=superseded)


def _judge_limiters(coverage: Coverage, applied: str, *, superseded: bool) -> Judgement:
    if not coverage.total:
        return Status.FALSE, Reason.NOT_PROGRAMMED, "the gateway has no limiter: see Programmed"
    if coverage.idle:
        return Status.FALSE, Reason.NOT_PROGRAMMED, applied
    if coverage.silent:
        return Status.UNKNOWN, Reason.LIMITER_UNREACHABLE, applied
    if superseded:
        return Status.TRUE, Reason.EARLIER_GENERATION, f"{applied}: an earlier generation, see Accepted and Programmed"
    if coverage.earlier:
        return Status.TRUE, Reason.ROLLING_OUT, applied
    return Status.TRUE, Reason.ENFORCING, applied


def _applied(coverage: Coverage) -> str:
    """Say on how many limiters something is enforced, and which are the others."""
    parts = [f"enforced on {of(len(coverage.whole) + len(coverage.earlier), coverage.total)}"]
    if coverage.earlier:
        parts.append(f"an earlier version on {_named(coverage.earlier)}")
    if coverage.idle:
        parts.append(f"nothing on {_named(coverage.idle)}")
    if coverage.silent:
        parts.append(f"not known of {_named(coverage.silent)}, which give no answer")
    return ", ".join(parts)


def _still(coverage: Coverage) -> str:
    return f"; an earlier version is still enforced on {_named(coverage.earlier)}" if coverage.earlier else ""


def failing_rules(piece: Policy) -> tuple[Rule, ...]:
    """The rules that need the store."""
    return tuple(rule for rule in piece.rules if rule.scope is not Scope.INSTANCE)


def store_message(piece: Policy, failing: Sequence[Rule], coverage: Coverage) -> str:
    """Say what stands in for the rules that need the store where it is away, and what is as written all the same."""
    parts = []
    for mode, words in _STAND_INS.items():
        names = [rule.name for rule in failing if rule.on_store_failure is mode]
        if names:
            parts.append(words.format(some(names, NAMED_RULES)))
    others = [rule.name for rule in piece.rules if rule not in failing]
    if others:
        parts.append(f"enforced without a store: {some(others, NAMED_RULES)}")
    elsewhere = [name for name in (*coverage.whole, *coverage.earlier) if name not in coverage.storeless]
    if elsewhere:
        parts.append(f"enforced as written on {_named(elsewhere)}")
    return f"the store is down on {of(len(coverage.storeless), coverage.total)}: {'; '.join(parts)}"


def _named(limiters: Sequence[str]) -> str:
    return some(limiters, NAMED_LIMITERS)
