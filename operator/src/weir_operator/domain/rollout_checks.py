# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a policy's `rollout`: with itself, and with the rules that it is about."""

from __future__ import annotations

from collections.abc import Iterator

from weir_operator.domain.problems import Problem, did_you_mean, invalid
from weir_operator.domain.rollout_terms import OnChange, Promote, RolloutTerms
from weir_operator.domain.specs import PolicySpec

_PATH = "spec.rollout"


def check_rollout(spec: PolicySpec) -> Iterator[Problem]:
    """Every problem of the policy's rollout."""
    terms = spec.rollout
    yield from _check_words(terms)
    yield from _check_stages(terms)
    yield from _check_plans(spec)
    if terms.rollback is not None and terms.rollback.for_s < 1:
        yield invalid(f"{_PATH}.rollbackWhen.for", "is too short to judge by", "write at least 1s")


def _check_words(terms: RolloutTerms) -> Iterator[Problem]:
    immediate = terms.on_change is OnChange.IMMEDIATE
    if immediate and (terms.promote is not None or terms.stages):
        message = "enforces a change at once, so there is nothing to promote and no stage"
        yield invalid(f"{_PATH}.onChange", message, "write onChange: Shadow, or leave promote and stages out")
    given = {"after": terms.after_s, "minRequests": terms.min_requests, "maxWouldReject": terms.max_would_reject}
    if terms.promote is not Promote.AUTOMATIC:
        for name, value in given.items():
            if value is not None:
                yield invalid(f"{_PATH}.{name}", "means nothing without promote: Automatic", "leave it out")
    elif terms.after_s is None or terms.max_would_reject is None:
        message = "Automatic needs after and maxWouldReject: without them it would promote without evidence"
        yield invalid(f"{_PATH}.promote", message, 'write for instance after: 24h and maxWouldReject: "0.1%"')


def _check_stages(terms: RolloutTerms) -> Iterator[Problem]:
    reached = 0
    for index, stage in enumerate(terms.stages):
        path = f"{_PATH}.stages[{index}]"
        if reached == 100:  # noqa: PLR2004  percent
            yield invalid(path, "comes after a stage that already has everybody", "write percent: 100 last")
        elif stage.percent and stage.percent <= reached:
            yield invalid(f"{path}.percent", f"{stage.percent} is not above the {reached} before it", "let it rise")
        reached = max(reached, stage.percent)


def _check_plans(spec: PolicySpec) -> Iterator[Problem]:
    known = {name for rule in spec.rules if rule.plans for name, _ in rule.plans.limits}
    for index, stage in enumerate(spec.rollout.stages):
        for plan in stage.plans:
            if plan not in known:
                message = f'no rule of this policy has limits for the plan "{plan}"'
                yield invalid(f"{_PATH}.stages[{index}].plans", message, did_you_mean(plan, known))
