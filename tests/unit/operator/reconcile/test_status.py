# SPDX-License-Identifier: Apache-2.0
"""What a status says, for every state of compiler, limiters and time; and when it is worth a write."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.conditions import Reason, Status
from weir_operator.domain.limits import Action, Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.overriding import Override
from weir_operator.domain.overriding import Subject as RulesetSubject
from weir_operator.domain.problems import invalid
from weir_operator.domain.ruleset import Match, Policy, Response, Rule
from weir_operator.reconcile.coverage import Coverage
from weir_operator.reconcile.programming import Programming
from weir_operator.reconcile.status import (
    Subject,
    differs,
    is_transition,
    next_turn,
    override_status,
    policy_status,
)
from weir_operator.reconcile.weakness import Weakness

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 12, 1, 13, 0, tzinfo=UTC)
RUNS = Programming(Status.TRUE, Reason.PROGRAMMED, "2 of 2 limiters run this generation", 2, 2)
MOVES = Programming(Status.FALSE, Reason.PROPAGATING, "on its way", 1, 2)
EVERYWHERE = Coverage(whole=("a", "b"))
HALFWAY = Coverage(whole=("a",), idle=("b",))
BAD = (invalid("spec.rules[burst].limit.burst", "0 is out of range", "write a whole number from 1"),)


def rule(mode: Mode) -> Rule:
    bucket = TokenBucket(1, 1_000_000, 1)
    return Rule("r", mode, (), MissingKey.SKIP, bucket, None, (), FailureMode.OPEN, Visibility.PUBLIC, "rate_limited")


def policy(mode: Mode = Mode.ENFORCE) -> Policy:
    return Policy("t/p", 1, Match((), ()), (), (rule(mode),), Response(Dialect.NONE, None))


def subject(programming: Programming, mode: Mode, coverage: Coverage = EVERYWHERE) -> Subject:
    reason = Reason.SHADOW_MODE if mode is Mode.SHADOW else Reason.SWITCHED_OFF
    weak = () if mode is Mode.ENFORCE else (Weakness("r", mode, reason, f"mode {mode}"),)
    return Subject(obj(), Outcome(), programming, policy(mode), coverage, weak)


def override(not_before: int | None = None, not_after: int | None = None) -> Override:
    subject = ((RulesetSubject("clientIP", "0" * 64),),)
    return Override("t/o", "t/p", ("r",), subject, Action.EXEMPT, None, not_before, not_after)


def obj(generation: int = 1, status: Any = None) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "t", "generation": generation, "uid": "u", "resourceVersion": "1"}
    return {"metadata": metadata, **({"status": status} if status is not None else {})}


def judged(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in document["conditions"]}


def since(document: dict[str, Any]) -> dict[str, str]:
    return {c["type"]: c["lastTransitionTime"] for c in document["conditions"]}


def test_an_accepted_and_programmed_policy_is_ready() -> None:
    status = policy_status(Subject(obj(3), Outcome(), RUNS, policy(), EVERYWHERE), NOW)
    assert judged(status) == {
        "Accepted": ("True", "Accepted"),
        "Enforcing": ("True", "Enforcing"),
        "Programmed": ("True", "Programmed"),
        "Ready": ("True", "Ready"),
    }
    assert {key: status[key] for key in ("observedGeneration", "limiters", "mode", "ruleCount")} == {
        "observedGeneration": 3,
        "limiters": "2/2",
        "mode": "Enforce",
        "ruleCount": 1,
    }
    assert {c["observedGeneration"] for c in status["conditions"]} == {3}


def test_what_is_wrong_with_the_store_shows_in_what_ready_says_with_the_remedy() -> None:
    faults = (("eviction: set maxmemory-policy noeviction", 2), ("role: x", 1))
    programming = replace(RUNS, store_faults=faults)
    statuses = {m: policy_status(subject(programming, m), NOW) for m in Mode}
    said = {mode: {c["type"]: c for c in status["conditions"]} for mode, status in statuses.items()}
    expected = (
        "; the store is not set up as it must be: eviction: set maxmemory-policy noeviction (2 of 2 limiters), "
        "role: x (1 of 2 limiters)"
    )
    assert said[Mode.ENFORCE]["Ready"]["message"] == f"enforced on 2 of 2 limiters{expected}"
    assert said[Mode.SHADOW]["Ready"]["message"].endswith(expected)
    assert "store" not in said[Mode.DISABLED]["Ready"]["message"]
    assert {conditions["Ready"]["status"] for conditions in said.values()} == {"True"}


def test_break_glass_that_cannot_be_read_shows_in_every_mode() -> None:
    programming = replace(RUNS, glass_faults=(("modes: not YAML", 2),))
    expected = "; break glass cannot be read, what it said last holds: modes: not YAML (2 of 2 limiters)"
    for mode in Mode:
        status = policy_status(subject(programming, mode), NOW)
        (ready,) = [c for c in status["conditions"] if c["type"] == "Ready"]
        assert ready["message"].endswith(expected)


def test_ready_never_says_enforced_of_what_a_lost_store_leaves_open() -> None:
    """D52: it says the same as Enforcing, word for word."""
    storeless = replace(EVERYWHERE, storeless=("a", "b"))
    status = policy_status(Subject(obj(), Outcome(), RUNS, policy(), storeless), NOW)
    said = {c["type"]: c["message"] for c in status["conditions"]}
    assert judged(status)["Enforcing"] == ("False", "StoreUnavailable")
    assert judged(status)["Ready"] == ("True", "Ready")
    assert said["Ready"] == said["Enforcing"] == "the store is down on 2 of 2 limiters: everything passes by r (Open)"


@pytest.mark.parametrize(
    ("mode", "words"),
    [(Mode.ENFORCE, "enforced"), (Mode.SHADOW, "none is refused"), (Mode.DISABLED, "nothing is refused")],
)
def test_ready_says_whether_anything_is_refused(mode: Mode, words: str) -> None:
    """D52: Ready in Shadow must not read as enforced."""
    status = policy_status(subject(RUNS, mode), NOW)
    (ready,) = [c for c in status["conditions"] if c["type"] == "Ready"]
    assert words in ready["message"]


def test_a_policy_on_its_way_is_not_ready_for_the_same_reason() -> None:
    status = policy_status(Subject(obj(), Outcome(), MOVES, policy(), EVERYWHERE), NOW)
    assert judged(status)["Ready"] == ("False", "Propagating")
    assert judged(status)["Reconciling"] == ("True", "Propagating")
    assert "Stalled" not in judged(status)


@pytest.mark.parametrize("reason", [Reason.RENDER_FAILED, Reason.NO_LIMITERS])
def test_what_only_a_person_can_mend_is_stalled(reason: Reason) -> None:
    status = policy_status(Subject(obj(), Outcome(), Programming(Status.FALSE, reason, "x"), policy()), NOW)
    assert judged(status)["Stalled"] == ("True", str(reason))
    assert "Reconciling" not in judged(status)


def test_a_refused_policy_is_stalled_and_names_the_field() -> None:
    """D54: kstatus reads Stalled as failed, so that a waiting tool ends at once."""
    nothing = Programming(Status.FALSE, Reason.NOT_ACCEPTED, "", 0, 2)
    status = policy_status(Subject(obj(2), Outcome(BAD), nothing), NOW)
    assert judged(status) == {
        "Accepted": ("False", "Invalid"),
        "Enforcing": ("False", "NotProgrammed"),
        "Programmed": ("False", "NotAccepted"),
        "Ready": ("False", "Invalid"),
        "Stalled": ("True", "Invalid"),
    }
    accepted = status["conditions"][0]["message"]
    assert "spec.rules[burst].limit.burst: 0 is out of range" in accepted
    assert "Nothing of this object runs" in accepted


def test_a_refused_edit_says_which_generation_keeps_running() -> None:
    outcome = Outcome(BAD, kept=True, kept_generation=4)
    status = policy_status(Subject(obj(5), outcome, RUNS, policy(), EVERYWHERE), NOW)
    assert "generation 4 keeps running on 2 of 2 limiters" in status["conditions"][0]["message"]
    assert (status["mode"], status["limiters"]) == ("Enforce", "2/2")
    assert judged(status)["Ready"] == ("False", "Invalid")


@pytest.mark.parametrize(
    ("piece", "mode", "reason", "words"),
    [
        (override(), Mode.ENFORCE, "Ready", "in force"),
        (override(), Mode.SHADOW, "Ready", "its policy is in mode Shadow"),
        (override(not_before=int(LATER.timestamp())), Mode.ENFORCE, "Ready", "begins at 2026-12-01T13:00:00Z"),
        (override(not_after=int(NOW.timestamp())), Mode.ENFORCE, "Expired", "ended at 2026-12-01T12:00:00Z"),
        (override(not_after=int(NOW.timestamp()) + 1), Mode.ENFORCE, "Ready", "in force"),
    ],
    ids=["in force", "policy in shadow", "not begun", "ended", "a second before its end"],
)
def test_an_override_tells_where_in_its_life_it_is(piece: Override, mode: Mode, reason: str, words: str) -> None:
    status = override_status(Subject(obj(), Outcome(), RUNS, piece, policy_mode=mode), NOW)
    assert judged(status)["Ready"] == ("True", reason)
    assert words in status["conditions"][-1]["message"]


def test_an_override_that_is_outranked_does_not_say_that_it_is_in_force_everywhere() -> None:
    outranked = Outcome(notes=('spec.subjects[0]: for rule "r" the newer override "t/new" wins',))
    status = override_status(Subject(obj(), outranked, RUNS, override(), policy_mode=Mode.ENFORCE), NOW)
    message = "in force where no other override outranks it: see Accepted (on 2 of 2 limiters)"
    assert {c["type"]: c["message"] for c in status["conditions"]}["Ready"] == message


def test_an_override_that_has_ended_needs_no_limiter() -> None:
    status = override_status(Subject(obj(), Outcome(), MOVES, override(not_after=0)), NOW)
    assert judged(status)["Programmed"] == ("True", "Programmed")


def test_an_override_changes_by_itself_at_its_next_boundary() -> None:
    later = int(LATER.timestamp())
    assert next_turn(override(not_before=later, not_after=later + 5), NOW) == later
    assert next_turn(override(not_before=0, not_after=later), NOW) == later
    assert next_turn(override(not_before=0, not_after=1), NOW) is None
    assert next_turn(policy(), NOW) is None


def test_the_same_facts_an_hour_later_are_the_same_document() -> None:
    """D49: no age, no attempt, no new timestamp in it."""
    first = policy_status(Subject(obj(), Outcome(), RUNS, policy(), EVERYWHERE), NOW)
    second = policy_status(Subject(obj(status=first), Outcome(), RUNS, policy(), EVERYWHERE), LATER)
    assert second == first
    assert not differs(first, second)


def test_transition_times_move_only_with_the_status() -> None:
    """D49: a new reason, message or generation moves nothing."""
    first = policy_status(Subject(obj(1), Outcome(), MOVES, policy(), EVERYWHERE), NOW)
    stale = Programming(Status.FALSE, Reason.LIMITER_STALE, "still", 1, 2)
    second = policy_status(Subject(obj(2, first), Outcome(), stale, policy(), EVERYWHERE), LATER)
    assert since(second) == since(first)
    third = policy_status(Subject(obj(2, second), Outcome(), RUNS, policy(), EVERYWHERE), LATER)
    assert since(third) == {
        "Accepted": "2026-12-01T12:00:00Z",
        "Enforcing": "2026-12-01T12:00:00Z",
        "Programmed": "2026-12-01T13:00:00Z",
        "Ready": "2026-12-01T13:00:00Z",
    }


def test_recovery_removes_stalled() -> None:
    broken = policy_status(Subject(obj(), Outcome(BAD), MOVES), NOW)
    healed = policy_status(Subject(obj(2, broken), Outcome(), RUNS, policy(), EVERYWHERE), LATER)
    assert "Stalled" not in judged(healed)
    assert differs(broken, healed)


def test_conditions_and_members_of_others_are_not_compared() -> None:
    ours = policy_status(Subject(obj(), Outcome(), RUNS, policy(), EVERYWHERE), NOW)
    others = {**ours, "killSwitches": {"r": {}}, "conditions": [{"type": "Theirs"}, *reversed(ours["conditions"])]}
    assert not differs(others, ours)


def test_only_more_than_words_and_counts_is_a_transition() -> None:
    first = policy_status(Subject(obj(), Outcome(), MOVES, policy(), EVERYWHERE), NOW)
    reworded = policy_status(
        Subject(
            obj(status=first), Outcome(), Programming(Status.FALSE, Reason.PROPAGATING, "x", 2, 2), policy(), EVERYWHERE
        ),
        NOW,
    )
    assert differs(first, reworded)
    assert not is_transition(first, reworded)
    done = policy_status(Subject(obj(status=first), Outcome(), RUNS, policy(), EVERYWHERE), NOW)
    assert is_transition(first, done)
    newer = policy_status(Subject(obj(2, first), Outcome(), MOVES, policy(), EVERYWHERE), NOW)
    assert is_transition(first, newer)


@pytest.mark.parametrize("live", [None, {}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}])
def test_a_new_object_is_always_written(live: dict[str, Any] | None) -> None:
    wanted = policy_status(Subject(obj(status=live), Outcome(), MOVES, policy(), EVERYWHERE), NOW)
    assert differs(live, wanted)
    assert is_transition(live, wanted)
