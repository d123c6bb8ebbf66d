# SPDX-License-Identifier: Apache-2.0
"""What a limiter's status says that its rules did: the counts that evidence is added up from.

Silent about what it does not know: an entry without a version is of a limiter that is too old to give evidence.
"""

from __future__ import annotations

from weir_operator.domain.evidence import RuleCounts, RuleKey

MAX_TOP = 10


def parse_counts(entries: object) -> dict[RuleKey, RuleCounts]:
    """Return the counts of every version that runs."""
    found: dict[RuleKey, RuleCounts] = {}
    for entry in entries if isinstance(entries, list) else ():
        match entry:
            case {
                "policy": str(policy),
                "rule": str(rule),
                "version": str(version),
                "sinceMs": int(since_ms),
                "requests": int(requests),
                "wouldReject": int(would_reject),
                "rejected": int(rejected),
            }:
                key = RuleKey(policy, rule, entry.get("slot"), version)
                enforced = entry.get("enforced", requests)  # who does not say makes a rollback milder, not impossible
                top = _parse_top(entry.get("top"))
                subjects = _parse_subjects(entry.get("subjects"), len(top))
                found[key] = RuleCounts(since_ms, requests, would_reject, rejected, _count(enforced), subjects, top)
    return found


def _parse_top(entries: object) -> tuple[tuple[str, int], ...]:
    found = []
    for entry in entries if isinstance(entries, list) else ():
        match entry:
            case {"subject": str(subject), "count": int(count)}:
                found.append((subject, count))
    return tuple(found[:MAX_TOP])


def _parse_subjects(member: object, least: int) -> int:
    match member:
        case {"limited": int(limited)}:
            return limited
        case _:
            return least


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
