# SPDX-License-Identifier: Apache-2.0
"""What a status says, for every state of compiler, limiters and time; and when it is worth a write."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.compiler import Outcome
from weir_operator.domain.conditions import Reason, Status
from weir_operator.domain.limits import Action, Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.overriding import Override
from weir_operator.domain.overriding import Subject as RulesetSubject
from weir_operator.domain.problems import invalid
from weir_operator.domain.ruleset import Match, Policy, Response, Rule
from weir_operator.reconcile.ports import AppliedRuleset, LimiterReport
from weir_operator.reconcile.status import (
    STALE_AFTER_MS,
    Fleet,
    Programming,
    Subject,
    differs,
    is_transition,
    next_turn,
    override_status,
    policy_status,
    programming_of,
)
from weir_operator.render.ruleset_config import Live

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 12, 1, 13, 0, tzinfo=UTC)
NAME = "edge-rules-0"
RUNS = Programming(Status.TRUE, Reason.PROGRAMMED, "2 of 2 limiters run this generation", 2, 2)
MOVES = Programming(Status.FALSE, Reason.PROPAGATING, "on its way", 1, 2)
BAD = (invalid("spec.rules[burst].limit.burst", "0 is out of range", "write a whole number from 1"),)


def rule(mode: Mode) -> Rule:
    bucket = TokenBucket(1, 1_000_000, 1)
    return Rule("r", mode, (), MissingKey.SKIP, bucket, None, (), FailureMode.OPEN, Visibility.PUBLIC, "rate_limited")


def policy(mode: Mode = Mode.ENFORCE) -> Policy:
    return Policy("t/p", 1, Match((), ()), (), (rule(mode),), Response(Dialect.NONE, None))


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


def report(name: str, revision: int, rejected: int | None = None, digest: str = "d") -> LimiterReport:
    error = "$.rules: no" if rejected else ""
    return LimiterReport(f"http://{name}", name, rulesets={NAME: AppliedRuleset(revision, digest, rejected, error)})


DEAD = LimiterReport("http://dead", error="cannot connect")
DRAINING = replace(report("c", 10), ready=False)
EMPTY = LimiterReport("http://new", "new")


@pytest.mark.parametrize(
    ("reports", "age_ms", "expected", "limiters"),
    [
        ((), 0, Reason.NO_LIMITERS, "0/0"),
        ((report("a", 10), report("b", 10)), 0, Reason.PROGRAMMED, "2/2"),
        ((report("a", 12), report("b", 10)), 0, Reason.PROGRAMMED, "2/2"),
        ((report("a", 10), report("b", 9)), STALE_AFTER_MS, Reason.PROPAGATING, "1/2"),
        ((report("a", 10), report("b", 9)), STALE_AFTER_MS + 1, Reason.LIMITER_STALE, "1/2"),
        ((report("a", 10), EMPTY), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 10), DRAINING), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 10), DEAD), 0, Reason.LIMITER_UNREACHABLE, "1/2"),
        ((report("a", 9, rejected=10), DEAD), 0, Reason.LIMITER_REFUSED, "0/2"),
        ((report("a", 9, rejected=11), report("b", 10)), 0, Reason.LIMITER_REFUSED, "1/2"),
        ((report("a", 9, rejected=8), report("b", 10)), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 10, rejected=12), report("b", 12)), 0, Reason.PROGRAMMED, "2/2"),
        ((report("a", 99), report("b", 10)), 0, Reason.PROPAGATING, "1/2"),
        ((report("a", 12, digest="e"), report("b", 12)), 0, Reason.PROPAGATING, "1/2"),
    ],
    ids=[
        "no limiters",
        "all run it",
        "a later one includes it",
        "one on its way",
        "one too late",
        "one without any rules",
        "one that is not ready",
        "one dead",
        "refusal before silence",
        "refused by one",
        "an older refusal is past",
        "a later refusal is another object's",
        "a revision that nobody wrote",
        "somebody else's content under our revision",
    ],
)
def test_programmed_says_who_runs_the_revision(
    reports: tuple[LimiterReport, ...], age_ms: int, expected: Reason, limiters: str
) -> None:
    """D52: True only after every limiter has confirmed it."""
    found = programming_of(Fleet("edge", NAME, Live(12, "d"), reports), 10, 10 + age_ms)
    assert (found.reason, found.limiters) == (expected, limiters)
    assert (found.status is Status.TRUE) == (expected is Reason.PROGRAMMED)


def test_what_is_wrong_with_the_store_shows_in_what_ready_says_with_the_remedy() -> None:
    fault = "eviction: set maxmemory-policy noeviction"
    reports = replace(report("a", 10), store_faults=(fault,)), replace(report("b", 10), store_faults=(fault, "role: x"))
    programming = programming_of(Fleet("edge", NAME, Live(10, "d"), reports), 10, 0)
    statuses = {mode: policy_status(Subject(obj(), Outcome(), programming, policy(mode)), NOW) for mode in Mode}
    said = {mode: {c["type"]: c for c in status["conditions"]} for mode, status in statuses.items()}
    expected = f"; the store is not set up as it must be: {fault} (2 of 2 limiters), role: x (1 of 2 limiters)"
    assert said[Mode.ENFORCE]["Ready"]["message"] == f"enforced (on 2 of 2 limiters){expected}"
    assert said[Mode.SHADOW]["Ready"]["message"].endswith(expected)
    assert "store" not in said[Mode.DISABLED]["Ready"]["message"]
    assert {conditions["Ready"]["status"] for conditions in said.values()} == {"True"}


def test_a_store_that_is_down_shows_in_what_ready_says() -> None:
    """D52: enforced it is not, where rules fail open."""
    reports = replace(report("a", 10), store_down=True), report("b", 10)
    programming = programming_of(Fleet("edge", NAME, Live(10, "d"), reports), 10, 0)
    enforced = policy_status(Subject(obj(), Outcome(), programming, policy()), NOW)
    shadow = policy_status(Subject(obj(), Outcome(), programming, policy(Mode.SHADOW)), NOW)
    expected = "enforced (on 2 of 2 limiters); the store is down on 1 of 2 limiters: everything passes by r (Open)"
    assert expected in {c["type"]: c["message"] for c in enforced["conditions"]}["Ready"]
    assert judged(enforced)["Ready"] == ("True", "Ready")
    assert judged(enforced)["Enforcing"] == ("False", "StoreUnavailable")
    assert judged(shadow)["Enforcing"] == ("False", "ShadowMode")
    assert "store" not in {c["type"]: c["message"] for c in shadow["conditions"]}["Ready"]


def test_a_message_names_the_limiter_and_its_words() -> None:
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), (report("a", 9, rejected=10), report("b", 10))), 10, 0)
    assert found.message == "1 of 2 limiters run this generation; refused by a ($.rules: no)"


def test_many_late_limiters_are_counted_instead_of_listed() -> None:
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), tuple(report(f"l{i}", 9) for i in range(9))), 10, 0)
    assert found.message.endswith("on its way to l0, l1, l2 and 6 more")


def test_what_could_not_be_published_is_said_so() -> None:
    found = programming_of(Fleet("edge", NAME, Live(10, "d"), (report("a", 10),), "too large"), None, 0)
    assert (found.reason, found.message) == (Reason.RENDER_FAILED, "too large")


def test_an_accepted_and_programmed_policy_is_ready() -> None:
    status = policy_status(Subject(obj(3), Outcome(), RUNS, policy()), NOW)
    assert judged(status) == {
        "Accepted": ("True", "Accepted"),
        "Enforcing": ("True", "Enforcing"),
        "Programmed": ("True", "Programmed"),
        "Ready": ("True", "Ready"),
    }
    assert {key: status[key] for key in ("observedGeneration", "limiters", "mode", "rules")} == {
        "observedGeneration": 3,
        "limiters": "2/2",
        "mode": "Enforce",
        "rules": 1,
    }
    assert {c["observedGeneration"] for c in status["conditions"]} == {3}


@pytest.mark.parametrize(
    ("mode", "words"),
    [(Mode.ENFORCE, "enforced"), (Mode.SHADOW, "none is refused"), (Mode.DISABLED, "nothing is refused")],
)
def test_ready_says_whether_anything_is_refused(mode: Mode, words: str) -> None:
    """D52: Ready in Shadow must not read as enforced."""
    status = policy_status(Subject(obj(), Outcome(), RUNS, policy(mode)), NOW)
    (ready,) = [c for c in status["conditions"] if c["type"] == "Ready"]
    assert words in ready["message"]


def test_a_policy_on_its_way_is_not_ready_for_the_same_reason() -> None:
    status = policy_status(Subject(obj(), Outcome(), MOVES, policy()), NOW)
    assert judged(status)["Ready"] == ("False", "Propagating")
    assert "Stalled" not in judged(status)


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
    status = policy_status(Subject(obj(5), outcome, RUNS, policy()), NOW)
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
    status = override_status(Subject(obj(), Outcome(), RUNS, piece, mode), NOW)
    assert judged(status)["Ready"] == ("True", reason)
    assert words in status["conditions"][-1]["message"]


def test_an_override_that_is_outranked_does_not_say_that_it_is_in_force_everywhere() -> None:
    outranked = Outcome(notes=('spec.subjects[0]: for rule "r" the newer override "t/new" wins',))
    status = override_status(Subject(obj(), outranked, RUNS, override(), Mode.ENFORCE), NOW)
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
    first = policy_status(Subject(obj(), Outcome(), RUNS, policy()), NOW)
    second = policy_status(Subject(obj(status=first), Outcome(), RUNS, policy()), LATER)
    assert second == first
    assert not differs(first, second)


def test_transition_times_move_only_with_the_status() -> None:
    """D49: a new reason, message or generation moves nothing."""
    first = policy_status(Subject(obj(1), Outcome(), MOVES, policy()), NOW)
    stale = Programming(Status.FALSE, Reason.LIMITER_STALE, "still", 1, 2)
    second = policy_status(Subject(obj(2, first), Outcome(), stale, policy()), LATER)
    assert since(second) == since(first)
    third = policy_status(Subject(obj(2, second), Outcome(), RUNS, policy()), LATER)
    assert since(third) == {
        "Accepted": "2026-12-01T12:00:00Z",
        "Enforcing": "2026-12-01T12:00:00Z",
        "Programmed": "2026-12-01T13:00:00Z",
        "Ready": "2026-12-01T13:00:00Z",
    }


def test_recovery_removes_stalled() -> None:
    broken = policy_status(Subject(obj(), Outcome(BAD), MOVES), NOW)
    healed = policy_status(Subject(obj(2, broken), Outcome(), RUNS, policy()), LATER)
    assert "Stalled" not in judged(healed)
    assert differs(broken, healed)


def test_conditions_and_members_of_others_are_not_compared() -> None:
    ours = policy_status(Subject(obj(), Outcome(), RUNS, policy()), NOW)
    others = {**ours, "killSwitches": {"r": {}}, "conditions": [{"type": "Theirs"}, *reversed(ours["conditions"])]}
    assert not differs(others, ours)


def test_only_more_than_words_and_counts_is_a_transition() -> None:
    first = policy_status(Subject(obj(), Outcome(), MOVES, policy()), NOW)
    reworded = policy_status(
        Subject(obj(status=first), Outcome(), Programming(Status.FALSE, Reason.PROPAGATING, "x", 2, 2), policy()), NOW
    )
    assert differs(first, reworded)
    assert not is_transition(first, reworded)
    done = policy_status(Subject(obj(status=first), Outcome(), RUNS, policy()), NOW)
    assert is_transition(first, done)
    newer = policy_status(Subject(obj(2, first), Outcome(), MOVES, policy()), NOW)
    assert is_transition(first, newer)


@pytest.mark.parametrize("live", [None, {}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}])
def test_a_new_object_is_always_written(live: dict[str, Any] | None) -> None:
    wanted = policy_status(Subject(obj(status=live), Outcome(), MOVES, policy()), NOW)
    assert differs(live, wanted)
    assert is_transition(live, wanted)
