# SPDX-License-Identifier: Apache-2.0
"""One rule for each failure mode, and what an answer to a request that it covers means."""

from __future__ import annotations

from enum import StrEnum

from rig.documents import document, limit, policy, rule
from rig.envoy import Answer

BUDGET = 20  # of each subject, for an hour: nothing comes back while a test runs


class Mode(StrEnum):
    """What a rule's `onStoreFailure` says, in small letters; also the rule's name, and the first part of its paths."""

    OPEN = "open"
    CLOSED = "closed"


class Outcome(StrEnum):
    """What became of a request."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    OPEN = "open"
    CLOSED = "closed"
    ODD = "odd"  # an answer that no mode allows
    UNANSWERED = "unanswered"  # no answer at all: Envoy's own failure mode


UNDECIDED = {Mode.OPEN: Outcome.OPEN, Mode.CLOSED: Outcome.CLOSED}


def outcome_of(answer: Answer) -> Outcome:
    """What an answer means; `ODD` unless it is exactly what its kind must be."""
    if answer.headers == {"x-ratelimit-mode": "open"} and answer.allowed:
        return Outcome.OPEN
    if "ratelimit" in answer.headers and "x-ratelimit-mode" not in answer.headers:
        return Outcome.ALLOWED if answer.allowed else Outcome.REFUSED
    closed = answer.status == 503 and answer.headers.get("retry-after") == "1"
    return Outcome.CLOSED if closed and answer.problem["code"] == "limiter_unavailable" else Outcome.ODD


def rules() -> bytes:
    """For each mode one rule that fails that way, on paths of its own."""
    return document(
        *(
            policy(
                rule(mode, limit=limit(BUDGET, period_s=3600), onStoreFailure=mode.capitalize()), id=f"faults/{mode}",
                match={"hosts": [], "routes": [{"path": f"/{mode}/*", "methods": []}]},
            )
            for mode in sorted(Mode)
        )
    )  # fmt: skip
