# SPDX-License-Identifier: Apache-2.0
"""Limits as users write them: a rule's own, and those of its plans.

The docstrings of fields are what `kubectl explain` and the reference page say.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from weir_operator.api.types import DURATION_FORM, ApiModel, Count, Duration, parse_duration_us, validations
from weir_operator.domain import specs
from weir_operator.domain.limits import MAX_LOGGED, MAX_QUEUE, Algorithm, Calendar

Queue = Annotated[int, Field(ge=0, le=MAX_QUEUE)]


def _shortest(field: str) -> tuple[str, str, str]:
    is_duration, value = f"self.{field}.matches(r'{DURATION_FORM}')", f"duration(self.{field})"
    return f"!has(self.{field}) || !{is_duration} || {value} >= duration('1ms')", "must be at least 1ms", f".{field}"


SHORTEST_PERIOD, SHORTEST_DELAY = _shortest("period"), _shortest("maxDelay")
_ANY_ALGORITHM = (
    (
        "has(self.period) || has(self.calendar)",
        "is required, except with algorithm FixedWindow and a calendar",
        ".period",
    ),
    ("!has(self.period) || !has(self.calendar)", "must not stand beside period", ".calendar"),
    ("!has(self.timeZone) || has(self.calendar)", "must only stand beside calendar", ".timeZone"),
    (
        "(has(self.queue) && self.queue > 0) == has(self.maxDelay)",
        "must be given with a queue above 0, and only then",
        ".maxDelay",
    ),
    SHORTEST_PERIOD,
    SHORTEST_DELAY,
)
_ALGORITHM = "(has({0}.algorithm) ? {0}.algorithm : 'TokenBucket')"
_OWN = _ALGORITHM.format("self")
_OWN_ALGORITHM = (
    (f"!has(self.burst) || {_OWN} == 'TokenBucket'", "must only be given with algorithm TokenBucket", ".burst"),
    (f"!has(self.queue) || {_OWN} == 'LeakyBucket'", "must only be given with algorithm LeakyBucket", ".queue"),
    (f"!has(self.calendar) || {_OWN} == 'FixedWindow'", "must only be given with algorithm FixedWindow", ".calendar"),
    (
        f"{_OWN} != 'SlidingWindowLog' || self.requests <= {MAX_LOGGED}",
        f"must be at most {MAX_LOGGED} with algorithm SlidingWindowLog",
        ".requests",
    ),
)

_RULE = _ALGORITHM.format("self.limit")
_PLANS = "!has(self.plans) || {0} || self.plans.limits.all(p, {1})"
PLAN_RULES = (
    (
        _PLANS.format(
            "false",
            f"!has(self.plans.limits[p].algorithm) || self.plans.limits[p].algorithm == {_RULE}",
        ),
        "must have the algorithm of the rule's limit in every plan; it can be left out there",
        ".plans.limits",
    ),
    (
        _PLANS.format(f"{_RULE} == 'TokenBucket'", "!has(self.plans.limits[p].burst)"),
        "must have burst only where the rule's limit is a TokenBucket",
        ".plans.limits",
    ),
    (
        _PLANS.format(f"{_RULE} == 'LeakyBucket'", "!has(self.plans.limits[p].queue)"),
        "must have queue only where the rule's limit is a LeakyBucket",
        ".plans.limits",
    ),
    (
        _PLANS.format(f"{_RULE} == 'FixedWindow'", "!has(self.plans.limits[p].calendar)"),
        "must have calendar only where the rule's limit is a FixedWindow",
        ".plans.limits",
    ),
    (
        _PLANS.format(f"{_RULE} != 'SlidingWindowLog'", f"self.plans.limits[p].requests <= {MAX_LOGGED}"),
        f"must allow at most {MAX_LOGGED} requests where the rule's limit is a SlidingWindowLog",
        ".plans.limits",
    ),
)
_MOST = "(has({0}.burst) ? {0}.burst : {0}.requests)"
_DEAREST = f"{_RULE} == 'LeakyBucket' ? c.cost <= {MAX_QUEUE} : c.cost <= "
COST_RULES = (
    (
        f"!has(self.cost) || self.cost.all(c, {_DEAREST}{_MOST.format('self.limit')})",
        "must not exceed what the limit can ever give (burst, or requests where there is none; "
        f"{MAX_QUEUE} for LeakyBucket): such a request could never pass",
        ".cost",
    ),
    (
        f"!has(self.cost) || !has(self.plans) || {_RULE} == 'LeakyBucket' || self.plans.limits.all(p, "
        f"self.cost.all(c, c.cost <= {_MOST.format('self.plans.limits[p]')}))",
        "must not exceed what the limit of any plan can ever give: such a request could never pass",
        ".cost",
    ),
)


class PlanLimit(ApiModel):
    """How much the requests of a plan are allowed."""

    model_config = ConfigDict(json_schema_extra=validations(*_ANY_ALGORITHM))

    algorithm: Algorithm | None = None
    """The algorithm of the rule's limit, which all plans share. Left out: the same."""
    requests: Count
    """How many requests per period or window."""
    period: Duration | None = None
    """A duration like `250ms`, `1s`, `5m` or `1h30m`. Required, except beside `calendar`."""
    burst: Count | None = None
    """TokenBucket: how many requests at once after a quiet time. Left out: as many as `requests`."""
    queue: Queue | None = None
    """LeakyBucket: how many requests may wait for their turn. Left out: none, and who comes too early is refused. More
    than 0 only on gateways whose setting `queueing.maxDelay` allows to hold requests."""
    max_delay: Duration | None = None
    """LeakyBucket with a queue: how long a request may wait; one that would wait longer is refused."""
    calendar: Calendar | None = None
    """FixedWindow, instead of `period`: the window is a Day, a Week (from Monday) or a Month of the time zone."""
    time_zone: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    """Beside `calendar`: a name of the IANA database, like `Europe/Berlin`. Left out: UTC."""

    def to_domain(self, default: Algorithm = Algorithm.TOKEN_BUCKET) -> specs.LimitSpec:
        """The same in domain terms; `default` is the algorithm where none is named."""
        return specs.LimitSpec(
            requests=self.requests,
            period_us=None if self.period is None else parse_duration_us(self.period),
            burst=self.burst,
            algorithm=self.algorithm or default,
            queue=self.queue,
            max_delay_us=None if self.max_delay is None else parse_duration_us(self.max_delay),
            calendar=self.calendar,
            time_zone=self.time_zone,
        )


class Limit(PlanLimit):
    """How much is allowed."""

    model_config = ConfigDict(json_schema_extra=validations(*_OWN_ALGORITHM, *_ANY_ALGORITHM))

    algorithm: Algorithm = Algorithm.TOKEN_BUCKET
    """TokenBucket: a bucket of `burst` tokens that is refilled evenly with `requests` tokens per `period`.
    LeakyBucket: requests leave evenly, one each `period`/`requests`; up to `queue` of them wait, each at most
    `maxDelay`. FixedWindow: `requests` in each window, `period` long (aligned to the Unix epoch) or a unit of the
    `calendar`. SlidingWindowCounter: `requests` in any `period`, estimated from two counters. SlidingWindowLog:
    `requests` in any `period`, exactly, for low limits like those of logins (at most 10,000). Another algorithm
    starts counting afresh; other numbers do not."""
