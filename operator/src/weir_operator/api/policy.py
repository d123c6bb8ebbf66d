# SPDX-License-Identifier: Apache-2.0
"""RateLimitPolicy as users write it.

The docstrings of fields are what `kubectl explain` and the reference page say.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from weir_operator.api.limits import COST_RULES, PLAN_RULES, Limit, PlanLimit
from weir_operator.api.rollout import Rollout
from weir_operator.api.sources import KeySource, PlanSource
from weir_operator.api.types import (
    AS_SET,
    FACTOR_RANGE,
    SERVER_DEFAULT,
    ApiModel,
    Cidr,
    Factor,
    HeaderName,
    HeaderValue,
    Host,
    Method,
    ObjectName,
    Path,
    RuleName,
    as_map,
    exactly_one,
    validations,
)
from weir_operator.domain import specs
from weir_operator.domain.limits import MAX_COUNT, Dialect, FailureMode, MissingKey, Mode, Scope, Share, Visibility
from weir_operator.domain.rollout_terms import PLAIN


class Route(ApiModel):
    """Requests by path and method."""

    path: Path
    """Exact (`/v1/exports`), everything from a segment on (`/v1/*`), or a template (`/v1/orgs/{org}/*`, where
    `{org}` is any one segment). Compared without regard to case with the normalised path: decoded, without
    query, dot segments, doubled or trailing slashes."""
    methods: tuple[Method, ...] = Field(default=(), max_length=16, json_schema_extra=AS_SET)
    """HTTP methods in upper case; `GET` covers `HEAD`, and requests are compared without case. Empty: every method."""

    def to_domain(self) -> specs.RouteSpec:
        """The same in domain terms."""
        return specs.RouteSpec(self.path, self.methods)


class Match(ApiModel):
    """Which requests a policy sees."""

    hosts: tuple[Host, ...] = Field(default=(), max_length=64, json_schema_extra=AS_SET)
    """Host names in lower case and without port, exact or with one leftmost wildcard (`*.example.com`, which is
    not `example.com` itself). Empty: all hosts that the gateway lets the namespace use."""
    routes: tuple[Route, ...] = Field(default=(), max_length=64, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    """A request matches if one of these does. Empty: every request."""


class HeaderValues(ApiModel):
    """A header and values of it."""

    name: HeaderName
    """The header's name; case does not matter."""
    values: tuple[HeaderValue, ...] = Field(alias="in", min_length=1, max_length=64, json_schema_extra=AS_SET)
    """Values, compared exactly. They are hashed before they leave the operator."""


class Exemption(ApiModel):
    """Requests that are never limited and never counted."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            ("has(self.clientIP) != has(self.header)", "must have exactly one of clientIP and header", "")
        )
    )

    client_ip: tuple[Cidr, ...] | None = Field(
        default=None,
        alias="clientIP",
        min_length=1,
        max_length=64,
        json_schema_extra=AS_SET
        | validations(
            (
                "self.all(c, isCIDR(c) && cidr(c) == cidr(c).masked())",
                'must be networks in CIDR notation without bits beyond the prefix, like "10.0.0.0/8"',
                "",
            )
        ),
    )
    """Clients in one of these networks, in CIDR notation."""
    header: HeaderValues | None = None
    """Requests with one of these values in a header."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        exactly_one(self, "client_ip", "header")
        return self

    def to_domain(self) -> specs.Exemption:
        """The same in domain terms."""
        if self.header is not None:
            return specs.HeaderExemption(self.header.name, self.header.values)
        return specs.AddressExemption(self.client_ip or ())


class Plans(ApiModel):
    """Other limits for some plans."""

    source: PlanSource = Field(alias="from")
    """Where a request's plan is read from."""
    limits: dict[Annotated[str, StringConstraints(min_length=1, max_length=253)], PlanLimit] = Field(
        min_length=1, max_length=32
    )
    """The limit of each plan, by its name. A request without a listed plan gets the rule's `limit`."""


class Cost(ApiModel):
    """What some requests cost."""

    match: Route
    """The requests."""
    cost: int = Field(ge=0, le=MAX_COUNT)
    """How many requests such a request counts as; 0: it is free."""


class StoreFailure(ApiModel):
    """What happens while the store does not answer."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            (
                "!has(self.share) || (has(self.mode) && self.mode == 'Local')",
                "must only be given with mode Local",
                ".share",
            ),
            (
                "!has(self.factor) || (has(self.share) && self.share == 'Full')",
                "must only be given with share Full, which it multiplies",
                ".factor",
            ),
            FACTOR_RANGE,
        )
    )

    mode: FailureMode = FailureMode.OPEN
    """Open: requests pass unlimited and say so in a response header. Closed: they are refused with 503, also while the
    limiter itself gives no answer. Local: each limiter grants its share of the limit, counted in its own memory by the
    same algorithm."""
    share: Share | None = None
    """Local: Split divides the limit by the number of limiters that the operator reaches, so that together these grant
    no more than the whole; what is counted in whole requests is rounded down, but never below 1. Full grants the limit
    in each of them. Left out: Split."""
    factor: Factor | None = None
    """Beside share Full, in quotes: each limiter grants so many times the limit, like `"2"`; above 0, at most 1000, up
    to three decimals. Left out: once."""

    def to_domain(self) -> specs.StoreFailureSpec:
        """The same in domain terms."""
        return specs.StoreFailureSpec(self.mode, self.share, self.factor)


_NO_STORE = (
    "!has(self.scope) || self.scope != 'Instance' || !has(self.onStoreFailure) || !has(self.onStoreFailure.mode) || "
    "self.onStoreFailure.mode != 'Local'",
    "must not be Local with scope Instance, which needs no store",
    ".onStoreFailure.mode",
)


class Rule(ApiModel):
    """One limit with its own counters."""

    model_config = ConfigDict(json_schema_extra=validations(*PLAN_RULES, *COST_RULES, _NO_STORE))

    name: RuleName
    """Identifies the counters: renaming a rule starts afresh, reordering rules changes nothing. Clients see it."""
    key: tuple[KeySource, ...] = Field(default=(), max_length=8, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    """What is counted separately: requests with equal values of all these share a counter. Empty: all share one."""
    on_missing_key: MissingKey = MissingKey.SKIP
    """What to do with a request that lacks a part of the key (an empty value is a missing one). Skip: the rule does
    not apply. Share: all such requests share one counter. Deny: refused."""
    limit: Limit
    """How much is allowed for each key."""
    plans: Plans | None = None
    """Other limits for the requests of some plans."""
    cost: tuple[Cost, ...] = Field(default=(), max_length=16, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    """What a request costs; the first entry that matches counts. No match: 1."""
    on_store_failure: StoreFailure = StoreFailure()
    """What happens while the store does not answer."""
    visibility: Visibility = Visibility.PUBLIC
    """Public: clients see the budget in headers and the rule's name in refusals. Silent: they get a bare 429 with
    Retry-After and nothing else, which suits logins."""
    scope: Scope = Scope.REGION
    """Region: all limiters of the gateway count together, in their store. Instance: each limiter counts in its own
    memory, without the store; every one of them grants the whole limit."""
    code: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")] = "rate_limited"
    """The `code` in the body of a refusal, for programs."""

    def to_domain(self) -> specs.RuleSpec:
        """The same in domain terms."""
        return specs.RuleSpec(
            name=self.name,
            limit=self.limit.to_domain(),
            key=tuple(source.to_domain() for source in self.key),
            on_missing_key=self.on_missing_key,
            plans=self._plans(),
            cost=tuple(specs.CostSpec(entry.match.to_domain(), entry.cost) for entry in self.cost),
            on_store_failure=self.on_store_failure.to_domain(),
            visibility=self.visibility,
            code=self.code,
            scope=self.scope,
        )

    def _plans(self) -> specs.PlansSpec | None:
        if self.plans is None:
            return None
        algorithm = self.limit.algorithm
        limits = tuple((name, limit.to_domain(algorithm)) for name, limit in sorted(self.plans.limits.items()))
        return specs.PlansSpec(self.plans.source.to_domain(), limits)


class Response(ApiModel):
    """What clients are told."""

    headers: Dialect = Dialect.RATE_LIMIT
    """Which headers carry the budget on every response. RateLimit: `RateLimit` and `RateLimit-Policy` of the IETF
    draft. XRateLimit: `X-RateLimit-Limit`, `-Remaining`, and `-Reset` in seconds. XRateLimitEpoch: the same with the
    reset as a Unix time. None: none (in YAML, write it as the word None; it is not null)."""
    documentation: Annotated[str, StringConstraints(pattern=r"^https://[!-~]+$", max_length=2048)] | None = None
    """A link for people, sent with refusals."""


class RateLimitPolicySpec(ApiModel):
    """What is limited, and how."""

    gateway: ObjectName = Field(default="default", json_schema_extra={SERVER_DEFAULT: True})
    """The gateway whose limiters enforce this."""
    mode: Mode = Field(default=Mode.SHADOW, json_schema_extra={SERVER_DEFAULT: True})
    """Enforce: requests over a limit are refused. Shadow: all pass, and who would have been refused is counted.
    Disabled: the rules do nothing."""
    match: Match = Match()
    """Which requests this policy sees. Left out: all that the gateway lets the namespace use."""
    exempt: tuple[Exemption, ...] = Field(
        default=(), max_length=16, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Requests that are never limited and never counted by any rule below."""
    rules: tuple[Rule, ...] = Field(min_length=1, max_length=16, json_schema_extra=as_map("name"))
    """A request passes only if every rule that applies to it allows it; a refused request is charged nowhere."""
    response: Response = Response()
    """What clients are told."""
    rollout: Rollout | None = None
    """How a new rule, or a changed limit, comes into force in mode Enforce. Left out: it is enforced at once."""

    def to_domain(self) -> specs.PolicySpec:
        """The same in domain terms."""
        return specs.PolicySpec(
            rules=tuple(rule.to_domain() for rule in self.rules),
            mode=self.mode,
            hosts=self.match.hosts,
            routes=tuple(route.to_domain() for route in self.match.routes),
            exempt=tuple(entry.to_domain() for entry in self.exempt),
            headers=self.response.headers,
            documentation=self.response.documentation,
            rollout=PLAIN if self.rollout is None else self.rollout.to_domain(),
        )
