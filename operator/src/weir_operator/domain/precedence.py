# SPDX-License-Identifier: Apache-2.0
"""Which of several overrides that fit one request wins, and who is told that they do not.

The order is total: the override whose subjects name more sources, then the newer, then the smaller id. The
limiter takes the first in this order whose time it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from weir_operator.domain.ruleset import Override, Subject


def in_order(overrides: Iterable[Override], created_at: Mapping[str, int]) -> tuple[Override, ...]:
    """`overrides` by precedence, the winner first. `created_at` gives Unix seconds by id."""
    return tuple(sorted(overrides, key=lambda override: (-_sources(override), -created_at[override.id], override.id)))


def outranked(ordered: Sequence[Override]) -> dict[str, tuple[str, ...]]:
    """Remarks, by override, on winners that have the very same subject and rule at a common time.

    A more specific override that wins for some of a subject's requests is what people expect and is not remarked.
    """
    taken: dict[tuple[str, str, tuple[Subject, ...]], list[Override]] = {}
    remarks: dict[str, dict[str, None]] = {}
    for override in ordered:
        for rule in override.rules:
            for subject in override.subjects:
                holders = taken.setdefault((override.policy, rule, subject), [])
                for winner in holders:
                    if _share_time(winner, override):
                        remark = f'for rule "{rule}" the newer override "{winner.id}" wins for a common subject'
                        remarks.setdefault(override.id, {})[remark] = None
                holders.append(override)
    return {override: tuple(found) for override, found in remarks.items()}


def _sources(override: Override) -> int:
    return max(len(subject) for subject in override.subjects)


def _share_time(one: Override, other: Override) -> bool:
    start = max(one.not_before or 0, other.not_before or 0)
    end = min(_end(one), _end(other))
    return start < end


def _end(override: Override) -> float:
    return math.inf if override.not_after is None else override.not_after
