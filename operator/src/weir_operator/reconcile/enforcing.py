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
from weir_operator.domain.times import time_text
from weir_operator.reconcile.coverage import Coverage
from weir_operator.reconcile.fleet import of, some
from weir_operator.reconcile.weakness import Weakness, chief, explain

Judgement = tuple[Status, Reason, str]

NAMED_RULES = 3  # of each failure mode in a message; the rest is counted
NAMED_LIMITERS = 3  # likewise

_STAND_INS = {
    FailureMode.OPEN: "everything passes by {} (Open)",
    FailureMode.CLOSED: "everything is refused by {} (Closed)",
    FailureMode.LOCAL: "each limiter grants its own share of {} (Local)",
}


def enforcing(
    piece: Policy | None, coverage: Coverage, weak: Sequence[Weakness] = (), *, superseded: bool = False
) -> Judgement:
    """Judge the version of a policy that should run; `superseded`: the spec has a newer one that cannot.

    The first of these that holds gives the reason: nothing should run; no rule refuses; no store; a rule that does not
    refuse; a limiter without it; one that does not answer; no request for any policy, or for this one; a newer spec
    that cannot run; a limiter with an earlier version. `weak` are the rules that do not refuse.
    """
    if piece is None:
        return Status.FALSE, Reason.NOT_PROGRAMMED, f"no limiter should run it: see Accepted{_still(coverage)}"
    held = [rule for rule in piece.rules if rule.name not in {weakness.rule for weakness in weak}]
    if not held:
        counts = any(weakness.mode is Mode.SHADOW for weakness in weak)  # a rule that is off looks at no request
        silence = _silence(coverage) if counts else ""
        return Status.FALSE, chief(weak), explain(weak, alone=True) + _still(coverage) + silence
    partly = f"; {explain(weak)}" if weak else ""
    failing = [rule for rule in held if rule.scope is not Scope.INSTANCE]
    if coverage.storeless and failing:
        local = all(rule.on_store_failure is FailureMode.LOCAL for rule in failing)
        reason = Reason.DEGRADED if local else Reason.STORE_UNAVAILABLE
        return Status.FALSE, reason, _store_message(held, failing, coverage) + partly
    if weak:
        others = f"; {some(sorted({rule.name for rule in held}), NAMED_RULES)} {_applied(coverage)}"
        return Status.FALSE, chief(weak), explain(weak) + others
    return _judge_limiters(coverage, superseded=superseded)


def _judge_limiters(coverage: Coverage, *, superseded: bool) -> Judgement:
    applied, silence = _applied(coverage), _silence(coverage).removeprefix("; ")
    earlier = f"{applied}: an earlier generation, see Accepted and Programmed"
    cases = (
        (not coverage.total, Status.FALSE, Reason.NOT_PROGRAMMED, "the gateway has no limiter: see Programmed"),
        (bool(coverage.idle), Status.FALSE, Reason.NOT_PROGRAMMED, applied),
        (bool(coverage.silent), Status.UNKNOWN, Reason.LIMITER_UNREACHABLE, applied),
        (coverage.unasked_since_ms is not None, Status.UNKNOWN, Reason.NOT_ASKED, silence),
        (coverage.unmatched_since_ms is not None, Status.FALSE, Reason.NO_TRAFFIC_MATCHED, silence),
        (superseded, Status.TRUE, Reason.EARLIER_GENERATION, earlier),
        (bool(coverage.earlier), Status.TRUE, Reason.ROLLING_OUT, applied),
    )
    found = (case[1:] for case in cases if case[0])
    return next(found, (Status.TRUE, Reason.ENFORCING, applied))


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


def _silence(coverage: Coverage) -> str:
    """Say that no request comes, if so: in shadow, too, it means that there will be no evidence."""
    if coverage.unasked_since_ms is not None:
        since = time_text(coverage.unasked_since_ms / 1000)
        return f"; Envoy has asked no limiter of the gateway since {since}: there is no traffic, or it does not ask"
    if coverage.unmatched_since_ms is not None:
        return f"; no request has matched spec.match since {time_text(coverage.unmatched_since_ms / 1000)}"
    return ""


def _store_message(held: Sequence[Rule], failing: Sequence[Rule], coverage: Coverage) -> str:
    """Say what stands in for the rules that need the store where it is away, and what is as written all the same."""
    parts = []
    for mode, words in _STAND_INS.items():
        names = [rule.name for rule in failing if rule.on_store_failure is mode]
        if names:
            parts.append(words.format(some(names, NAMED_RULES)))
    others = [rule.name for rule in held if rule not in failing]
    if others:
        parts.append(f"enforced without a store: {some(others, NAMED_RULES)}")
    elsewhere = [name for name in (*coverage.whole, *coverage.earlier) if name not in coverage.storeless]
    if elsewhere:
        parts.append(f"enforced as written on {_named(elsewhere)}")
    return f"the store is down on {of(len(coverage.storeless), coverage.total)}: {'; '.join(parts)}"


def _named(limiters: Sequence[str]) -> str:
    return some(limiters, NAMED_LIMITERS)
