# SPDX-License-Identifier: Apache-2.0
"""The conditions that Weir writes: which types exist, with which status and reason each, and how they change.

`ALLOWED` is the whole vocabulary; a `Condition` outside it cannot be made. This module never decides which
condition holds (that is `reconcile.status`) and never reads the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

_MAX_MESSAGE = 4096  # characters; the Kubernetes API allows 32,768, a person reads far fewer


class ConditionType(StrEnum):
    """What a condition speaks about."""

    ACCEPTED = "Accepted"
    """The spec is valid and allowed here."""
    PROGRAMMED = "Programmed"
    """Every limiter of the gateway runs this generation (or, while it is not accepted, none can)."""
    ENFORCING = "Enforcing"
    """Of policies: requests over the limits are refused now, by counters that all limiters share."""
    READY = "Ready"
    """The summary: the object is in force as written."""
    STALLED = "Stalled"
    """Only present while True: no progress without an edit. It is what kstatus reads as failed."""


class Status(StrEnum):
    """A condition's status, as Kubernetes spells it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition has its status."""

    ACCEPTED = "Accepted"
    """The spec is valid and in the gateway's rules."""
    INVALID = "Invalid"
    """The spec contradicts itself, what can be enforced or what its policy has; the message names the fields."""
    UNKNOWN_GATEWAY = "UnknownGateway"
    """No gateway of that name is set up."""
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    """The gateway does not let this namespace attach."""
    HOST_NOT_ALLOWED = "HostNotAllowed"
    """The gateway does not let this namespace limit one of the hosts."""
    BUDGET_EXCEEDED = "BudgetExceeded"
    """One request would meet more rules than the gateway's budget, alone or with older policies."""
    POLICY_NOT_FOUND = "PolicyNotFound"
    """The override names a policy that does not exist in its namespace."""
    CONFLICTED = "Conflicted"
    """The override's policy exists but is not accepted, so there is nothing to override."""
    PROGRAMMED = "Programmed"
    """Every limiter of the gateway has acknowledged the rules that hold this generation."""
    PROPAGATING = "Propagating"
    """Written; not yet acknowledged by every limiter."""
    NO_LIMITERS = "NoLimiters"
    """The gateway has no limiter, so nothing is enforced."""
    LIMITER_STALE = "LimiterStale"
    """A limiter keeps running older rules for longer than a change should take."""
    LIMITER_UNREACHABLE = "LimiterUnreachable"
    """A limiter's status endpoint does not answer."""
    LIMITER_REFUSED = "LimiterRefused"
    """A limiter refused the rules; the message quotes it."""
    RENDER_FAILED = "RenderFailed"
    """The gateway's rules could not be written, e.g. because they are too large."""
    NOT_ACCEPTED = "NotAccepted"
    """Nothing to program: see Accepted."""
    ENFORCING = "Enforcing"
    """The limits are enforced as written."""
    SHADOW_MODE = "ShadowMode"
    """The policy is in mode Shadow: nothing is refused."""
    SWITCHED_OFF = "SwitchedOff"
    """The policy is in mode Disabled: nothing is counted and nothing is refused."""
    STORE_UNAVAILABLE = "StoreUnavailable"
    """Limiters cannot reach their store: rules with `onStoreFailure` Open limit nothing, those with Closed refuse."""
    DEGRADED = "Degraded"
    """Limiters cannot reach their store, and each grants its own share of the limits: all rules have Local."""
    NOT_PROGRAMMED = "NotProgrammed"
    """No limiter runs it: see Programmed."""
    READY = "Ready"
    """Accepted and running on every limiter."""
    EXPIRED = "Expired"
    """The override has ended as it said it would; the object can be deleted."""
    PENDING = "Pending"
    """Not judged yet."""


_REFUSALS = frozenset(
    {
        Reason.INVALID,
        Reason.UNKNOWN_GATEWAY,
        Reason.NAMESPACE_NOT_ALLOWED,
        Reason.HOST_NOT_ALLOWED,
        Reason.BUDGET_EXCEEDED,
        Reason.POLICY_NOT_FOUND,
        Reason.CONFLICTED,
    }
)
_UNPROGRAMMED = frozenset(
    {
        Reason.PROPAGATING,
        Reason.NO_LIMITERS,
        Reason.LIMITER_STALE,
        Reason.LIMITER_UNREACHABLE,
        Reason.LIMITER_REFUSED,
        Reason.RENDER_FAILED,
        Reason.NOT_ACCEPTED,
    }
)

ALLOWED: Mapping[tuple[ConditionType, Status], frozenset[Reason]] = {
    (ConditionType.ACCEPTED, Status.TRUE): frozenset({Reason.ACCEPTED}),
    (ConditionType.ACCEPTED, Status.FALSE): _REFUSALS,
    (ConditionType.ACCEPTED, Status.UNKNOWN): frozenset({Reason.PENDING}),
    (ConditionType.PROGRAMMED, Status.TRUE): frozenset({Reason.PROGRAMMED}),
    (ConditionType.PROGRAMMED, Status.FALSE): _UNPROGRAMMED,
    (ConditionType.PROGRAMMED, Status.UNKNOWN): frozenset({Reason.PENDING}),
    (ConditionType.ENFORCING, Status.TRUE): frozenset({Reason.ENFORCING}),
    (ConditionType.ENFORCING, Status.FALSE): frozenset(
        {
            Reason.SHADOW_MODE,
            Reason.SWITCHED_OFF,
            Reason.STORE_UNAVAILABLE,
            Reason.DEGRADED,
            Reason.NOT_PROGRAMMED,
        }
    ),
    (ConditionType.READY, Status.TRUE): frozenset({Reason.READY, Reason.EXPIRED}),
    (ConditionType.READY, Status.FALSE): _REFUSALS | _UNPROGRAMMED,
    (ConditionType.READY, Status.UNKNOWN): frozenset({Reason.PENDING}),
    (ConditionType.STALLED, Status.TRUE): _REFUSALS,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object's status.

    `last_transition_time` is RFC 3339 and empty until `merge` has set it. A message longer than 4,096 characters
    is cut. Raises ValueError for a (type, status, reason) that `ALLOWED` does not list: a mistake of ours.
    """

    type: ConditionType
    status: Status
    reason: Reason
    message: str
    observed_generation: int
    last_transition_time: str = ""

    def __post_init__(self) -> None:
        if self.reason not in ALLOWED.get((self.type, self.status), frozenset()):
            raise ValueError(f"{self.type}={self.status} never has the reason {self.reason}")
        if len(self.message) > _MAX_MESSAGE:
            object.__setattr__(self, "message", self.message[: _MAX_MESSAGE - 1] + "…")

    def to_document(self) -> dict[str, str | int]:
        """The condition as it stands in a Kubernetes status."""
        return {
            "type": str(self.type),
            "status": str(self.status),
            "reason": str(self.reason),
            "message": self.message,
            "observedGeneration": self.observed_generation,
            "lastTransitionTime": self.last_transition_time,
        }


def parse_conditions(raw: object) -> tuple[Condition, ...]:
    """The conditions in a live `status.conditions`, without those that are not ours or no longer in `ALLOWED`.

    Never raises: whatever stands there, the next write replaces it. The CRD's default (Ready=Unknown/Pending) has
    no observedGeneration; it is read as 0, the generation that no object has.
    """
    found = (_parse_condition(entry) for entry in (raw if isinstance(raw, list) else []))
    return tuple(condition for condition in found if condition is not None)


def merge(previous: Iterable[Condition], current: Iterable[Condition], now: str) -> tuple[Condition, ...]:
    """`current`, sorted by type, each with the time since which its status has been the same.

    `now` is RFC 3339. Equal results mean that there is nothing to write.
    """
    before = {condition.type: condition for condition in previous}
    merged = (replace(c, last_transition_time=_since(before.get(c.type), c, now)) for c in current)
    return tuple(sorted(merged, key=lambda condition: condition.type))


def _since(before: Condition | None, current: Condition, now: str) -> str:
    unchanged = before is not None and before.status == current.status
    return before.last_transition_time if before is not None and unchanged and before.last_transition_time else now


def _parse_condition(entry: object) -> Condition | None:
    if not isinstance(entry, dict):
        return None
    generation = entry.get("observedGeneration", 0)
    try:
        return Condition(
            ConditionType(str(entry.get("type"))),
            Status(str(entry.get("status"))),
            Reason(str(entry.get("reason"))),
            str(entry.get("message", "")),
            generation if isinstance(generation, int) else 0,
            str(entry.get("lastTransitionTime", "")),
        )
    except ValueError:
        return None
