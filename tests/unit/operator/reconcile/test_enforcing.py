# SPDX-License-Identifier: Apache-2.0
"""When a policy is really enforced, and what is said when it is not."""

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.conditions import Reason, Status
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Scope, Visibility
from weir_operator.domain.ruleset import Match, Policy, Response, Rule
from weir_operator.reconcile.enforcing import enforcing

OPEN, CLOSED, LOCAL = FailureMode


def rule(name: str, failure: FailureMode, mode: Mode, scope: Scope | None = None) -> Rule:
    bucket = TokenBucket(1, 1_000_000, 1)
    return Rule(name, mode, (), MissingKey.SKIP, bucket, None, (), failure, Visibility.PUBLIC, "rate_limited", scope)


def policy(*failures: FailureMode, mode: Mode = Mode.ENFORCE, scope: Scope | None = None) -> Policy:
    rules = tuple(rule(f"r{place}", failure, mode, scope) for place, failure in enumerate(failures))
    return Policy("t/p", 1, Match((), ()), (), rules, Response(Dialect.NONE, None))


@pytest.mark.requirement("R22", "R24")
@pytest.mark.parametrize(
    ("piece", "running", "stores_down", "status", "reason"),
    [
        (policy(OPEN), 2, 0, Status.TRUE, Reason.ENFORCING),
        (policy(OPEN), 1, 0, Status.TRUE, Reason.ENFORCING),
        (policy(OPEN), 0, 0, Status.FALSE, Reason.NOT_PROGRAMMED),
        (None, 0, 0, Status.FALSE, Reason.NOT_PROGRAMMED),
        (policy(OPEN, mode=Mode.SHADOW), 2, 2, Status.FALSE, Reason.SHADOW_MODE),
        (policy(OPEN, mode=Mode.DISABLED), 2, 2, Status.FALSE, Reason.SWITCHED_OFF),
        (policy(OPEN), 2, 1, Status.FALSE, Reason.STORE_UNAVAILABLE),
        (policy(CLOSED), 2, 1, Status.FALSE, Reason.STORE_UNAVAILABLE),
        (policy(LOCAL), 2, 1, Status.FALSE, Reason.DEGRADED),
        (policy(LOCAL, OPEN), 2, 1, Status.FALSE, Reason.STORE_UNAVAILABLE),
        (policy(OPEN, scope=Scope.INSTANCE), 2, 2, Status.TRUE, Reason.ENFORCING),
    ],
    ids=[
        "on every limiter", "on some", "on none", "nothing runs", "in shadow", "switched off", "open", "closed",
        "shares", "shares and open", "needs no store",
    ],
)  # fmt: skip
def test_it_is_true_only_while_the_limits_hold_as_written(
    piece: Policy | None, running: int, stores_down: int, status: Status, reason: Reason
) -> None:
    assert enforcing(piece, running, 2, stores_down)[:2] == (status, reason)


def test_the_message_says_what_stands_in_for_each_rule() -> None:
    message = enforcing(policy(OPEN, CLOSED, LOCAL, OPEN), 2, 2, 1)[2]
    assert message == (
        "the store is down on 1 of 2 limiters: everything passes by r0, r3 (Open); "
        "everything is refused by r1 (Closed); each limiter grants its own share of r2 (Local)"
    )
