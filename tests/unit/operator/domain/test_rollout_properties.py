# SPDX-License-Identifier: Apache-2.0
"""What holds of a rollout whatever people, traffic and restarts do to it.

The judge below knows nothing of how the machine decides: it looks at what the limiters are told before and after, and
asks whether anything gave the right to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_operator.domain.algorithms import FixedWindow, TokenBucket
from weir_operator.domain.evidence import Evidence, Recent
from weir_operator.domain.interventions import Approval
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.rollout import Facts
from weir_operator.domain.rollout_rules import plan_rollout
from weir_operator.domain.rollout_state import RuleState
from weir_operator.domain.rollout_terms import PLAIN, OnChange, Promote, RollbackTerms, RolloutTerms, StageTerms
from weir_operator.domain.ruleset import Match, Policy, Response, Rule
from weir_operator.domain.sources import HeaderKey
from weir_operator.domain.versions import with_versions

LIMITS = [TokenBucket(n, 1_000_000, n) for n in (5, 10, 20)] + [FixedWindow(7, 1_000_000)]
STAGES = StageTerms(5, plans=("internal",)), StageTerms(5, percent=10)
WATCH = RollbackTerms(5_000, 3)
TERMS = [
    PLAIN,
    RolloutTerms(rollback=WATCH),
    RolloutTerms(OnChange.SHADOW),
    RolloutTerms(OnChange.SHADOW, stages=STAGES, rollback=WATCH),
    RolloutTerms(OnChange.SHADOW, Promote.AUTOMATIC, 4, 10, 1_000, STAGES, WATCH),
]
RULE = Rule(
    "a",
    Mode.ENFORCE,
    (HeaderKey("k"),),
    MissingKey.SKIP,
    LIMITS[0],
    None,
    (),
    FailureMode.OPEN,
    Visibility.PUBLIC,
    "rate_limited",
)


@dataclass(frozen=True)
class World:
    """Everything that the machine is told."""

    terms: RolloutTerms
    limit: int = 0
    mode: Mode = Mode.ENFORCE
    generation: int = 1
    now_s: int = 1_000
    approval: Approval | None = None
    over: int = 0
    """Of 100 requests, how many the newest version would refuse, or refuses."""

    @property
    def policy(self) -> Policy:
        rule = replace(RULE, limit=LIMITS[self.limit], mode=self.mode)
        return with_versions(Policy("t/p", self.generation, Match((), ()), (), (rule,), Response(Dialect.NONE, None)))

    def decide(self, state: RuleState) -> tuple[RuleState, tuple[Rule, ...]]:
        candidate = state.candidate
        since = candidate.since_s if candidate is not None else self.now_s
        version = candidate.version if candidate is not None else ""
        evidence = Evidence(version, since, self.now_s, 100, would_reject=self.over)
        in_stage_s = self.now_s - candidate.stage_since_s if candidate is not None and candidate.stage else 0
        recent = Recent(in_stage_s, 100, self.over)
        facts = Facts(
            self.now_s, self.generation, self.mode is Mode.ENFORCE, self.mode, self.approval, evidence, recent
        )
        plan = plan_rollout(self.policy, self.terms, {"a": state}, lambda _: facts)
        return plan.states[0], plan.policy.rules


Act = tuple[str, int]
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("limit"), st.integers(0, len(LIMITS) - 1)),
        st.tuples(st.just("terms"), st.integers(0, len(TERMS) - 1)),
        st.tuples(st.just("mode"), st.integers(0, 2)),
        st.tuples(st.just("approve"), st.integers(-1, 0)),
        st.tuples(st.just("over"), st.sampled_from([0, 1, 50])),
        st.tuples(st.just("tick"), st.integers(1, 12)),
        st.tuples(st.just("forget"), st.just(0)),
    ),
    min_size=1,
    max_size=25,
)


def act(world: World, what: str, number: int) -> World:  # noqa: PLR0911  a table of cases
    edited = replace(world, generation=world.generation + 1)
    match what:
        case "limit":
            return replace(edited, limit=number)
        case "terms":
            return replace(edited, terms=TERMS[number])
        case "mode":
            return replace(edited, mode=[Mode.ENFORCE, Mode.SHADOW, Mode.DISABLED][number])
        case "approve":
            return replace(world, approval=Approval(world.generation + number, at=world.now_s))
        case "over":
            return replace(world, over=number)
        case "tick":
            return replace(world, now_s=world.now_s + number)
        case _:
            return world


def share(rule: Rule, mode: Mode) -> int:
    """How many percent of the subjects a rule's entry treats so; the plans count as one percent more."""
    if rule.stage is None:
        return 101 if rule.mode is mode else 0
    inside = rule.stage.percent + bool(rule.stage.plans)
    return (inside if rule.stage.mode is mode else 0) + (101 - inside if rule.mode is mode else 0)


def enforced(rules: tuple[Rule, ...]) -> dict[object, int]:
    """Each limit that somebody is refused by, and for how many."""
    found = {rule.limit: share(rule, Mode.ENFORCE) for rule in rules}
    return {limit: percent for limit, percent in found.items() if percent}


def has_right(world: World, state: RuleState) -> bool:
    """Whether anything allows the wanted limit to be enforced where it was not."""
    wanted = LIMITS[world.limit]
    if world.terms.on_change is OnChange.IMMEDIATE:
        return True
    if world.approval is not None and world.approval.generation == world.generation:
        return True
    candidate = state.candidate
    if world.terms.promote is Promote.AUTOMATIC and candidate is not None and world.over <= 1:
        return world.now_s - candidate.since_s >= 4
    active = state.active.rule.limit if state.active is not None and state.active.rule is not None else None
    looser = isinstance(active, TokenBucket) and isinstance(wanted, TokenBucket)
    return looser and isinstance(active, TokenBucket) and wanted.requests >= active.requests


@pytest.mark.requirement("R43")
@settings(max_examples=150)
@given(st.integers(0, len(TERMS) - 1), ACTS)
def test_whatever_happens_enforcement_comes_by_right_and_goes_by_decision(first: int, acts: list[Act]) -> None:
    """D45: no unreviewed enforcement, no limit lost, nobody thrown back, and deciding twice changes nothing."""
    world, state = World(TERMS[first]), RuleState("a")
    rules: tuple[Rule, ...] = ()
    generation = 0
    for what, number in [("tick", 1), *acts]:
        world = act(world, what, number)
        if what == "forget":
            state, rules = RuleState("a"), ()
        before, state_before, rules_before = enforced(rules), state, rules
        state, rules = world.decide(state)
        after = enforced(rules)
        wanted = LIMITS[world.limit]

        assert world.decide(state) == (state, rules)
        assert len(rules) <= 2
        assert len({rule.slot for rule in rules}) == len(rules)
        if world.mode is not Mode.ENFORCE:
            assert after == {}
            continue
        assert sum(after.values()) <= 101  # nobody is enforced twice
        active = state_before.active
        reviewed = active.rule.limit if active is not None and active.rule is not None else None
        for limit, percent in after.items():
            if percent > before.get(limit, 0) and limit != reviewed:
                going_on = state_before.candidate is not None and state_before.candidate.stage > 0  # opened by right
                assert limit == wanted
                assert going_on or has_right(world, state_before)
        if reviewed is not None:
            assert sum(after.values()) == 101  # somebody's limit holds for each request, the old or the new
        same_attempt = generation == world.generation and what != "forget"
        if same_attempt and wanted in before and rules_before and "RolledBack" not in _fate(state_before, state):
            assert after.get(wanted, 0) >= before[wanted]  # nobody goes back a stage
        generation = world.generation


def _fate(before: RuleState, after: RuleState) -> str:
    refused = after.candidate is not None and after.candidate.refusal is not None
    return "RolledBack" if refused and before.candidate is not None else ""


@pytest.mark.requirement("R43")
@settings(max_examples=50)
@given(st.integers(0, len(TERMS) - 1), ACTS)
def test_a_decision_that_was_lost_is_made_again_alike(first: int, acts: list[Act]) -> None:
    """D45: an operator that dies before it has written a state down decides the same, and enforces the same."""
    world, state = World(TERMS[first]), RuleState("a")
    for what, number in acts:
        world = act(world, what, number)
        if what == "forget":
            state = RuleState("a")
        lost, rules = world.decide(state)
        state, again = world.decide(state)
        assert (lost, rules) == (state, again)
