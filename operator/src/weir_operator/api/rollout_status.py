# SPDX-License-Identifier: Apache-2.0
"""`status.rules`: where each rule stands and what is known of it, in the words of the CRD.

The docstrings of fields are what `kubectl explain` and the reference page say; `rule_states` reads and writes them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weir_operator.api.types import ApiModel, RuleName, Timestamp, as_map
from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import Slot

MAX_RULE = 65_536  # characters of one rule's numbers: 32 plans and 16 costs need a tenth of it
Digest = Annotated[str, Field(max_length=12)]
Number = Annotated[int, Field(ge=0)]


class ActiveStatus(ApiModel):
    """The version that is enforced, or would be in mode Enforce."""

    generation: Number
    """Of the policy that brought it."""
    limit: Digest
    """Names its numbers."""
    slot: Slot | None = None
    """Which of the rule's two sets of counters it has; left out: the first."""
    rule: str | None = Field(default=None, max_length=MAX_RULE)
    """Its numbers, as the limiters get them, so that they can be enforced while the spec says others already."""


class RolledBackStatus(ApiModel):
    """That the new limit refused too many and fell back to shadow."""

    at: Timestamp
    """When."""
    stage: Number
    """In which stage."""
    generation: Number
    """Of the policy; a later one is a new attempt."""
    rejected: Annotated[str, Field(max_length=8)]
    """Which share of the requests it had refused."""
    approval: Digest | None = None
    """Names the approval that was there; another one is a new attempt."""


class CandidateStatus(ApiModel):
    """The version of the spec while it is not enforced for everybody."""

    limit: Digest
    """Names its numbers."""
    version: Digest
    """Names its numbers and the requests that it sees: what the evidence is about."""
    since: Timestamp
    """Since when there is evidence of it."""
    slot: Slot | None = None
    """Which of the rule's two sets of counters it has; left out: the first."""
    stage: Number = 0
    """Which stage it has reached; 0: it is in shadow."""
    stage_since: Timestamp | None = None
    """Since when."""
    promoted_by: str | None = Field(default=None, max_length=1024)
    """Who promoted it from shadow: a person, `evidence` or `Immediate`."""
    rolled_back: RolledBackStatus | None = None
    """That it fell back to shadow."""


class TopSubject(ApiModel):
    """A subject and how often it was, or would have been, refused."""

    subject: Annotated[str, Field(max_length=4096)]
    """Its key, as limiters show it: hashed if a header, cookie, query, claim or certificate is part of it."""
    count: Number
    """About how often, by what each limiter remembers of its most refused."""


class EvidenceStatus(ApiModel):
    """What the newest version did, or would have done; written when a person would see the difference."""

    version: Digest
    """Of the rule."""
    since: Timestamp
    """When counting began."""
    as_of: Timestamp
    """When these counts were taken."""
    requests: Number
    """How many it decided about."""
    would_reject: Number
    """How many of them it would have refused, but for shadow."""
    rejected: Number
    """How many of them it refused."""
    share: Annotated[str, Field(max_length=8)]
    """The share that is over the limit, refused or not."""
    subjects: Number = 0
    """At least how many subjects that concerns."""
    top: tuple[TopSubject, ...] = Field(default=(), max_length=10, json_schema_extra=as_map("subject"))
    """The subjects that it concerns most."""


class RuleStatus(ApiModel):
    """Where one rule stands."""

    name: RuleName
    """The rule."""
    mode: Mode
    """What the spec says."""
    effective_mode: Mode
    """What holds for requests that no stage takes out."""
    stage: Annotated[str, Field(max_length=16)]
    """`Enforced`, `Shadow`, `RolledBack`, or how far a rollout is, like `1/3`."""
    why: Annotated[str, Field(max_length=1024)]
    """Why it is there, and what it waits for."""
    active: ActiveStatus | None = None
    """The version that is enforced."""
    candidate: CandidateStatus | None = None
    """The version that is not, or not for everybody."""
    evidence: EvidenceStatus | None = None
    """What the newest version did so far."""
