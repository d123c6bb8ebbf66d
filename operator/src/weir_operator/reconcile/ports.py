# SPDX-License-Identifier: Apache-2.0
"""What the reconcile loop needs from the world, as Protocols, and how the world says no.

Owns the vocabulary between the loop and its adapters. It must not know which client, library or thread stands behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from weir_operator.domain.evidence import RuleCounts, RuleKey
from weir_operator.domain.limits import Mode
from weir_operator.reconcile.lease import Record

Object = Mapping[str, Any]
"""A Kubernetes object as JSON: `apiVersion`, `kind`, `metadata` and the rest."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object as the API server's paths name it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name that RBAC and kubectl use, for messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


POLICIES = Resource("weir.dev", "v1alpha1", "ratelimitpolicies", "RateLimitPolicy")
OVERRIDES = Resource("weir.dev", "v1alpha1", "ratelimitoverrides", "RateLimitOverride")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")


@dataclass(frozen=True, slots=True)
class Ref:
    """One object's address."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Listing:
    """Every object of one resource at one moment."""

    objects: tuple[Object, ...]
    resource_version: int
    """The moment; comparable between objects and lists of one resource."""


class Waiting(Exception):  # noqa: N818  named by its consequence
    """Nothing is wrong with us: try again after `retry_after_s`. `conflict`: somebody else was quicker."""

    def __init__(self, message: str, retry_after_s: float, *, conflict: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.conflict = conflict


class Stalled(Exception):  # noqa: N818  named by its consequence
    """Trying again changes nothing until a person acts; the message says what to do.

    `forbidden`: the API server's own words if it is a right that lacks, or a policy that refuses.
    """

    def __init__(self, message: str, *, forbidden: str = "") -> None:
        super().__init__(message)
        self.forbidden = forbidden


class Missing(Exception):  # noqa: N818  named by its consequence
    """The object that was meant is no longer there, or another one bears its name."""


class Cluster(Protocol):
    """The API server. Every method may raise Waiting or Stalled."""

    async def list(self, resource: Resource, *, namespace: str | None = None, label_selector: str = "") -> Listing:
        """Return all objects of a resource, in one namespace or (None) in all."""

    async def apply(self, manifest: Object) -> Object:
        """Create or change an object so that it says what the manifest says; return it as stored."""

    async def drop_data(self, ref: Ref, keys: Mapping[str, Sequence[str]]) -> None:
        """Remove entries from an object's maps, e.g. `{"data": ["note"]}`; Missing if the object is gone."""

    async def delete(self, ref: Ref) -> None:
        """Delete an object; one that is gone is fine."""

    async def apply_status(self, target: Object, status: Object) -> Object:
        """Write an object's status, nothing else; return the object as stored.

        Raises Missing if the object with that uid is gone.
        """

    async def end_switches(self, target: Object, names: Sequence[str]) -> Object:
        """Remove kill switches from a policy's status; return the object as stored.

        Raises Missing if the object is gone, or is no longer of the version that `target` has.
        """


class Leases(Protocol):
    """One lease. Every method may raise Waiting or Stalled."""

    async def read(self) -> Record | None:
        """Return the record; None if there is none."""

    async def write(self, record: Record, now: datetime) -> Record | None:
        """Store the record if the stored one is still of its version ("" = there is none); None if it is not."""


@dataclass(frozen=True, slots=True)
class AppliedRuleset:
    """What a limiter says of one ruleset."""

    revision: int
    digest: str
    rejected_revision: int | None = None
    rejected_error: str = ""


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """What a limiter says of one policy that it runs."""

    generation: int
    modes: Mapping[str, Mode]
    """By rule: what it does now, whatever the spec says; the stronger one where two versions of a rule run."""
    versions: frozenset[str] = frozenset()
    """Of its rules: each names the numbers of one and the requests that it sees."""
    unmatched_since_ms: int | None = None
    """Since when no request has matched it, by the limiter's clock; None = one has, or it cannot tell."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How often a limiter is asked at all; times are milliseconds of its own clock."""

    started_ms: int
    last_ms: int | None
    """When Envoy asked last; None = never since it started."""
    now_ms: int | None = None
    """When it said so; None = it did not tell, so nothing follows from it."""


@dataclass(frozen=True, slots=True)
class LimiterReport:
    """One limiter's answer to "what do you run?", or why there is none."""

    address: str
    instance: str = ""
    error: str = ""
    """Why nothing could be learned; empty when the rest is an answer."""
    rulesets: Mapping[str, AppliedRuleset] = field(default_factory=dict)
    """By ConfigMap name."""
    policies: Mapping[str, PolicyRun] = field(default_factory=dict)
    """By id (`namespace/name`)."""
    break_glass: Mapping[str, Mode] = field(default_factory=dict)
    """What the break-glass ConfigMap makes it cap, by `*`, `namespace/policy` or `namespace/policy/rule`."""
    counts: Mapping[RuleKey, RuleCounts] = field(default_factory=dict, compare=False)
    """What its rules did; changes with every request, too."""
    break_glass_error: str = ""
    """Why it cannot read that; it keeps what it read last."""
    ready: bool = True
    """Whether it decides; else it starts or drains."""
    asked: Asked | None = field(default=None, compare=False)
    """None = it does not say. Changes with every request, so reports that differ in nothing else are the same."""
    store_down: bool = False
    """Whether the rules' failure modes decide instead of their counters."""
    store_faults: tuple[str, ...] = ()
    """What its checks of the store found wrong, and what to do about each."""

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self.instance or self.address


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event on an object. It is told once for each `key` (default: the note), also by another process."""

    target: Object
    reason: str
    """One word in PascalCase, for programs."""
    action: str
    """What was done, in PascalCase."""
    note: str
    """For people. Never a secret."""
    warning: bool = False
    key: str = ""


class Events(Protocol):
    """Where Events go. Never raises and never waits: an Event may be lost, a turn may not."""

    def announce(self, announcement: Announcement) -> None:
        """Queue an Event."""


class Limiters(Protocol):
    """The limiters of one gateway."""

    async def read(self) -> tuple[LimiterReport, ...]:
        """Ask all of them, in their settings' order; never raises."""


class Clock(Protocol):
    """Both clocks that the loop needs."""

    def now(self) -> datetime:
        """Return the wall clock, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
