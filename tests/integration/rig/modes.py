# SPDX-License-Identifier: Apache-2.0
"""One rule for each failure mode, and what an answer to a request that it covers means."""

from __future__ import annotations

from enum import StrEnum

from rig.documents import document, limit, policy, rule
from rig.envoy import Answer

BUDGET = 20  # of each subject, for an hour: nothing comes back while a test runs
LIMITERS = 2  # that the ruleset speaks of, however many the test starts
SHARE = BUDGET // LIMITERS


class Mode(StrEnum):
    """What a rule's `onStoreFailure` says, in small letters; also the rule's name, and the first part of its paths."""

    OPEN = "open"
    CLOSED = "closed"
    LOCAL = "local"


class Outcome(StrEnum):
    """What became of a request; the decided and undecided ones are named as in the limiter's `weir_requests_total`."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    OPEN = "open"
    CLOSED = "closed"
    LOCAL = "local"
    LOCAL_REFUSED = "refused by the share"
    ODD = "odd"  # an answer that no mode allows
    UNANSWERED = "unanswered"  # no answer at all: Envoy's own failure mode


UNDECIDED = {
    Mode.OPEN: (Outcome.OPEN,), Mode.CLOSED: (Outcome.CLOSED,), Mode.LOCAL: (Outcome.LOCAL, Outcome.LOCAL_REFUSED),
}  # fmt: skip
"""What requests get that the store did not decide."""


def outcome_of(answer: Answer) -> Outcome:
    """What an answer means; `ODD` unless it is exactly what its kind must be."""
    match answer.headers.get("x-ratelimit-mode"), answer.status:
        case None, 200 | 429 if "ratelimit" in answer.headers:
            return Outcome.ALLOWED if answer.allowed else Outcome.REFUSED
        case "local", 200 | 429 if "ratelimit" in answer.headers:
            return Outcome.LOCAL if answer.allowed else Outcome.LOCAL_REFUSED
        case "open", 200 if len(answer.headers) == 1:
            return Outcome.OPEN
        case None, 503 if (answer.headers["retry-after"], answer.problem["code"]) == ("1", "limiter_unavailable"):
            return Outcome.CLOSED
    return Outcome.ODD


def rules() -> bytes:
    """For each mode one rule that fails that way, on paths of its own."""
    return document(
        *(
            policy(
                rule(mode, limit=limit(BUDGET, period_s=3600), onStoreFailure=mode.capitalize()), id=f"faults/{mode}",
                match={"hosts": [], "routes": [{"path": f"/{mode}/*", "methods": []}]},
            )
            for mode in sorted(Mode)
        ),
        limiters=LIMITERS,
    )  # fmt: skip
