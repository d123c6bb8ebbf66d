# SPDX-License-Identifier: Apache-2.0
"""Sliding window log: the time of every admitted unit, so that no interval of one period ever holds too many."""

from __future__ import annotations

from dataclasses import dataclass, replace

from model.limit import NEVER, Said, later


@dataclass(frozen=True, slots=True)
class LogRecord:
    """The times of the units, oldest first, that were inside the period at the last charge; and that period."""

    at_us: int
    period_us: int
    entries: tuple[int, ...]

    @property
    def ends_us(self) -> int:
        """When none of them is inside any more."""
        return self.at_us + self.period_us


@dataclass(frozen=True, slots=True)
class SlidingWindowLog:
    """`requests` in any `period_us`."""

    requests: int
    period_us: int

    def ask(self, record: LogRecord | None, cost: int, now_us: int) -> Said:
        """See Limit."""
        inside = self._inside(record, now_us)
        ok = cost == 0 or len(inside) + cost <= self.requests
        wait_us = 0
        if not ok:
            # Until so many have left that the cost fits.
            leaving = len(inside) + cost - self.requests
            wait_us = NEVER if cost > self.requests else inside[leaving - 1] + self.period_us - now_us
        reset_us = inside[-1] + self.period_us - now_us if inside else 0
        return Said(ok, max(0, self.requests - len(inside)), wait_us, reset_us)

    def charge(self, record: LogRecord | None, cost: int, now_us: int) -> LogRecord:
        """See Limit."""
        at_us = later(now_us, record)
        return LogRecord(at_us, self.period_us, (*self._inside(record, now_us), *[at_us] * cost))

    def refund(
        self,
        record: LogRecord,
        cost: int,
        owed_before: int,  # noqa: ARG002
        charged_at_us: int,
        now_us: int,  # noqa: ARG002
    ) -> LogRecord | None:
        """See Limit. As many units of that time as the call had, if they are still there."""
        entries = list(record.entries)
        for _ in range(min(cost, entries.count(charged_at_us))):
            entries.remove(charged_at_us)
        return replace(record, entries=tuple(entries)) if entries else None

    def _inside(self, record: LogRecord | None, now_us: int) -> tuple[int, ...]:
        if record is None or now_us >= record.ends_us:
            return ()
        return tuple(entry for entry in record.entries if entry > later(now_us, record) - self.period_us)
