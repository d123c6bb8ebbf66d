# SPDX-License-Identifier: Apache-2.0
"""What an object's status says: from the compiler's outcome, the limiters' reports and the time to a document.

Owns the words and the precedence of reasons. Pure: `now` is an argument, and the same facts always give the same
document, without ages or attempts in its messages, so that an idle cluster is never written to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from weir_operator.domain.compiler import Outcome
from weir_operator.domain.conditions import Condition, ConditionType, Reason, Status, merge, parse_conditions
from weir_operator.domain.limits import Mode
from weir_operator.domain.overriding import Override
from weir_operator.domain.problems import chief_reason, summary
from weir_operator.domain.ruleset import Policy
from weir_operator.reconcile.enforcing import MODE_MESSAGES, enforcing, failing_rules, of, some, store_message
from weir_operator.reconcile.ports import AppliedRuleset, LimiterReport, Object
from weir_operator.render.ruleset_config import Live

STALE_AFTER_MS = 10_000  # a change is live within 2 s normally; five times that is no longer normal
NAMED_LIMITERS = 3  # in a message; the rest is counted


@dataclass(frozen=True, slots=True)
class Fleet:
    """A gateway's limiters as they are now, and what they were told."""

    gateway: str
    ruleset_name: str
    published: Live
    """Revision 0 = nothing yet."""
    reports: tuple[LimiterReport, ...] = ()
    publish_error: str = ""
    """Why the wanted ruleset could not be published; empty when it was."""


@dataclass(frozen=True, slots=True)
class Programming:
    """How far one revision has come."""

    status: Status
    reason: Reason
    message: str
    running: int = 0
    total: int = 0
    stores_down: int = 0
    """How many limiters lack their store."""
    store_faults: tuple[tuple[str, int], ...] = ()
    """What is wrong with the limiters' stores, each with how many limiters say so."""

    @property
    def limiters(self) -> str:
        """`2/3`: how many limiters run it, of how many."""
        return f"{self.running}/{self.total}"


@dataclass(frozen=True, slots=True)
class Subject:
    """One object to report on."""

    obj: Object
    outcome: Outcome
    programming: Programming
    """Of the piece that runs for it, be it this generation's or one that was kept."""
    piece: Policy | Override | None = None
    policy_mode: Mode | None = None
    """For overrides: the mode of the policy that it changes."""


def programming_of(fleet: Fleet, required_revision: int | None, now_ms: int) -> Programming:
    """Return how many limiters run at least `required_revision` (None = it could not be published)."""
    total = len(fleet.reports)
    if required_revision is None:
        return Programming(Status.FALSE, Reason.RENDER_FAILED, fleet.publish_error or "not published yet", 0, total)
    if not fleet.reports:
        message = f"the operator's settings list no limiter for gateway {fleet.gateway}, so nothing is enforced"
        return Programming(Status.FALSE, Reason.NO_LIMITERS, message)
    stores_down = sum(report.store_down for report in fleet.reports)
    late = _Late()
    running = sum(_judge(report, fleet, required_revision, late) for report in fleet.reports)
    if running == total:
        message = f"{of(running, total)} run this generation"
        faults = Counter(fault for report in fleet.reports for fault in report.store_faults)
        return Programming(
            Status.TRUE, Reason.PROGRAMMED, message, running, total, stores_down, tuple(sorted(faults.items()))
        )
    reason, message = late.worst(stale=now_ms - required_revision > STALE_AFTER_MS)
    message = f"{of(running, total)} run this generation; {message}"
    return Programming(Status.FALSE, reason, message, running, total, stores_down)


@dataclass(slots=True)
class _Late:
    """The limiters that do not run what they should, by cause."""

    refused: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def worst(self, *, stale: bool) -> tuple[Reason, str]:
        if self.refused:
            return Reason.LIMITER_REFUSED, "refused by " + _some(self.refused)
        if self.unreachable:
            return Reason.LIMITER_UNREACHABLE, "no answer from " + _some(self.unreachable)
        if stale:
            return Reason.LIMITER_STALE, "still on older rules: " + _some(self.behind)
        return Reason.PROPAGATING, "on its way to " + _some(self.behind)


def _judge(report: LimiterReport, fleet: Fleet, required: int, late: _Late) -> bool:
    """Return whether a limiter runs the required revision; note it under its cause if not."""
    if report.error:
        late.unreachable.append(f"{report.name} ({report.error})")
        return False
    applied = report.rulesets.get(fleet.ruleset_name)
    if applied is not None and applied.revision < required <= (applied.rejected_revision or 0):
        late.refused.append(f"{report.name} ({applied.rejected_error})")
        return False
    if applied is None or applied.revision < required or _is_foreign(applied, fleet.published):
        late.behind.append(report.name)
        return False
    if not report.ready:
        late.behind.append(f"{report.name} (not ready)")
    return report.ready


def _is_foreign(applied: AppliedRuleset, published: Live) -> bool:
    """Whether it was not written here: it proves nothing, and the loop publishes above it."""
    if applied.revision == published.revision:
        return applied.digest != published.digest
    return applied.revision > published.revision


def policy_status(subject: Subject, now: datetime) -> dict[str, Any]:
    """Return the status document of a RateLimitPolicy."""
    status: dict[str, Any] = {"limiters": subject.programming.limiters}
    if isinstance(subject.piece, Policy):
        mode = subject.piece.rules[0].mode  # one mode for all rules of a policy
        status |= {"mode": str(mode), "rules": len(subject.piece.rules)}
        ready = MODE_MESSAGES[mode]
    else:
        ready = "nothing of this policy runs"
    message = _ready_message(ready, subject.programming)
    if ready == MODE_MESSAGES[Mode.ENFORCE]:
        message += _store_message(subject)
    if ready != MODE_MESSAGES[Mode.DISABLED]:
        message += _preflight_message(subject.programming)
    return _document(subject, message, Reason.READY, now, _enforcing(subject)) | status


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


def differs(live: Object | None, wanted: Mapping[str, Any]) -> bool:
    """Whether the live status says anything else than the wanted one, as far as it is ours."""
    return _ours(live or {}) != wanted


def is_transition(live: Object | None, wanted: Mapping[str, Any]) -> bool:
    """Whether more than messages and counts would change: such a write must not wait."""
    return _skeleton(_ours(live or {})) != _skeleton(wanted)


def _enforcing(subject: Subject) -> tuple[Condition, ...]:
    piece = subject.piece if isinstance(subject.piece, Policy) else None
    programming = subject.programming
    judgement = enforcing(piece, programming.running, programming.total, programming.stores_down)
    return (Condition(ConditionType.ENFORCING, *judgement, subject.obj["metadata"]["generation"]),)


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
    conditions = merge(previous, (*current, *others), _rfc3339(now))
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
    ready = (Status.TRUE, ready_reason, ready_message)
    if programming.status is not Status.TRUE:
        ready = (programming.status, programming.reason, programming.message)
    return (
        Condition(kinds.ACCEPTED, Status.TRUE, Reason.ACCEPTED, accepted, generation),
        Condition(kinds.PROGRAMMED, programming.status, programming.reason, programming.message, generation),
        Condition(kinds.READY, *ready, generation),
    )


def _override_message(subject: Subject, now: datetime) -> str:
    piece = subject.piece
    if isinstance(piece, Override) and piece.not_before is not None and piece.not_before > now.timestamp():
        return f"begins at {_rfc3339(datetime.fromtimestamp(piece.not_before, UTC))}"
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


def _store_message(subject: Subject) -> str:
    programming = subject.programming
    failing = failing_rules(subject.piece) if isinstance(subject.piece, Policy) else ()
    if not programming.stores_down or not failing:
        return ""
    return "; " + store_message(failing, programming.stores_down, programming.total)


def _preflight_message(programming: Programming) -> str:
    faults = [f"{fault} ({of(count, programming.total)})" for fault, count in programming.store_faults]
    return f"; the store is not set up as it must be: {_some(faults)}" if faults else ""


def _ended(piece: Policy | Override | None, now: datetime) -> str | None:
    if not isinstance(piece, Override) or piece.not_after is None or piece.not_after > now.timestamp():
        return None
    return _rfc3339(datetime.fromtimestamp(piece.not_after, UTC))


def _some(names: list[str]) -> str:
    return some(names, NAMED_LIMITERS)


def _rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


OUR_MEMBERS = ("observedGeneration", "conditions", "limiters", "mode", "rules")


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
    return status.get("observedGeneration"), status.get("mode"), status.get("rules"), conditions
