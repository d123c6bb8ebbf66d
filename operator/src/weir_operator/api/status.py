# SPDX-License-Identifier: Apache-2.0
"""The status of the custom resources: what the operator and people write there, and what an object starts with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weir_operator.api.interventions import MAX_ENTRIES, ApprovalEntry, KillSwitchEntry
from weir_operator.api.rollout_status import RuleStatus
from weir_operator.api.types import ApiModel, as_map
from weir_operator.domain.conditions import ConditionType, Reason, Status
from weir_operator.domain.limits import Mode

INITIAL_STATUS = {
    "conditions": [
        {
            "type": str(ConditionType.READY),
            "status": str(Status.UNKNOWN),
            "reason": str(Reason.PENDING),
            "message": "No operator has looked at this object yet",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ]
}
"""What the API server gives a new object: without any status, tools would count it as ready."""


class StatusCondition(ApiModel):
    """A Kubernetes condition."""

    type: Annotated[str, Field(pattern=r"^[A-Za-z]+$", max_length=63)]
    """Which condition."""
    status: Status
    """Whether it holds."""
    reason: Annotated[str, Field(pattern=r"^[A-Za-z]+$", max_length=63)]
    """Why, for programs."""
    message: Annotated[str, Field(max_length=32768)]
    """Why, for people."""
    observed_generation: int | None = Field(default=None, ge=0)
    """The generation of the object that this is about."""
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """Since when `status` has been the same."""


class ObjectStatus(ApiModel):
    """What the operator found and did."""

    observed_generation: int | None = Field(default=None, ge=0)
    """The newest generation that the operator has judged."""
    conditions: tuple[StatusCondition, ...] = Field(default=(), max_length=16, json_schema_extra=as_map("type"))
    """Accepted, Programmed, Ready, of policies Enforcing; Reconciling and Stalled only while True."""


class RateLimitPolicyStatus(ObjectStatus):
    """What the operator found and did."""

    limiters: str | None = Field(default=None, max_length=32)
    """How many of the gateway's limiters run this generation, like `2/2`."""
    mode: Mode | None = None
    """The mode that is in force."""
    rule_count: int | None = Field(default=None, ge=0)
    """How many rules are in force."""
    would_reject: str | None = Field(default=None, max_length=8)
    """The largest share of requests that any rule's newest version would refuse, or refuses."""
    rules: tuple[RuleStatus, ...] = Field(default=(), max_length=16, json_schema_extra=as_map("name"))
    """Where each rule stands."""
    observed_interventions: str | None = Field(default=None, max_length=64)
    """Names the content of `killSwitches` and `approvals` that the operator has judged, as `observedGeneration` does
    for the spec; absent while there is none. The same status says how many limiters run what follows from it."""
    kill_switches: dict[str, KillSwitchEntry] | None = Field(default=None, max_length=MAX_ENTRIES)
    """Written by people, never by the operator: what is switched off now, by the rule's name, or "*" for all rules.
    Only the weakest of spec, switch and break glass counts."""
    approvals: dict[str, ApprovalEntry] | None = Field(default=None, max_length=MAX_ENTRIES)
    """Written by people, never by the operator: rules that were promoted by hand, by the rule's name."""


class RateLimitOverrideStatus(ObjectStatus):
    """What the operator found and did."""
