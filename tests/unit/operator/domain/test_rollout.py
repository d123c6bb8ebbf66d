# SPDX-License-Identifier: Apache-2.0
"""One rule's way from shadow to enforced, step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weir_operator.domain.algorithms import FixedWindow, TokenBucket
from weir_operator.domain.evidence import Evidence, Recent
from weir_operator.domain.interventions import Approval
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.modes import Slot, Stage
from weir_operator.domain.rollout import Facts
from weir_operator.domain.rollout_gates import refit
from weir_operator.domain.rollout_rules import Plan, plan_rollout
from weir_operator.domain.rollout_state import Candidate, RuleState
from weir_operator.domain.rollout_terms import PLAIN, OnChange, Promote, RollbackTerms, RolloutTerms, StageTerms
from weir_operator.domain.ruleset import AddressExempt, Match, Policy, Response, Rule
from weir_operator.domain.sources import HeaderKey
from weir_operator.domain.versions import with_versions

BUCKET = TokenBucket(10, 1_000_000, 20)
TIGHTER, LOOSER = replace(BUCKET, requests=5), replace(BUCKET, requests=50)
KEY = (HeaderKey("x-api-key"),)
WORDS = (), FailureMode.OPEN, Visibility.PUBLIC, "rate_limited"
RULE = Rule("burst", Mode.ENFORCE, KEY, MissingKey.SKIP, BUCKET, None, *WORDS)
SHADOW = RolloutTerms(OnChange.SHADOW, Promote.MANUAL)
AUTOMATIC = RolloutTerms(OnChange.SHADOW, Promote.AUTOMATIC, after_s=60, min_requests=100, max_would_reject=1_000)
STAGED = replace(SHADOW, stages=(StageTerms(30, plans=("internal",)), StageTerms(30, percent=10)))
WATCHED = replace(STAGED, rollback=RollbackTerms(5_000, 10))
BAD = Recent(10, enforced=100, rejected=6)


def policy(
    limit: TokenBucket | FixedWindow = BUCKET, mode: Mode = Mode.ENFORCE, exempt: tuple[str, ...] = ()
) -> Policy:
    rule = replace(RULE, limit=limit, mode=mode)
    exemptions = (AddressExempt(exempt),) if exempt else ()
    return with_versions(Policy("team/api", 1, Match((), ()), exemptions, (rule,), Response(Dialect.RATE_LIMIT, None)))


class Story:
    """One rule over time."""

    def __init__(self, terms: RolloutTerms, state: RuleState | None = None) -> None:
        self.terms = terms
        self.state = state or RuleState("burst")
        self.generation = 1
        self.now_s = 1_000.0
        self.approval: Approval | None = None
        self.notes: list[str] = []

    def go(self, piece: Policy, evidence: Evidence | None = None, recent: Recent | None = None) -> tuple[Rule, ...]:
        """Decide; return the rule's entries."""
        mode = piece.rules[0].mode
        facts = Facts(self.now_s, self.generation, mode is Mode.ENFORCE, mode, self.approval, evidence, recent)
        plan: Plan = plan_rollout(piece, self.terms, {"burst": self.state}, lambda _: facts)
        (self.state,) = plan.states
        self.notes += [note.reason for _, note in plan.notes]
        return plan.policy.rules

    def edit(self, piece: Policy) -> tuple[Rule, ...]:
        """Decide about a new generation."""
        self.generation += 1
        return self.go(piece)

    def approve(self, by: str = "alice", at: int = 1) -> None:
        """Promote the present generation by hand."""
        self.approval = Approval(self.generation, by, at=at)


def enforced_story(terms: RolloutTerms) -> Story:
    """A story whose policy is enforced already."""
    story = Story(PLAIN)
    story.go(policy())
    story.terms = terms
    story.go(policy())
    return story


def seen(rules: tuple[Rule, ...]) -> list[tuple[int, Mode, Slot | None, Stage | None]]:
    """What matters of the entries."""
    return [(rule.limit.requests, rule.mode, rule.slot, rule.stage) for rule in rules]


@pytest.mark.requirement("R43")
def test_without_a_rollout_every_change_is_enforced_at_once_in_the_same_slot() -> None:
    """D45."""
    story = Story(PLAIN)
    assert story.go(policy()) == policy().rules
    assert story.edit(policy(TIGHTER)) == policy(TIGHTER).rules
    assert story.notes == []


@pytest.mark.requirement("R43")
def test_a_new_policy_is_in_shadow_until_a_person_approves_this_very_generation() -> None:
    """D45."""
    story = Story(SHADOW)
    shadow = [(10, Mode.SHADOW, None, None)]
    assert seen(story.go(policy())) == shadow
    story.approval = Approval(generation=7)
    assert seen(story.go(policy())) == shadow
    story.approve()
    assert seen(story.go(policy())) == [(10, Mode.ENFORCE, None, None)]
    assert story.notes[-1] == "Promoted"


@pytest.mark.requirement("R43", "R16")
def test_a_changed_limit_counts_beside_the_enforced_one_and_keeps_its_slot_when_promoted() -> None:
    """D45: nobody's bucket is reset by the promotion."""
    story = enforced_story(SHADOW)
    both = [(10, Mode.ENFORCE, None, None), (5, Mode.SHADOW, Slot.B, None)]
    assert seen(story.edit(policy(TIGHTER))) == both
    story.approve()
    assert seen(story.go(policy(TIGHTER))) == [(5, Mode.ENFORCE, Slot.B, None)]
    story.edit(policy(FixedWindow(7, 1_000_000)))
    assert seen(story.go(policy(FixedWindow(7, 1_000_000)))) == [
        (5, Mode.ENFORCE, Slot.B, None),
        (7, Mode.SHADOW, None, None),
    ]


@pytest.mark.requirement("R43")
def test_what_only_admits_more_is_applied_at_once() -> None:
    """D45: also while a tighter candidate is in shadow, which it replaces."""
    story = enforced_story(SHADOW)
    story.edit(policy(TIGHTER))
    assert seen(story.edit(policy(LOOSER))) == [(50, Mode.ENFORCE, None, None)]
    assert story.notes == ["LimitRaised"]


@pytest.mark.requirement("R43")
def test_the_evidence_promotes_when_it_is_old_large_and_mild_enough() -> None:
    """D45."""
    story = Story(AUTOMATIC)
    story.go(policy())
    good = Evidence("", 1_000, 1_060, requests=1_000, would_reject=10)
    assert seen(story.go(policy(), good))[0][1] is Mode.SHADOW  # too young
    story.now_s += 60
    assert seen(story.go(policy(), replace(good, requests=99, would_reject=0)))[0][1] is Mode.SHADOW
    assert seen(story.go(policy(), replace(good, would_reject=11)))[0][1] is Mode.SHADOW
    assert seen(story.go(policy(), None))[0][1] is Mode.SHADOW
    assert seen(story.go(policy(), good))[0][1] is Mode.ENFORCE


@pytest.mark.requirement("R43")
def test_an_approval_opens_the_gate_past_bad_evidence() -> None:
    """D45."""
    story = Story(AUTOMATIC)
    story.go(policy())
    story.approve()
    assert seen(story.go(policy(), Evidence("", 1_000, 1_060, 1_000, 900)))[0][1] is Mode.ENFORCE


@pytest.mark.requirement("R43")
def test_stages_add_up_and_each_holds_for_its_time() -> None:
    """D45: plans first, then a share beside them, then everybody."""
    story = enforced_story(STAGED)
    story.edit(policy(TIGHTER))
    story.approve()
    for stage in (Stage(Mode.ENFORCE, ("internal",), 0), Stage(Mode.ENFORCE, ("internal",), 10)):
        expected = [
            (10, Mode.ENFORCE, None, replace(stage, mode=Mode.SHADOW)),
            (5, Mode.SHADOW, Slot.B, stage),
        ]
        assert seen(story.go(policy(TIGHTER))) == expected
        story.now_s += 29
        assert seen(story.go(policy(TIGHTER))) == expected
        story.now_s += 1
    assert seen(story.go(policy(TIGHTER))) == [(5, Mode.ENFORCE, Slot.B, None)]
    assert story.notes == ["StageReached", "StageReached", "StageReached", "Promoted"]


@pytest.mark.requirement("R43")
def test_a_limit_that_hurts_falls_back_to_shadow_and_stays_there() -> None:
    """D45: the version before is enforced again for everybody, and time alone changes nothing."""
    story = enforced_story(WATCHED)
    both = [(10, Mode.ENFORCE, None, None), (5, Mode.SHADOW, Slot.B, None)]
    story.edit(policy(TIGHTER))
    story.approve()
    story.go(policy(TIGHTER))
    assert seen(story.go(policy(TIGHTER), recent=BAD)) == both
    assert story.notes[-1] == "RolledBack"
    story.now_s += 10_000
    assert seen(story.go(policy(TIGHTER))) == both
    story.approve(at=2)
    assert seen(story.go(policy(TIGHTER)))[1][3] == Stage(Mode.ENFORCE, ("internal",), 0)


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    "recent",
    [None, replace(BAD, covers_s=9.9), replace(BAD, rejected=5), Recent(10, enforced=19, rejected=19)],
    ids=["unknown", "too-short", "as-allowed", "too-few"],
)
def test_what_is_no_evidence_of_harm_rolls_nothing_back(recent: Recent | None) -> None:
    """D45."""
    story = enforced_story(WATCHED)
    story.edit(policy(TIGHTER))
    story.approve()
    story.go(policy(TIGHTER))
    assert seen(story.go(policy(TIGHTER), recent=recent))[1][3] is not None


@pytest.mark.requirement("R43")
def test_a_new_generation_is_a_new_attempt_after_a_rollback() -> None:
    """D45: from shadow on, with new evidence."""
    story = enforced_story(WATCHED)
    story.edit(policy(TIGHTER))
    story.approve()
    story.go(policy(TIGHTER))
    story.go(policy(TIGHTER), recent=BAD)
    story.now_s += 50
    story.edit(policy(TIGHTER))
    assert story.state.candidate is not None
    assert (story.state.candidate.refusal, story.state.candidate.since_s) == (None, 1_050)


@pytest.mark.requirement("R43")
def test_immediate_with_a_rollback_is_enforced_at_once_beside_what_it_may_fall_back_to() -> None:
    """D45."""
    story = enforced_story(RolloutTerms(rollback=RollbackTerms(5_000, 10)))
    both = [(10, Mode.SHADOW, None, None), (5, Mode.ENFORCE, Slot.B, None)]
    assert seen(story.edit(policy(TIGHTER))) == both
    story.now_s += 99
    assert seen(story.go(policy(TIGHTER), recent=Recent(10, 100, 0))) == both
    story.now_s += 1
    assert seen(story.go(policy(TIGHTER))) == [(5, Mode.ENFORCE, Slot.B, None)]


@pytest.mark.requirement("R43")
def test_several_edits_restart_the_evidence_and_leave_the_enforced_limit_alone() -> None:
    """D45."""
    story = enforced_story(STAGED)
    story.edit(policy(TIGHTER))
    story.approve()
    story.go(policy(TIGHTER))  # in its first stage
    story.now_s += 5
    third = replace(TIGHTER, requests=4)
    assert seen(story.edit(policy(third))) == [(10, Mode.ENFORCE, None, None), (4, Mode.SHADOW, Slot.B, None)]
    assert story.state.candidate is not None
    assert story.state.candidate.since_s == 1_005
    assert seen(story.edit(policy())) == [(10, Mode.ENFORCE, None, None)]  # as it was


@pytest.mark.requirement("R43")
def test_an_exemption_restarts_the_evidence_and_keeps_the_stage() -> None:
    """D45: what the evidence was about is another thing now."""
    story = enforced_story(AUTOMATIC)
    story.edit(policy(TIGHTER))
    story.now_s += 100
    story.edit(policy(TIGHTER, exempt=("10.0.0.0/8",)))
    assert story.state.candidate is not None
    assert story.state.candidate.since_s == 1_100
    old, new = story.go(policy(TIGHTER, exempt=("10.0.0.0/8",)))
    assert old.version == policy(exempt=("10.0.0.0/8",)).rules[0].version
    assert new.version == policy(TIGHTER, exempt=("10.0.0.0/8",)).rules[0].version


@pytest.mark.requirement("R43")
@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.DISABLED])
def test_the_policys_own_mode_caps_both_versions_and_holds_the_rollout(mode: Mode) -> None:
    """D45."""
    story = enforced_story(STAGED)
    story.edit(policy(TIGHTER))
    story.approve()
    story.now_s += 10_000
    assert seen(story.go(policy(TIGHTER, mode))) == [(10, mode, None, None), (5, mode, Slot.B, None)]
    assert story.state.candidate is not None
    assert story.state.candidate.stage == 0


@pytest.mark.requirement("R43")
def test_without_its_status_a_rule_falls_back_to_shadow() -> None:
    """D45: never to enforcement that nobody has looked at."""
    story = enforced_story(SHADOW)
    story.state = RuleState("burst")
    assert seen(story.go(policy())) == [(10, Mode.SHADOW, None, None)]


def test_a_stage_that_nobody_is_held_to_proves_nothing_and_begins_anew() -> None:
    """A kill switch, break glass or silent limiters in a stage must not let the next one open untested."""
    story = enforced_story(STAGED)
    story.edit(policy(TIGHTER))
    story.approve()
    story.go(policy(TIGHTER))
    off = Facts(story.now_s + 10, story.generation, enforces=False, approval=story.approval)
    held = plan_rollout(policy(TIGHTER), STAGED, {"burst": story.state}, lambda _: off)
    (story.state,) = held.states
    assert story.state.candidate is not None
    assert (story.state.candidate.stage, story.state.candidate.stage_since_s) == (1, 0)
    story.now_s += 10_000
    story.go(policy(TIGHTER))
    assert (story.state.candidate.stage, story.notes[-1]) == (1, "StageReached")
    story.now_s += 29
    story.go(policy(TIGHTER))
    assert story.state.candidate.stage == 1
    story.now_s += 1
    story.go(policy(TIGHTER))
    assert story.state.candidate is not None
    assert story.state.candidate.stage == 2


@pytest.mark.parametrize(
    ("stages", "stage"),
    [
        ((StageTerms(30, percent=10), StageTerms(30, percent=50)), 1),
        ((StageTerms(30, percent=1), StageTerms(30, percent=10), StageTerms(30, percent=20)), 2),
        ((StageTerms(30, percent=20),), 0),
        ((StageTerms(30, plans=("internal",)), StageTerms(30, percent=10)), 0),
        ((), 0),
    ],
)
def test_other_stages_enforce_a_candidate_for_nobody_new(stages: tuple[StageTerms, ...], stage: int) -> None:
    """Tidying the stages that are over must not open those that are not."""
    before = replace(SHADOW, stages=tuple(StageTerms(30, percent=percent) for percent in (1, 5, 10, 50)))
    candidate = Candidate("limit", "version", 1, stage=3, stage_since_s=9, promoted_by="alice")
    after = refit(candidate, before, replace(SHADOW, stages=stages))
    assert (after.stage, after.stage_since_s, after.promoted_by) == (stage, 0, "alice" if stage else "")
    assert refit(candidate, before, before) is candidate
