# SPDX-License-Identifier: Apache-2.0
"""The health check for Argo CD, run by the Lua that it is written for, over statuses as the operator writes them."""

from pathlib import Path
from typing import Any

import pytest
from lupa import lua51

from weir_operator.api.status import INITIAL_STATUS
from weir_operator.domain.conditions import Condition, ConditionType, Reason, Status

SCRIPT = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "argo-cd-health.lua"
TYPES = ConditionType


def health(obj: dict[str, Any]) -> tuple[str, str]:
    """What the script says of an object."""
    lua = lua51.LuaRuntime()
    lua.globals().obj = lua.table_from(obj, recursive=True)
    answer = lua.execute(SCRIPT.read_text())
    return answer.status, answer.message


def obj(*conditions: tuple[ConditionType, Status, Reason], generation: int = 2, observed: int = 2) -> dict[str, Any]:
    written = [Condition(*each, f"why {each[2]}", observed).to_document() for each in conditions]
    return {
        "metadata": {"generation": generation},
        "status": {"observedGeneration": observed, "conditions": written},
    }


ACCEPTED = (TYPES.ACCEPTED, Status.TRUE, Reason.ACCEPTED)
RUNS = (ACCEPTED, (TYPES.PROGRAMMED, Status.TRUE, Reason.PROGRAMMED), (TYPES.READY, Status.TRUE, Reason.READY))


def refused(reason: Reason) -> dict[str, Any]:
    return obj(
        (TYPES.ACCEPTED, Status.FALSE, reason),
        (TYPES.PROGRAMMED, Status.FALSE, Reason.NOT_ACCEPTED),
        (TYPES.READY, Status.FALSE, reason),
        (TYPES.STALLED, Status.TRUE, reason),
    )


def late(reason: Reason, beside: ConditionType = TYPES.RECONCILING) -> dict[str, Any]:
    return obj(
        ACCEPTED,
        (TYPES.PROGRAMMED, Status.FALSE, reason),
        (TYPES.READY, Status.FALSE, reason),
        (beside, Status.TRUE, reason),
    )


def policy(status: Status, reason: Reason) -> dict[str, Any]:
    return obj(*RUNS, (TYPES.ENFORCING, status, reason))


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"metadata": {"generation": 1}}, "Progressing"),
        ({"metadata": {"generation": 1}, "status": INITIAL_STATUS}, "Progressing"),
        (obj(*RUNS, generation=3), "Progressing"),
        (refused(Reason.INVALID), "Degraded"),
        (refused(Reason.UNKNOWN_GATEWAY), "Degraded"),
        (late(Reason.PROPAGATING), "Progressing"),
        (late(Reason.LIMITER_STALE), "Degraded"),
        (late(Reason.LIMITER_UNREACHABLE), "Degraded"),
        (late(Reason.LIMITER_REFUSED), "Degraded"),
        (late(Reason.RENDER_FAILED, TYPES.STALLED), "Degraded"),
        (late(Reason.NO_LIMITERS, TYPES.STALLED), "Degraded"),
        (policy(Status.TRUE, Reason.ENFORCING), "Healthy"),
        (policy(Status.TRUE, Reason.ROLLING_OUT), "Healthy"),
        (policy(Status.FALSE, Reason.SHADOW_MODE), "Healthy"),
        (policy(Status.FALSE, Reason.ROLLING_OUT), "Healthy"),
        (policy(Status.FALSE, Reason.NO_TRAFFIC_MATCHED), "Healthy"),
        (policy(Status.UNKNOWN, Reason.NOT_ASKED), "Healthy"),
        (policy(Status.FALSE, Reason.SWITCHED_OFF), "Suspended"),
        (policy(Status.FALSE, Reason.KILL_SWITCH), "Suspended"),
        (policy(Status.FALSE, Reason.BREAK_GLASS), "Suspended"),
        (policy(Status.FALSE, Reason.STORE_UNAVAILABLE), "Degraded"),
        (policy(Status.FALSE, Reason.DEGRADED), "Degraded"),
        (obj(*RUNS), "Healthy"),
        (obj(*RUNS[:2], (TYPES.READY, Status.TRUE, Reason.EXPIRED)), "Healthy"),
    ],
)
def test_argo_cd_sees_the_health_that_the_conditions_tell(seen: dict[str, Any], expected: str) -> None:
    status, message = health(seen)
    assert status == expected
    assert message == "Waiting for the operator" or ": why " in message
