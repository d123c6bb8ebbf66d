# SPDX-License-Identifier: Apache-2.0
"""What an object's status says: from the compiler's outcome, the limiters' reports and the time to a document.

Owns the words and the precedence of reasons. Pure: `now` is an argument, and the same facts always give the same
document, without ages or attempts in its messages, so that an idle cluster is never written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from weir_operator.domain.conditions import (
    CATCHING_UP,
    Condition,
    ConditionType,
    Reason,
    Status,
    merge,
    parse_conditions,
)
from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import strongest
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.overriding import Override
from weir_operator.domain.problems import chief_reason, summary
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.times import time_text
from weir_operator.reconcile.coverage import NOWHERE, Coverage
from weir_operator.reconcile.enforcing import enforcing
from weir_operator.reconcile.fleet import of, some
from weir_operator.reconcile.ports import Object
from weir_operator.reconcile.programming import NAMED_LIMITERS, Programming
from weir_operator.reconcile.weakness import Weakness


@dataclass(frozen=True, slots=True)
class Subject:
    """One object to report on."""

    obj: Object
    outcome: Outcome
    programming: Programming
    """Of the piece that runs for it, be it this generation's or one that was kept."""
    piece: Policy | Override | None = None
    coverage: Coverage = NOWHERE
    """For policies: which limiters apply what of it."""
    weak: tuple[Weakness, ...] = ()
    """For policies: the rules that do not refuse now."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """For policies: the members of the status that say where each rule stands; empty: nothing is known of it."""
    policy_mode: Mode | None = None
    """For overrides: the mode of the policy that it changes."""
    by_hand: str = ""
    """For policies: names what people have said of it in status; "" if they have not."""


def policy_status(subject: Subject, now: datetime) -> dict[str, Any]:
    """Return the status document of a RateLimitPolicy."""
    status: dict[str, Any] = {"limiters": subject.programming.limiters}
    enforced = _enforcing(subject)
    message = enforced.message
    if isinstance(subject.piece, Policy):
        names = {rule.name for rule in subject.piece.rules}
        mode = (
            strongest(weakness.mode for weakness in subject.weak) if len(subject.weak) == len(names) else Mode.ENFORCE
        )
        status |= {"mode": str(mode), "ruleCount": len(names)}
        if mode is not Mode.DISABLED:
            message += _preflight_message(subject.programming)
    message += _glass_message(subject.programming)
    if subject.by_hand:
        status[JUDGED_BY_HAND] = subject.by_hand
    return {**_document(subject, message, Reason.READY, now, (enforced,)), **status, **_stands(subject)}


def _stands(subject: Subject) -> Mapping[str, Any]:
    """Where the rules stand; while that is not known, what was said last: who forgets it, loses what is enforced."""
    live = subject.obj.get("status") or {}
    return subject.rules or {member: live[member] for member in RULE_MEMBERS if member in live}


def override_status(subject: Subject, now: datetime) -> dict[str, Any]:
    """Return the status document of a RateLimitOverride."""
    ended = subject.outcome.accepted and _ended(subject.piece, now)
    if ended is not None:
        message = f"ended at {ended}; it changes nothing any more and can be deleted"
        programmed = Programming(Status.TRUE, Reason.PROGRAMMED, "limiters apply it only until it ends")
        expired = Subject(subject.obj, subject.outcome, programmed)
        return _document(expired, message, Reason.EXPIRED, now)
    message = _override_message(subject, now)
    return _document(subject, _ready_message(message, subject.programming), Reason.READY, now)


def next_turn(piece: Policy | Override | None, now: datetime) -> float | None:
    """Return the Unix time at which an object's status changes by itself, if it will."""
    if not isinstance(piece, Override):
        return None
    times = [time for time in (piece.not_before, piece.not_after) if time is not None and time > now.timestamp()]
    return min(times, default=None)


def our_members(live: Object | None) -> dict[str, Any]:
    """Return what of a live status is the operator's, as it must be written again by who changes a part of it."""
    return _ours(live or {})


def differs(live: Object | None, wanted: Mapping[str, Any]) -> bool:
    """Whether the live status says anything else than the wanted one, as far as it is ours."""
    return _ours(live or {}) != wanted


def is_transition(live: Object | None, wanted: Mapping[str, Any]) -> bool:
    """Whether more than messages and counts would change: such a write must not wait."""
    return _skeleton(_ours(live or {})) != _skeleton(wanted)


def _enforcing(subject: Subject) -> Condition:
    piece = subject.piece if isinstance(subject.piece, Policy) else None
    superseded = not subject.outcome.accepted or subject.programming.reason is Reason.RENDER_FAILED
    judgement = enforcing(piece, subject.coverage, subject.weak, superseded=superseded)
    return Condition(ConditionType.ENFORCING, *judgement, subject.obj["metadata"]["generation"])


def _document(
    subject: Subject,
    ready_message: str,
    ready_reason: Reason,
    now: datetime,
    others: tuple[Condition, ...] = (),
) -> dict[str, Any]:
    generation = subject.obj["metadata"]["generation"]
    previous = parse_conditions((subject.obj.get("status") or {}).get("conditions"))
    current = _conditions(subject, ready_message, ready_reason, generation)
    conditions = merge(previous, (*current, *others), time_text(now.timestamp()))
    return {"observedGeneration": generation, "conditions": [condition.to_document() for condition in conditions]}


def _conditions(subject: Subject, ready_message: str, ready_reason: Reason, generation: int) -> Sequence[Condition]:
    outcome, programming = subject.outcome, subject.programming
    kinds = ConditionType
    if not outcome.accepted:
        reason, message = chief_reason(outcome.problems), summary(outcome.problems)
        running = _kept_message(outcome, programming)
        return (
            Condition(kinds.ACCEPTED, Status.FALSE, reason, f"{message}. {running}", generation),
            Condition(kinds.PROGRAMMED, Status.FALSE, Reason.NOT_ACCEPTED, running, generation),
            Condition(kinds.READY, Status.FALSE, reason, message, generation),
            Condition(kinds.STALLED, Status.TRUE, reason, message, generation),
        )
    accepted = ". ".join(("the spec is valid", *outcome.notes))
    programmed = programming.status, programming.reason, programming.message
    found = [
        Condition(kinds.ACCEPTED, Status.TRUE, Reason.ACCEPTED, accepted, generation),
        Condition(kinds.PROGRAMMED, *programmed, generation),
    ]
    if programming.status is Status.TRUE:
        return *found, Condition(kinds.READY, Status.TRUE, ready_reason, ready_message, generation)
    trouble = kinds.RECONCILING if programming.reason in CATCHING_UP else kinds.STALLED
    found.append(Condition(kinds.READY, *programmed, generation))
    return *found, Condition(trouble, Status.TRUE, programming.reason, programming.message, generation)


def _override_message(subject: Subject, now: datetime) -> str:
    piece = subject.piece
    if isinstance(piece, Override) and piece.not_before is not None and piece.not_before > now.timestamp():
        return f"begins at {time_text(piece.not_before)}"
    if subject.policy_mode in {Mode.SHADOW, Mode.DISABLED}:
        return f"its policy is in mode {subject.policy_mode}, so nothing is refused"
    return "in force where no other override outranks it: see Accepted" if subject.outcome.notes else "in force"


def _kept_message(outcome: Outcome, programming: Programming) -> str:
    if not outcome.kept:
        return "Nothing of this object runs"
    which = "the last accepted version" if outcome.kept_generation is None else f"generation {outcome.kept_generation}"
    return f"Meanwhile {which} keeps running on {of(programming.running, programming.total)}"


def _ready_message(message: str, programming: Programming) -> str:
    return f"{message} (on {of(programming.running, programming.total)})"


def _preflight_message(programming: Programming) -> str:
    return _faults_message("the store is not set up as it must be", programming.store_faults, programming)


def _glass_message(programming: Programming) -> str:
    return _faults_message("break glass cannot be read, what it said last holds", programming.glass_faults, programming)


def _faults_message(what: str, faults: Sequence[tuple[str, int]], programming: Programming) -> str:
    counted = [f"{fault} ({of(count, programming.total)})" for fault, count in faults]
    return f"; {what}: {_some(counted)}" if counted else ""


def _ended(piece: Policy | Override | None, now: datetime) -> str | None:
    if not isinstance(piece, Override) or piece.not_after is None or piece.not_after > now.timestamp():
        return None
    return time_text(piece.not_after)


def _some(names: list[str]) -> str:
    return some(names, NAMED_LIMITERS)


JUDGED_BY_HAND = "observedInterventions"
RULE_MEMBERS = ("rules", "wouldReject")
OUR_MEMBERS = ("observedGeneration", "conditions", "limiters", "mode", "ruleCount", *RULE_MEMBERS, JUDGED_BY_HAND)


def _ours(status: Mapping[str, Any]) -> dict[str, Any]:
    ours = {member: status[member] for member in OUR_MEMBERS if member in status}
    if "conditions" in ours:
        ours["conditions"] = sorted(
            (condition for condition in ours["conditions"] if condition.get("type") in set(ConditionType)),
            key=lambda condition: str(condition["type"]),
        )
    return ours


def _skeleton(status: Mapping[str, Any]) -> tuple[Any, ...]:
    conditions = [
        tuple(condition.get(member) for member in ("type", "status", "reason", "observedGeneration"))
        for condition in status.get("conditions", ())
    ]
    stand = "name", "effectiveMode", "stage", "active"
    stands = [tuple(rule.get(fact) for fact in stand) for rule in status.get("rules", ())]
    facts = ("observedGeneration", "mode", "ruleCount", JUDGED_BY_HAND)
    return *(status.get(fact) for fact in facts), stands, conditions
