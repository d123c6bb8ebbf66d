# SPDX-License-Identifier: Apache-2.0
"""`spec.rollout` as users write it.

The docstrings of fields are what `kubectl explain` and the reference page say.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from weir_operator.api.types import (
    AS_SET,
    DURATION_FORM,
    ApiModel,
    Count,
    Duration,
    exactly_one,
    parse_duration_us,
    validations,
)
from weir_operator.domain.rollout_terms import (
    PERCENT_FORM,
    OnChange,
    Promote,
    RollbackTerms,
    RolloutTerms,
    StageTerms,
    parse_percent,
)

US_PER_S = 1_000_000
Percentage = Annotated[str, StringConstraints(pattern=PERCENT_FORM, max_length=8)]
PlanName = Annotated[str, StringConstraints(min_length=1, max_length=253)]

_ON_CHANGE = "(has(self.onChange) ? self.onChange : 'Shadow')"
_AUTOMATIC = "has(self.promote) && self.promote == 'Automatic'"
_RULES = (
    (
        f"{_ON_CHANGE} == 'Shadow' || !has(self.promote) && !has(self.stages)",
        "must not have promote or stages with onChange Immediate, which enforces a change at once",
        ".onChange",
    ),
    *(
        (f"!has(self.{field}) || {_AUTOMATIC}", "must only be given with promote Automatic", f".{field}")
        for field in ("after", "minRequests", "maxWouldReject")
    ),
    (
        f"!({_AUTOMATIC}) || has(self.after) && has(self.maxWouldReject)",
        "must have after and maxWouldReject with promote Automatic, which else would promote without evidence",
        ".promote",
    ),
)


class Stage(ApiModel):
    """Who gets the new limit first."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            ("has(self.plans) != has(self.percent)", "must have exactly one of plans and percent", "")
        )
    )

    plans: tuple[PlanName, ...] | None = Field(default=None, min_length=1, max_length=32, json_schema_extra=AS_SET)
    """The requests of these plans, as the rule's `plans.from` names them."""
    percent: int | None = Field(default=None, ge=1, le=100)
    """So many percent of the subjects, chosen by a stable hash: who is in it once stays in it."""
    hold: Duration
    """How long the rollout stays in this stage before it goes on."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        exactly_one(self, "plans", "percent")
        return self

    def to_domain(self) -> StageTerms:
        """The same in domain terms."""
        return StageTerms(_seconds(self.hold), tuple(sorted(self.plans or ())), self.percent or 0)


class RollbackWhen(ApiModel):
    """When a limit that is being rolled out falls back to shadow."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            (
                f"!self.__for__.matches(r'{DURATION_FORM}') || duration(self.__for__) >= duration('1s')",
                "must be at least 1s",
                ".for",
            )
        )
    )

    rejected: Percentage
    """More than this share of the requests that the new limit decides were refused, like `"5%"`."""
    over: Duration = Field(alias="for")
    """Over this time; with fewer than 20 requests nothing is said."""


class Rollout(ApiModel):
    """How a new rule, or a changed limit, comes into force."""

    model_config = ConfigDict(json_schema_extra=validations(*_RULES))

    on_change: OnChange = OnChange.SHADOW
    """Shadow: the new limit counts in shadow beside the one that is still enforced, each with its own counters, until
    it is promoted. Immediate: it is enforced at once. A change that can only admit more (same algorithm, key and
    period, no number lower) is applied at once in any case. So are changes of `match`, `exempt` and `response`."""
    promote: Promote | None = None
    """Manual: a person promotes it with `weir promote`. Automatic: it is promoted when `after`, `minRequests` and
    `maxWouldReject` hold; a person may do it earlier, whatever the evidence. Left out: Manual."""
    after: Duration | None = None
    """Automatic: not before there is evidence of so long a time."""
    min_requests: Count | None = None
    """Automatic: not before the rule has seen so many requests. Left out: 1."""
    max_would_reject: Percentage | None = None
    """Automatic: only if it would have refused at most this share of them, in quotes, like `"0.1%"`."""
    stages: tuple[Stage, ...] = Field(default=(), max_length=8, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    """Who gets the new limit before everybody does, one stage after the other; who is in a stage stays in all that
    follow. Empty: everybody at once."""
    rollback_when: RollbackWhen | None = None
    """When the new limit falls back to shadow by itself. It is watched for in all stages and then, for everybody, ten
    times as long as `for` says; write a last stage of `percent: 100` for another time. Left out: never."""

    def to_domain(self) -> RolloutTerms:
        """The same in domain terms."""
        return RolloutTerms(
            on_change=self.on_change,
            promote=self.promote,
            after_s=None if self.after is None else _seconds(self.after),
            min_requests=self.min_requests,
            max_would_reject=None if self.max_would_reject is None else parse_percent(self.max_would_reject),
            stages=tuple(stage.to_domain() for stage in self.stages),
            rollback=self._rollback(),
        )

    def _rollback(self) -> RollbackTerms | None:
        if self.rollback_when is None:
            return None
        rejected = parse_percent(self.rollback_when.rejected)
        if rejected is None:  # the pattern has refused it
            raise AssertionError(self.rollback_when)
        return RollbackTerms(rejected, _seconds(self.rollback_when.over))


def _seconds(text: str) -> float:
    return parse_duration_us(text) / US_PER_S
