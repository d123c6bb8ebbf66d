# SPDX-License-Identifier: Apache-2.0
"""Which rules do not refuse now, and who is named as the cause."""

from dataclasses import replace

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.conditions import Reason
from weir_operator.domain.interventions import Interventions, KillSwitch
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.modes import Stage
from weir_operator.domain.ruleset import Match, Policy, Response, Rule
from weir_operator.reconcile.ports import LimiterReport, PolicyRun
from weir_operator.reconcile.weakness import Causes, Weakness, chief, explain, weaknesses

ENFORCE, SHADOW, DISABLED = Mode
NOON_S = 1_796_126_400


def policy(**modes: Mode) -> Policy:
    bucket = TokenBucket(1, 1_000_000, 1)
    rules = tuple(
        Rule(name, mode, (), MissingKey.SKIP, bucket, None, (), FailureMode.OPEN, Visibility.PUBLIC, "rate_limited")
        for name, mode in modes.items()
    )
    return Policy("t/p", 1, Match((), ()), (), rules, Response(Dialect.NONE, None))


def report(name: str = "edge-0", glass: dict[str, Mode] | None = None, **modes: Mode) -> LimiterReport:
    return LimiterReport(f"http://{name}", name, policies={"t/p": PolicyRun(1, modes)}, break_glass=glass or {})


def causes(rollout: bool = False, **switches: KillSwitch) -> Causes:
    named = {name.replace("every", "*"): switch for name, switch in switches.items()}
    return Causes(Interventions(named), rollout, NOON_S)


def found(piece: Policy, reports: tuple[LimiterReport, ...], known: Causes) -> list[tuple[str, Mode, Reason]]:
    return [(each.rule, each.mode, each.reason) for each in weaknesses(piece, reports, known)]


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("piece", "reports", "known", "expected"),
    [
        (policy(a=ENFORCE), (report(a=ENFORCE),), causes(), []),
        (policy(a=ENFORCE), (), causes(), []),
        (policy(a=SHADOW), (report(a=SHADOW),), causes(), [("a", SHADOW, Reason.SHADOW_MODE)]),
        (policy(a=DISABLED), (), causes(), [("a", DISABLED, Reason.SWITCHED_OFF)]),
        (
            policy(a=ENFORCE, b=ENFORCE), (report(a=SHADOW, b=ENFORCE),), causes(a=KillSwitch(SHADOW)),
            [("a", SHADOW, Reason.KILL_SWITCH)],
        ),
        (
            policy(a=ENFORCE, b=ENFORCE), (report(a=DISABLED, b=DISABLED),), causes(every=KillSwitch(DISABLED)),
            [("a", DISABLED, Reason.KILL_SWITCH), ("b", DISABLED, Reason.KILL_SWITCH)],
        ),
        (policy(a=ENFORCE), (report(a=ENFORCE),), causes(a=KillSwitch(SHADOW)), []),
        (policy(a=SHADOW), (report(a=SHADOW),), causes(a=KillSwitch(SHADOW)), [("a", SHADOW, Reason.SHADOW_MODE)]),
        (
            policy(a=SHADOW), (report(a=DISABLED),), causes(a=KillSwitch(DISABLED)),
            [("a", DISABLED, Reason.KILL_SWITCH)],
        ),
        (
            policy(a=ENFORCE), (report(a=ENFORCE), report(glass={"t/p": SHADOW}, a=SHADOW)), causes(),
            [("a", SHADOW, Reason.BREAK_GLASS)],
        ),
        (
            policy(a=ENFORCE), (report(glass={"*": DISABLED}, a=DISABLED),), causes(),
            [("a", DISABLED, Reason.BREAK_GLASS)],
        ),
        (policy(a=SHADOW), (report(a=SHADOW),), causes(rollout=True), [("a", SHADOW, Reason.ROLLING_OUT)]),
    ],
    ids=[
        "all enforced", "no limiter runs it yet", "the spec: shadow", "the spec: off", "one rule's switch",
        "a switch on all", "a switch that no limiter has yet", "a switch that changes nothing",
        "a switch below the spec", "break glass on one limiter", "break glass on all", "a rollout",
    ],
)  # fmt: skip
def test_a_rule_is_as_strong_as_on_its_weakest_limiter_and_the_cause_is_named(
    piece: Policy,
    reports: tuple[LimiterReport, ...],
    known: Causes,
    expected: list[tuple[str, Mode, Reason]],
) -> None:
    assert found(piece, reports, known) == expected


def test_of_two_versions_of_a_rule_the_enforced_one_counts() -> None:
    piece = policy(a=ENFORCE)
    both = Policy("t/p", 1, piece.match, (), (*piece.rules, *policy(a=SHADOW).rules), piece.response)
    assert weaknesses(both, (report(a=ENFORCE),), causes(rollout=True)) == ()


def test_a_stage_says_for_whom_a_rule_is_enforced() -> None:
    rule = policy(a=SHADOW).rules[0]
    staged = replace(rule, stage=Stage(ENFORCE, ("gold", "internal"), 10))
    piece = replace(policy(a=SHADOW), rules=(staged,))
    (weak,) = weaknesses(piece, (report(a=SHADOW),), causes(rollout=True))
    assert (weak.reason, weak.why) == (
        Reason.ROLLING_OUT, "its rollout enforces it for the plans gold, internal and 10 % of the subjects only",
    )  # fmt: skip


def test_a_switch_says_who_until_when_and_why() -> None:
    switch = KillSwitch(DISABLED, NOON_S + 60, "INC-42 " + "x" * 200, "ann")
    weak = weaknesses(policy(a=ENFORCE), (report(a=DISABLED),), causes(a=switch))
    assert explain(weak, alone=True) == (
        "kill switch by ann, mode Disabled until 2026-12-01T12:01:00Z, INC-42 " + "x" * 72 + "…"
        ": nothing is counted and nothing is refused"
    )


def test_a_switch_that_has_ended_is_no_longer_named() -> None:
    """A limiter whose clock is late still applies it: that is said, and not who is no longer responsible."""
    switch = KillSwitch(DISABLED, NOON_S, by="ann")
    (weak,) = weaknesses(policy(a=ENFORCE), (report(a=DISABLED),), causes(a=switch))
    assert (weak.reason, weak.why) == (Reason.KILL_SWITCH, "a switch that limiters still apply, mode Disabled")


def test_causes_are_told_the_most_urgent_first_with_their_rules() -> None:
    weak = (
        Weakness("a", SHADOW, Reason.SHADOW_MODE, "mode Shadow"),
        Weakness("b", DISABLED, Reason.KILL_SWITCH, "kill switch by ann"),
        Weakness("c", SHADOW, Reason.SHADOW_MODE, "mode Shadow"),
    )
    assert chief(weak) is Reason.KILL_SWITCH
    assert explain(weak) == (
        "kill switch by ann (b): nothing is counted and nothing is refused; "
        "mode Shadow (a, c): requests over the limit are counted, none is refused"
    )
