# SPDX-License-Identifier: Apache-2.0
"""Which changes can only admit more."""

from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.algorithms import FixedWindow, LeakyBucket, TokenBucket
from weir_operator.domain.limits import FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.loosening import only_admits_more
from weir_operator.domain.ruleset import Cost, Plans, Route, Rule
from weir_operator.domain.sources import HeaderKey

BUCKET = TokenBucket(10, 1_000_000, 20)
PLANS = Plans(HeaderKey("x-plan"), {"gold": TokenBucket(50, 1_000_000, 50)})
RULE = Rule(
    "a",
    Mode.ENFORCE,
    (HeaderKey("x-api-key"),),
    MissingKey.SHARE,
    BUCKET,
    PLANS,
    (),
    FailureMode.CLOSED,
    Visibility.PUBLIC,
    "rate_limited",
)


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"limit": replace(BUCKET, requests=11)},
        {"limit": replace(BUCKET, burst=21)},
        {
            "plans": replace(
                PLANS, limits={"gold": BUCKET, "silver": BUCKET} | {"gold": replace(BUCKET, burst=50, requests=50)}
            )
        },
        {"on_missing_key": MissingKey.SKIP},
        {"on_store_failure": FailureMode.OPEN},
        {"code": "another", "visibility": Visibility.SILENT},
    ],
)
def test_a_change_that_refuses_nobody_more_needs_no_rollout(changes: dict[str, Any]) -> None:
    """D45."""
    assert only_admits_more(replace(RULE, **changes), RULE)


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(
    "changes",
    [
        {"limit": replace(BUCKET, requests=9, burst=100)},
        {"limit": replace(BUCKET, burst=19)},
        {"limit": replace(BUCKET, period_us=999_999)},
        {"limit": FixedWindow(1000, 1_000_000)},
        {"limit": LeakyBucket(1000, 1_000_000, 0, 0)},
        {"key": ()},
        {"plans": None},
        {"plans": replace(PLANS, source=HeaderKey("x-tier"))},
        {"plans": replace(PLANS, limits={**PLANS.limits, "silver": replace(BUCKET, burst=1)})},
        {"on_missing_key": MissingKey.DENY},
        {"on_store_failure": FailureMode.LOCAL},
        {"cost": (Cost(Route("/", ()), 0),)},
    ],
)
def test_a_change_that_may_refuse_somebody_more_is_no_looser_one(changes: dict[str, Any]) -> None:
    """D45: also where most would be allowed more."""
    assert not only_admits_more(replace(RULE, **changes), RULE)
