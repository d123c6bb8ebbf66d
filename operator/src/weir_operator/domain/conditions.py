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
    """Of policies: whether limits are applied to requests at this moment, and on how many limiters."""
    READY = "Ready"
    """The summary: the object is accepted, and every limiter runs it as written."""
    RECONCILING = "Reconciling"
    """Only present while True: the limiters are expected to catch up. kstatus reads it as in progress."""
    STALLED = "Stalled"
    """Only present while True: no progress until a person changes something. kstatus reads it as failed."""


class Status(StrEnum):
    """A condition's status, as Kubernetes spells it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition has its status. Under each: what it means, and what to do about it."""

    ACCEPTED = "Accepted"
    """The spec is valid and in the gateway's rules.

    Nothing to do.
    """
    INVALID = "Invalid"
    """The spec contradicts itself, what can be enforced or what its policy has; the message names the fields.

    Change the fields that the message names as it says.
    """
    UNKNOWN_GATEWAY = "UnknownGateway"
    """No gateway of that name is set up.

    Write one of the gateways that the message lists into `spec.gateway`.
    """
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    """The gateway does not let this namespace attach.

    Ask the gateway's administrator to add the namespace to `allowedNamespaces`, or use another gateway.
    """
    HOST_NOT_ALLOWED = "HostNotAllowed"
    """The gateway does not let this namespace limit one of the hosts.

    Take the host out of `spec.match.hosts`, or ask the gateway's administrator to add it to `hosts`.
    """
    BUDGET_EXCEEDED = "BudgetExceeded"
    """One request would meet more rules than the gateway's budget, or the namespace would fill more than its share.

    Limit fewer routes or join rules; or ask the gateway's administrator for a larger `ruleBudget` or `namespaceBudget`.
    """
    POLICY_NOT_FOUND = "PolicyNotFound"
    """The override names a policy that does not exist in its namespace.

    Correct `spec.policyRef.name`, or create the policy.
    """
    CONFLICTED = "Conflicted"
    """The override's policy exists but is not accepted, so there is nothing to override.

    Mend the policy: its own `Accepted` says what is wrong.
    """
    PROGRAMMED = "Programmed"
    """Every limiter of the gateway has acknowledged the rules that hold this generation.

    Nothing to do.
    """
    PROPAGATING = "Propagating"
    """Written; not yet acknowledged by every limiter.

    Wait: it takes about a second.
    """
    NO_LIMITERS = "NoLimiters"
    """The gateway has no limiter, so nothing is enforced.

    List the limiters of the gateway in the operator's settings, `limiters.addresses`.
    """
    LIMITER_STALE = "LimiterStale"
    """A limiter keeps running older rules for longer than a change should take.

    Look at the `watch` of the named limiter's `/status` and at its log: it does not get, or does not read, the
    rules.
    """
    LIMITER_UNREACHABLE = "LimiterUnreachable"
    """A limiter's status endpoint does not answer, so what it does is not known.

    Look whether the named limiter runs, and whether the operator reaches its admin port.
    """
    LIMITER_REFUSED = "LimiterRefused"
    """A limiter refused the rules; the message quotes it.

    Usually the limiter is older than the operator: upgrade it.
    """
    RENDER_FAILED = "RenderFailed"
    """The gateway's rules could not be written, e.g. because they are too large.

    Do what the message says; the limiters keep the last rules meanwhile.
    """
    NOT_ACCEPTED = "NotAccepted"
    """Nothing to program: see Accepted.

    Do what `Accepted` says.
    """
    ENFORCING = "Enforcing"
    """The limits are applied as written.

    Nothing to do.
    """
    ROLLING_OUT = "RollingOut"
    """Limits are applied everywhere, on some limiters still as an earlier generation says; or, while False, a
    rollout has not promoted every rule for every subject yet.

    Wait, or see `Programmed` for the limiter that is late, and `status.rules` for the rollout.
    """
    EARLIER_GENERATION = "EarlierGeneration"
    """Limits are applied as an earlier generation says: this one was refused, or could not be written.

    Do what `Accepted` or `Programmed` says.
    """
    SHADOW_MODE = "ShadowMode"
    """The policy is in mode Shadow: nothing is refused.

    When its evidence is good, set `spec.mode: Enforce`.
    """
    SWITCHED_OFF = "SwitchedOff"
    """The policy is in mode Disabled: nothing is counted and nothing is refused.

    Set `spec.mode: Enforce`, or delete the policy.
    """
    KILL_SWITCH = "KillSwitch"
    """Somebody has weakened a rule by `status.killSwitches`; the message says which, who and until when.

    `weir unkill POLICY RULE` when the incident is over.
    """
    BREAK_GLASS = "BreakGlass"
    """The gateway's break-glass ConfigMap weakens a rule; the message says which.

    Take the entry out of the ConfigMap `<gateway>-breakglass` when the incident is over.
    """
    STORE_UNAVAILABLE = "StoreUnavailable"
    """Limiters cannot reach their store: rules with `onStoreFailure` Open limit nothing, those with Closed refuse.

    Mend the store; `weir_store_*` of the limiters' metrics say what is wrong with it.
    """
    DEGRADED = "Degraded"
    """Limiters cannot reach their store, and each grants its own share of the limits: all rules have Local.

    Mend the store; until then limits hold approximately.
    """
    NOT_PROGRAMMED = "NotProgrammed"
    """Some limiter that answers, or all of them, apply nothing of it: see Programmed.

    Do what `Programmed` says.
    """
    NOT_ASKED = "NotAsked"
    """No limiter of the gateway has been asked about any request for a while: there is no traffic, or Envoy does not
    ask.

    If there is traffic, look at Envoy's ext_authz filter and its cluster: Envoy lets requests pass when it cannot
    ask.
    """
    NO_TRAFFIC_MATCHED = "NoTrafficMatched"
    """The limiters are asked, and no request has matched the policy since it runs as it is.

    Compare `spec.match` with the requests that you send: the host, the path after normalisation, the method.
    """
    READY = "Ready"
    """Accepted and running on every limiter; whether it limits says Enforcing.

    Nothing to do.
    """
    EXPIRED = "Expired"
    """The override has ended as it said it would.

    Delete the object, or give it a later `spec.expiresAt`.
    """
    PENDING = "Pending"
    """Not judged yet.

    Wait a second; if it stays, look whether an operator runs.
    """


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

_UNENFORCED = frozenset(
    {
        Reason.SHADOW_MODE,
        Reason.SWITCHED_OFF,
        Reason.KILL_SWITCH,
        Reason.BREAK_GLASS,
        Reason.STORE_UNAVAILABLE,
        Reason.DEGRADED,
        Reason.NOT_PROGRAMMED,
        Reason.ROLLING_OUT,
        Reason.NO_TRAFFIC_MATCHED,
    }
)
CATCHING_UP = frozenset({Reason.PROPAGATING, Reason.LIMITER_STALE, Reason.LIMITER_UNREACHABLE, Reason.LIMITER_REFUSED})
"""Of what is not programmed: what may end by itself, also when a limiter is replaced. The rest needs an edit."""

ALLOWED: Mapping[tuple[ConditionType, Status], frozenset[Reason]] = {
    (ConditionType.ACCEPTED, Status.TRUE): frozenset({Reason.ACCEPTED}),
    (ConditionType.ACCEPTED, Status.FALSE): _REFUSALS,
    (ConditionType.ACCEPTED, Status.UNKNOWN): frozenset({Reason.PENDING}),
    (ConditionType.PROGRAMMED, Status.TRUE): frozenset({Reason.PROGRAMMED}),
    (ConditionType.PROGRAMMED, Status.FALSE): _UNPROGRAMMED,
    (ConditionType.PROGRAMMED, Status.UNKNOWN): frozenset({Reason.PENDING}),
    (ConditionType.ENFORCING, Status.TRUE): frozenset(
        {Reason.ENFORCING, Reason.ROLLING_OUT, Reason.EARLIER_GENERATION}
    ),
    (ConditionType.ENFORCING, Status.FALSE): _UNENFORCED,
    (ConditionType.ENFORCING, Status.UNKNOWN): frozenset({Reason.LIMITER_UNREACHABLE, Reason.NOT_ASKED}),
    (ConditionType.READY, Status.TRUE): frozenset({Reason.READY, Reason.EXPIRED}),
    (ConditionType.READY, Status.FALSE): _REFUSALS | (_UNPROGRAMMED - {Reason.NOT_ACCEPTED}),
    (ConditionType.READY, Status.UNKNOWN): frozenset({Reason.PENDING}),
    (ConditionType.RECONCILING, Status.TRUE): CATCHING_UP,
    (ConditionType.STALLED, Status.TRUE): _REFUSALS | (_UNPROGRAMMED - CATCHING_UP - {Reason.NOT_ACCEPTED}),
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
