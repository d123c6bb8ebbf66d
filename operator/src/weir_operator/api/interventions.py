# SPDX-License-Identifier: Apache-2.0
"""What people write into a policy's status by hand: kill switches and approvals, in the words of the CRD.

Owns the entries' schema. The API server checks it on every write; `intervening` reads them all the same
without trust, because an older CRD, or none of ours, may have let something else through.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from weir_operator.api.types import ApiModel, Timestamp
from weir_operator.domain.limits import Mode

MAX_ENTRIES = 64  # a policy has at most 16 rules; entries of rules that are gone may stay for a while
MAX_REASON = 1024  # characters: a line for the incident's record

ONE_STATEMENT = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})
"""An entry has one owner under server-side apply: who takes a rule over replaces all that was said of it."""

By = Annotated[str, Field(max_length=1024)]
Why = Annotated[str, Field(max_length=MAX_REASON)]


class KillSwitchEntry(ApiModel):
    """Weakens one rule at once, whatever the spec says."""

    model_config = ONE_STATEMENT

    mode: Literal[Mode.SHADOW, Mode.DISABLED]
    """Disabled: the rule does nothing. Shadow: it counts, and refuses nobody. It never makes a rule stronger."""
    reason: Why | None = None
    """Why, for the record: stands in the Event and the log."""
    by: By | None = None
    """Who. The API server writes the caller's own name here, or refuses any other."""
    expires_at: Timestamp | None = None
    """When its effect ends, also without the operator. Left out: when the entry is removed."""


class ApprovalEntry(ApiModel):
    """Promotes one rule of one generation by hand."""

    model_config = ONE_STATEMENT

    generation: int = Field(ge=1)
    """The generation of the policy that was looked at; any other is not promoted."""
    by: By | None = None
    """Who. The API server writes the caller's own name here, or refuses any other."""
    reason: Why | None = None
    """Why, for the record."""
    at: Timestamp | None = None
    """When."""
