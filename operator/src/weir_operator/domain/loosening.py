# SPDX-License-Identifier: Apache-2.0
"""Whether one version of a rule can only admit more than another: such a change needs no rollout.

Errs on the side of no: what is not plainly looser is a change like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir_operator.domain.algorithms import (
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    Limit,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)
from weir_operator.domain.limits import FailureMode, MissingKey
from weir_operator.domain.ruleset import Rule

_GROWING: Mapping[type[Limit], tuple[str, ...]] = {
    TokenBucket: ("requests", "burst"),
    LeakyBucket: ("requests", "queue", "max_delay_us"),
    FixedWindow: ("requests",),
    CalendarWindow: ("requests",),
    SlidingWindowCounter: ("requests",),
    SlidingWindowLog: ("requests",),
}
_SHAPE = ("period_us", "calendar", "time_zone")


def only_admits_more(new: Rule, old: Rule) -> bool:
    """Whether no request that `old` allows would be refused by `new`, with the same counters."""
    return (
        new.key == old.key
        and new.scope == old.scope
        and new.cost == old.cost
        and new.on_missing_key in {old.on_missing_key, MissingKey.SKIP}
        and _fails_as_mildly(new, old)
        and _plans_are_looser(new, old)
    )


def _fails_as_mildly(new: Rule, old: Rule) -> bool:
    same = (new.on_store_failure, new.local_factor_milli) == (old.on_store_failure, old.local_factor_milli)
    return same or new.on_store_failure is FailureMode.OPEN


def _plans_are_looser(new: Rule, old: Rule) -> bool:
    """Whether each request's limit is, be it of its plan or the rule's own."""
    if new.plans is not None and old.plans is not None and new.plans.source != old.plans.source:
        return False
    new_limits = new.plans.limits if new.plans is not None else {}
    old_limits = old.plans.limits if old.plans is not None else {}
    pairs = [(new.limit, old.limit)]
    pairs += [
        (new_limits.get(name, new.limit), old_limits.get(name, old.limit)) for name in {**new_limits, **old_limits}
    ]
    return all(_is_looser(after, before) for after, before in pairs)


def _is_looser(new: Limit, old: Limit) -> bool:
    return (
        type(new) is type(old)
        and all(getattr(new, name, None) == getattr(old, name, None) for name in _SHAPE)
        and all(getattr(new, name) >= getattr(old, name) for name in _GROWING[type(new)])
    )
