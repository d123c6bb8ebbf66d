# SPDX-License-Identifier: Apache-2.0
"""When a policy is really enforced, on how many limiters, and what is said when it is not."""

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.conditions import Reason, Status
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Scope, Visibility
from weir_operator.domain.ruleset import Match, Policy, Response, Rule
from weir_operator.reconcile.coverage import Coverage
from weir_operator.reconcile.enforcing import enforcing
from weir_operator.reconcile.weakness import Weakness

OPEN, CLOSED, LOCAL = FailureMode
BOTH = Coverage(whole=("a", "b"))
HALF_STORELESS = Coverage(whole=("a", "b"), storeless=("a",))
SHADOWED = Weakness("r0", Mode.SHADOW, Reason.SHADOW_MODE, "mode Shadow")
OFF = Weakness("r0", Mode.DISABLED, Reason.SWITCHED_OFF, "mode Disabled")
KILLED = Weakness("r0", Mode.DISABLED, Reason.KILL_SWITCH, "kill switch by ann, mode Disabled")
NOON_MS, NOON = 1_796_126_400_000, "2026-12-01T12:00:00Z"
ALL_STORELESS = Coverage(whole=("a", "b"), storeless=("a", "b"))


def rule(name: str, failure: FailureMode, scope: Scope | None = None) -> Rule:
    bucket = TokenBucket(1, 1_000_000, 1)
    return Rule(
        name, Mode.ENFORCE, (), MissingKey.SKIP, bucket, None, (), failure, Visibility.PUBLIC, "rate_limited", scope
    )


def policy(*failures: FailureMode, scope: Scope | None = None) -> Policy:
    rules = tuple(rule(f"r{place}", failure, scope) for place, failure in enumerate(failures))
    return Policy("t/p", 1, Match((), ()), (), rules, Response(Dialect.NONE, None))


@pytest.mark.requirement("R22", "R24", "R40")
@pytest.mark.parametrize(
    ("piece", "coverage", "status", "reason"),
    [
        (policy(OPEN), BOTH, Status.TRUE, Reason.ENFORCING),
        (policy(OPEN), Coverage(whole=("a",), idle=("b",)), Status.FALSE, Reason.NOT_PROGRAMMED),
        (policy(OPEN), Coverage(idle=("a", "b")), Status.FALSE, Reason.NOT_PROGRAMMED),
        (policy(OPEN), Coverage(), Status.FALSE, Reason.NOT_PROGRAMMED),
        (policy(OPEN), Coverage(whole=("a",), silent=("b",)), Status.UNKNOWN, Reason.LIMITER_UNREACHABLE),
        (policy(OPEN), Coverage(silent=("a", "b")), Status.UNKNOWN, Reason.LIMITER_UNREACHABLE),
        (policy(OPEN), Coverage(idle=("a",), silent=("b",)), Status.FALSE, Reason.NOT_PROGRAMMED),
        (policy(OPEN), Coverage(whole=("a",), earlier=("b",)), Status.TRUE, Reason.ROLLING_OUT),
        (policy(OPEN), Coverage(earlier=("a", "b")), Status.TRUE, Reason.ROLLING_OUT),
        (None, Coverage(idle=("a", "b")), Status.FALSE, Reason.NOT_PROGRAMMED),
        (None, Coverage(earlier=("a", "b")), Status.FALSE, Reason.NOT_PROGRAMMED),
        (policy(OPEN), Coverage(whole=("a",), unasked_since_ms=NOON_MS), Status.UNKNOWN, Reason.NOT_ASKED),
        (policy(OPEN), Coverage(whole=("a",), unmatched_since_ms=NOON_MS), Status.FALSE, Reason.NO_TRAFFIC_MATCHED),
        (policy(OPEN), HALF_STORELESS, Status.FALSE, Reason.STORE_UNAVAILABLE),
        (policy(CLOSED), HALF_STORELESS, Status.FALSE, Reason.STORE_UNAVAILABLE),
        (policy(LOCAL), HALF_STORELESS, Status.FALSE, Reason.DEGRADED),
        (policy(LOCAL, OPEN), HALF_STORELESS, Status.FALSE, Reason.STORE_UNAVAILABLE),
        (policy(OPEN, scope=Scope.INSTANCE), ALL_STORELESS, Status.TRUE, Reason.ENFORCING),
    ],
    ids=[
        "on every limiter", "not on one that answers", "on none", "no limiter at all", "one does not answer",
        "none answers", "one lacks it, one does not answer", "on one an earlier version", "an earlier one on all",
        "refused for good", "refused, and a limiter has not let go", "nobody is asked", "nothing matches",
        "open", "closed",
        "shares", "shares and open", "needs no store",
    ],
)  # fmt: skip
def test_it_is_true_only_while_limits_are_applied_everywhere(
    piece: Policy | None, coverage: Coverage, status: Status, reason: Reason
) -> None:
    """D52."""
    assert enforcing(piece, coverage)[:2] == (status, reason)


def test_an_edit_that_cannot_run_leaves_the_earlier_generation_enforced() -> None:
    status, reason, message = enforcing(policy(OPEN), BOTH, superseded=True)
    assert (status, reason) == (Status.TRUE, Reason.EARLIER_GENERATION)
    assert message == "enforced on 2 of 2 limiters: an earlier generation, see Accepted and Programmed"


def test_the_message_counts_and_names_the_limiters() -> None:
    coverage = Coverage(("a",), ("b",), ("c",), ("http://d", "http://e"))
    assert enforcing(policy(OPEN), coverage)[2] == (
        "enforced on 2 of 5 limiters, an earlier version on b, nothing on c, "
        "not known of http://d, http://e, which give no answer"
    )


@pytest.mark.parametrize(
    ("weak", "coverage", "reason"),
    [
        ((SHADOWED,), ALL_STORELESS, Reason.SHADOW_MODE),
        ((OFF,), ALL_STORELESS, Reason.SWITCHED_OFF),
        ((KILLED,), Coverage(silent=("a", "b")), Reason.KILL_SWITCH),
    ],
)
def test_what_does_not_refuse_needs_neither_store_nor_limiter_to_be_known(
    weak: tuple[Weakness, ...], coverage: Coverage, reason: Reason
) -> None:
    assert enforcing(policy(OPEN), coverage, weak)[:2] == (Status.FALSE, reason)


@pytest.mark.requirement("R40")
def test_a_switch_on_one_rule_is_told_with_what_is_still_enforced() -> None:
    status, reason, message = enforcing(policy(OPEN, OPEN, CLOSED), BOTH, (KILLED,))
    assert (status, reason) == (Status.FALSE, Reason.KILL_SWITCH)
    assert message == (
        "kill switch by ann, mode Disabled (r0): nothing is counted and nothing is refused; "
        "r1, r2 enforced on 2 of 2 limiters"
    )


def test_a_lost_store_counts_more_than_a_switch_on_one_rule_and_tells_both() -> None:
    status, reason, message = enforcing(policy(OPEN, CLOSED), ALL_STORELESS, (KILLED,))
    assert (status, reason) == (Status.FALSE, Reason.STORE_UNAVAILABLE)
    assert message == (
        "the store is down on 2 of 2 limiters: everything is refused by r1 (Closed); "
        "kill switch by ann, mode Disabled (r0): nothing is counted and nothing is refused"
    )


def test_silence_says_since_when() -> None:
    unasked, unmatched = (Coverage(("a",), unasked_since_ms=NOON_MS), Coverage(("a",), unmatched_since_ms=NOON_MS))
    assert enforcing(policy(OPEN), unasked)[2] == (
        f"Envoy has asked no limiter of the gateway since {NOON}: there is no traffic, or it does not ask"
    )
    assert enforcing(policy(OPEN), unmatched)[2] == f"no request has matched spec.match since {NOON}"
    assert enforcing(policy(OPEN), unmatched, (SHADOWED,))[2].endswith(
        f"; no request has matched spec.match since {NOON}"
    )
    assert enforcing(policy(OPEN), unmatched, (OFF,))[2].endswith("nothing is refused")


def test_a_policy_that_goes_to_shadow_says_where_it_still_refuses() -> None:
    message = enforcing(policy(OPEN), Coverage(whole=("a",), earlier=("b",)), (SHADOWED,))[2]
    assert message == (
        "mode Shadow: requests over the limit are counted, none is refused; an earlier version is still enforced on b"
    )


def test_the_message_says_what_stands_in_for_each_rule() -> None:
    piece = policy(OPEN, CLOSED, LOCAL, OPEN)
    local = policy(OPEN, scope=Scope.INSTANCE).rules
    assert enforcing(piece, HALF_STORELESS)[2] == (
        "the store is down on 1 of 2 limiters: everything passes by r0, r3 (Open); "
        "everything is refused by r1 (Closed); each limiter grants its own share of r2 (Local); "
        "enforced as written on b"
    )
    mixed = Policy("t/p", 1, Match((), ()), (), (*local, *policy(OPEN, CLOSED).rules[1:]), piece.response)
    assert enforcing(mixed, ALL_STORELESS)[2] == (
        "the store is down on 2 of 2 limiters: everything is refused by r1 (Closed); enforced without a store: r0"
    )
