# SPDX-License-Identifier: Apache-2.0
"""RateLimitOverride as users write it.

The docstrings of fields are what `kubectl explain` and the reference page say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from weir_operator.api.limits import SHORTEST_DELAY, SHORTEST_PERIOD, Queue
from weir_operator.api.types import (
    AS_SET,
    FACTOR_RANGE,
    ApiModel,
    Count,
    Duration,
    Factor,
    ObjectName,
    RuleName,
    SubjectText,
    Timestamp,
    parse_duration_us,
    parse_time_s,
    validations,
)
from weir_operator.domain import specs
from weir_operator.domain.limits import Action

_TIMES = "must have exactly one of expiresAt and permanent: true"


class PolicyRef(ApiModel):
    """A policy of the same namespace."""

    name: ObjectName
    """The RateLimitPolicy's name."""


class NewLimit(ApiModel):
    """Numbers instead of the rule's."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            **validations(SHORTEST_PERIOD, SHORTEST_DELAY),
        }
    )

    requests: Count | None = None
    """Instead of the rule's, or its plan's. Left out: stays."""
    period: Duration | None = None
    """Instead of the rule's, or its plan's. Left out: stays."""
    burst: Count | None = None
    """TokenBucket only: instead of the rule's, or its plan's. Left out: stays, also where the rule takes it from
    `requests`."""
    queue: Queue | None = None
    """LeakyBucket only: instead of the rule's, or its plan's. Left out: stays."""
    max_delay: Duration | None = None
    """LeakyBucket only: instead of the rule's, or its plan's. Left out: stays."""

    def to_domain(self) -> specs.LimitPatch:
        """The same in domain terms."""
        period_us = None if self.period is None else parse_duration_us(self.period)
        max_delay_us = None if self.max_delay is None else parse_duration_us(self.max_delay)
        return specs.LimitPatch(self.requests, period_us, self.burst, self.queue, max_delay_us)


class RateLimitOverrideSpec(ApiModel):
    """An exception from a policy for some of its subjects, usually for some time."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            ("has(self.expiresAt) != (has(self.permanent) && self.permanent)", _TIMES, ""),
            ("(self.action == 'Set') == has(self.limit)", "must be given with action Set, and only then", ".limit"),
            (
                "(self.action == 'Multiply') == has(self.factor)",
                "must be given with action Multiply, and only then",
                ".factor",
            ),
            FACTOR_RANGE,
            (
                "!has(self.startsAt) || !has(self.expiresAt) || self.startsAt < self.expiresAt",
                "must be before expiresAt",
                ".startsAt",
            ),
        )
    )

    policy_ref: PolicyRef
    """The policy that this is an exception from, in the same namespace."""
    rules: tuple[RuleName, ...] = Field(default=(), max_length=16, json_schema_extra=AS_SET)
    """Which of the policy's rules. Empty: every rule whose key the subjects fit."""
    subjects: tuple[Annotated[dict[str, SubjectText], Field(min_length=1, max_length=8)], ...] = Field(
        min_length=1, max_length=64, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Whom it is for. Each entry gives values of the rule's key by the source's name: a header's, cookie's, query
    parameter's, path parameter's or claim's own name, or `clientIP` (one address), `principal`, `host`, `method`. Where
    several sources have one name, or it is one of those four words, write the kind before it: `cookie:sid`,
    `header:host`. What is not named may be anything. A value is the text itself or `{sha256: …}`."""
    action: Action
    """Set: `limit` replaces the rule's numbers. Multiply: requests, burst and queue times `factor`. Exempt: the rule
    does not apply. Block: every request is refused."""
    limit: NewLimit | None = None
    """The numbers for action Set."""
    factor: Factor | None = None
    """The factor for action Multiply, in quotes: above 0, at most 1000, up to three decimals, like `"2.5"`. Results are
    rounded down, to at least 1 (queue: 0)."""
    starts_at: Timestamp | None = None
    """From when on it holds, in RFC 3339. Left out: at once."""
    expires_at: Timestamp | None = None
    """When it ends, in RFC 3339, to the second, also when the operator is down. Required unless permanent."""
    permanent: bool | None = None
    """It never ends. Required unless it expires."""
    reason: Annotated[str, Field(max_length=256)] | None = None
    """Why, for people."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.expires_at is not None) == (self.permanent is True):
            raise PydanticCustomError("times", _TIMES)
        return self

    def to_domain(self) -> specs.OverrideSpec:
        """The same in domain terms."""
        return specs.OverrideSpec(
            policy=self.policy_ref.name,
            subjects=tuple(
                tuple(replace(value, source=source) for source, value in subject.items()) for subject in self.subjects
            ),
            action=self.action,
            rules=self.rules,
            limit=None if self.limit is None else self.limit.to_domain(),
            not_before=None if self.starts_at is None else parse_time_s(self.starts_at),
            not_after=None if self.expires_at is None else parse_time_s(self.expires_at),
            factor=self.factor,
        )
