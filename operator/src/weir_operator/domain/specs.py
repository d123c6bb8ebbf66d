# SPDX-License-Identifier: Apache-2.0
"""What users asked for, in domain terms: their defaults filled in, their raw values not yet hashed or checked.

`api` makes these from custom resources, `compiler` turns them into the wire types of `ruleset`. Durations are
microseconds, times Unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir_operator.domain.limits import (
    Action,
    Algorithm,
    Calendar,
    Dialect,
    FailureMode,
    MissingKey,
    Mode,
    Scope,
    Share,
    Visibility,
)
from weir_operator.domain.problems import Problem
from weir_operator.domain.rollout_terms import PLAIN, RolloutTerms


@dataclass(frozen=True, slots=True)
class Meta:
    """Which object: the parts of its metadata that matter. `created_at` is in Unix seconds."""

    namespace: str
    name: str
    uid: str
    generation: int
    created_at: int

    @property
    def id(self) -> str:
        """`namespace/name`, unique among the objects of one kind."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """A path pattern with the methods it holds for; no methods = all."""

    path: str
    methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeaderSource:
    """The value of a request header."""

    name: str


@dataclass(frozen=True, slots=True)
class CookieSource:
    """The value of a cookie."""

    name: str


@dataclass(frozen=True, slots=True)
class QuerySource:
    """The first value of a query parameter."""

    name: str


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """A claim of the verified token, as the dotted text that the user wrote."""

    claim: str


@dataclass(frozen=True, slots=True)
class PathSource:
    """What a `{parameter}` of the route stands for in the request's path."""

    name: str


@dataclass(frozen=True, slots=True)
class PrincipalSource:
    """The peer of mutual TLS."""


@dataclass(frozen=True, slots=True)
class HostSource:
    """The request's host."""


@dataclass(frozen=True, slots=True)
class MethodSource:
    """The request's method."""


@dataclass(frozen=True, slots=True)
class ClientIPSource:
    """The client's address, cut to a network of this size."""

    ipv4_prefix: int = 32
    ipv6_prefix: int = 64


KeySource = (
    HeaderSource
    | CookieSource
    | QuerySource
    | ClientIPSource
    | ClaimSource
    | PrincipalSource
    | PathSource
    | HostSource
    | MethodSource
)


@dataclass(frozen=True, slots=True)
class AddressExemption:
    """Clients in one of these networks."""

    cidrs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderExemption:
    """Requests with one of these values (raw) in a header."""

    name: str
    values: tuple[str, ...]


Exemption = AddressExemption | HeaderExemption


@dataclass(frozen=True, slots=True)
class LimitSpec:
    """The numbers of a limit as they were written; None = left out."""

    requests: int
    period_us: int | None = None
    burst: int | None = None
    algorithm: Algorithm = Algorithm.TOKEN_BUCKET
    queue: int | None = None
    max_delay_us: int | None = None
    calendar: Calendar | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class PlansSpec:
    """Limits by plan; the plan's name is the value of `source`."""

    source: HeaderSource | ClaimSource
    limits: tuple[tuple[str, LimitSpec], ...]


@dataclass(frozen=True, slots=True)
class CostSpec:
    """What a request of this route costs."""

    route: RouteSpec
    cost: int


@dataclass(frozen=True, slots=True)
class StoreFailureSpec:
    """What happens while the store does not answer. `share` and `factor` (a decimal number) only with LOCAL."""

    mode: FailureMode = FailureMode.OPEN
    share: Share | None = None
    factor: str | None = None


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """One counter and its limit."""

    name: str
    limit: LimitSpec
    key: tuple[KeySource, ...] = ()
    on_missing_key: MissingKey = MissingKey.SKIP
    plans: PlansSpec | None = None
    cost: tuple[CostSpec, ...] = ()
    on_store_failure: StoreFailureSpec = StoreFailureSpec()
    visibility: Visibility = Visibility.PUBLIC
    code: str = "rate_limited"
    scope: Scope = Scope.REGION


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """The spec of a RateLimitPolicy. Empty `hosts` or `routes` = all."""

    rules: tuple[RuleSpec, ...]
    mode: Mode = Mode.SHADOW
    hosts: tuple[str, ...] = ()
    routes: tuple[RouteSpec, ...] = ()
    exempt: tuple[Exemption, ...] = ()
    headers: Dialect = Dialect.RATE_LIMIT
    documentation: str | None = None
    rollout: RolloutTerms = PLAIN


@dataclass(frozen=True, slots=True)
class SubjectValue:
    """Whom an override means by one source: the raw value, or already its SHA-256 in hexadecimal.

    `source` is what the user called it, be it a source's own name or a form like `cookie:sid`.
    """

    source: str
    value: str
    hashed: bool = False


@dataclass(frozen=True, slots=True)
class LimitPatch:
    """The numbers that a `Set` override replaces; None = stays."""

    requests: int | None = None
    period_us: int | None = None
    burst: int | None = None
    queue: int | None = None
    max_delay_us: int | None = None


@dataclass(frozen=True, slots=True)
class OverrideSpec:
    """The spec of a RateLimitOverride.

    Empty `rules` = all rules; `not_before` and `not_after` None = open end; `factor` as the text that was written.
    """

    policy: str
    subjects: tuple[tuple[SubjectValue, ...], ...]
    action: Action
    rules: tuple[str, ...] = ()
    limit: LimitPatch | None = None
    not_before: int | None = None
    not_after: int | None = None
    factor: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """A RateLimitPolicy as the compiler takes it.

    `gateway` is readable even when the rest is not; `spec` is what is wrong when it could not be parsed.
    """

    meta: Meta
    gateway: str
    spec: PolicySpec | tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class OverrideInput:
    """A RateLimitOverride as the compiler takes it; `policy` is the name it refers to ("" when unreadable)."""

    meta: Meta
    policy: str
    spec: OverrideSpec | tuple[Problem, ...]

    @property
    def policy_id(self) -> str:
        """The id of the policy it refers to, always in its own namespace."""
        return f"{self.meta.namespace}/{self.policy}"
