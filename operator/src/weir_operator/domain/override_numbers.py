# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the numbers that an override makes of a rule's: in every plan, with every cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from weir_operator.domain.algorithms import CalendarWindow, LeakyBucket, Limit, TokenBucket, check_limit
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limit_checks import check_holding
from weir_operator.domain.limits import MAX_FACTOR_MILLI, MIN_FACTOR_MILLI
from weir_operator.domain.overriding import NewLimit, multiplied
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.ruleset import Rule, limits_of

_FACTOR = re.compile(r"([0-9]{1,4})(?:\.([0-9]{1,3}))?")
_API_NAMES = {"period_us": "period", "max_delay_us": "maxDelay"}

Change = NewLimit | int
"""New numbers, or a factor in thousandths."""


def parse_factor(text: str, path: str = "spec.factor") -> int | Problem:
    """The factor in thousandths."""
    match = _FACTOR.fullmatch(text)
    milli = int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0")) if match else 0
    if MIN_FACTOR_MILLI <= milli <= MAX_FACTOR_MILLI:
        return milli
    return invalid(path, f'"{text[:32]}" is no factor', 'write a number from "0.001" to "1000", like "2.5"')


def check_numbers(change: Change, rules: Iterable[Rule], gateway: Gateway | None) -> list[Problem]:
    """What is wrong with the numbers that `change` makes of those of `rules`, in every plan.

    Without a gateway it does not matter for how long one holds requests.
    """
    problems: list[Problem] = []
    for rule in rules:
        dearest = max((entry.cost for entry in rule.cost), default=1)
        for plan, limit in limits_of(rule):
            where = f'with rule "{rule.name}"' + (f' and plan "{plan}"' if plan else "")
            if isinstance(change, int):
                problems += _check_product(multiplied(limit, change), dearest, where)
            else:
                problems += _check_new(change, limit, dearest, where, gateway)
    return problems


def _check_new(new: NewLimit, limit: Limit, dearest: int, where: str, gateway: Gateway | None) -> Iterator[Problem]:
    # Of queue: 0 the longest wait of 0 only follows, which the user need not have written.
    derived = {"max_delay_us"} if new.queue == 0 and new.max_delay_us == 0 else set()
    foreign = [attribute for attribute in new.foreign(limit) if attribute not in derived]
    kind = f"calendar windows ({limit.calendar})" if isinstance(limit, CalendarWindow) else limit.algorithm
    for attribute in foreign:
        path = f"spec.limit.{_API_NAMES.get(attribute, attribute)}"
        hint = "leave it out, or list in spec.rules only rules that have it"
        yield invalid(path, f"{where}, which counts by {kind}, means nothing", hint)
    if foreign:
        return
    changed = new.over(limit)
    if isinstance(changed, LeakyBucket) and changed.queue > 0 and changed.max_delay_us == 0:
        yield invalid("spec.limit.maxDelay", f"{where}, is missing", "say how long a request may wait in the queue")
    if isinstance(changed, LeakyBucket) and changed.queue == 0 and changed.max_delay_us > 0:
        yield invalid(
            "spec.limit.maxDelay", f"{where}, means nothing without a queue", "leave it out, or write a queue"
        )
    for found in _check_result(changed, dearest, gateway):
        yield invalid(found.path, f"{where}, {found.message}", found.hint)


def _check_product(product: Limit, dearest: int, where: str) -> Iterator[Problem]:
    """How long requests may wait is not asked: a factor leaves that as the rule has it."""
    found = check_limit(product, "spec.limit")
    too_large = bool(found) or isinstance(product, LeakyBucket)
    hint = f"write a {'smaller' if too_large else 'larger'} factor, or leave this rule out of spec.rules"
    for problem in found or _check_cost(product, dearest):
        number = problem.path.rpartition(".")[2]
        yield invalid("spec.factor", f"{where}, it makes {number} {getattr(product, number)}: {problem.message}", hint)


def _check_result(limit: Limit, dearest: int, gateway: Gateway | None) -> Iterator[Problem]:
    found = check_limit(limit, "spec.limit")
    yield from found
    yield from check_holding(limit, "spec.limit", gateway) if gateway else ()
    if not found:
        yield from _check_cost(limit, dearest)


def _check_cost(limit: Limit, dearest: int) -> Iterator[Problem]:
    if dearest <= limit.largest_cost:
        return
    message = f"the dearest request costs {dearest}, and the limit can give at most {limit.largest_cost}"
    match limit:
        case TokenBucket():
            yield invalid("spec.limit.burst", message, f"write at least {dearest}")
        case LeakyBucket():
            yield invalid("spec.limit.queue", message, "write a smaller one")
        case _:
            yield invalid("spec.limit.requests", message, f"write at least {dearest}")
