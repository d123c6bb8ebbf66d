# SPDX-License-Identifier: Apache-2.0
"""Whether requests reach the limiters of a gateway at all, and each of its policies.

Owns the patience: what is new, or has just started, has had no time to be asked. Times are compared by the clock of the
limiter that tells them, so that neither a wrong clock nor a new operator changes the judgement. Must not word it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weir_operator.domain.gateways import Patience
from weir_operator.reconcile.ports import Asked, LimiterReport, PolicyRun


def unasked_since_ms(reports: Iterable[LimiterReport], patience: Patience) -> int | None:
    """Return since when no limiter has been asked; None if one has, if some cannot tell, or if it is too soon to say.

    Limiters that do not answer are left out: what is not known of them is another condition's business.
    """
    told = [report.asked for report in reports if not report.error]
    known = [asked for asked in told if asked is not None and asked.now_ms is not None]
    if not known or len(known) < len(told):
        return None
    recently = any(asked.last_ms is not None and _quiet_ms(asked) <= patience.unasked_ms for asked in known)
    listened = any(_quiet_ms(asked) > patience.unasked_ms for asked in known)
    return max(map(_quiet_from, known)) if listened and not recently else None


class Witness:
    """Remembers which policies requests have matched, so that limiters that restart do not take it back."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._seen: dict[str, frozenset[str]] = {}

    def unmatched_since_ms(self, policy_id: str, reports: Sequence[LimiterReport]) -> tuple[int | None, float | None]:
        """Return since when no request has matched a policy, and in how many seconds to ask again.

        The first is None if one has, also in a life of the limiters before this one, or if it is too soon to say; the
        second is None if time alone will not change the answer.
        """
        runs = [(report.asked, report.policies[policy_id]) for report in reports if policy_id in report.policies]
        if self._has_matched(policy_id, [run for _, run in runs]):
            return None, None
        waits_ms = [
            self._patience.unmatched_ms - (asked.now_ms - (run.unmatched_since_ms or 0))
            for asked, run in runs
            if asked is not None and asked.now_ms is not None
        ]
        if not waits_ms:
            return None, None
        if min(waits_ms) >= 0:
            return None, min(waits_ms) / 1000 + 1  # the clock that is asked has whole seconds
        return max(run.unmatched_since_ms or 0 for _, run in runs), None

    def _has_matched(self, policy_id: str, runs: Sequence[PolicyRun]) -> bool:
        seen = self._seen.get(policy_id, frozenset())
        matched = [run.versions for run in runs if run.unmatched_since_ms is None]
        if matched:
            self._seen[policy_id] = seen = frozenset().union(*matched)
        return bool(matched) or any(run.versions & seen for run in runs)


def _quiet_from(asked: Asked) -> int:
    return asked.started_ms if asked.last_ms is None else asked.last_ms


def _quiet_ms(asked: Asked) -> int:
    return 0 if asked.now_ms is None else asked.now_ms - _quiet_from(asked)
