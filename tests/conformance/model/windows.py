# SPDX-License-Identifier: Apache-2.0
"""Counts in windows: one window, by period or by calendar, and the estimate over two windows.

Windows of a period are aligned to the epoch, so that everybody agrees on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from model.limit import MAX_EXACT, NEVER, Said, StaleEdgesError, ceil_div, later


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """The count of the window in which the last charge was, and its end."""

    at_us: int
    count: int
    end_us: int

    @property
    def ends_us(self) -> int:
        """The end of the window."""
        return self.end_us


@dataclass(frozen=True, slots=True)
class CounterRecord:
    """The counts of the window of the last charge and of the one before it."""

    at_us: int
    current: int
    previous: int
    period_us: int

    @property
    def start_us(self) -> int:
        """Where the window of the last charge begins."""
        return self.at_us - self.at_us % self.period_us

    @property
    def ends_us(self) -> int:
        """When the window of the last charge is no longer the one before."""
        return self.start_us + 2 * self.period_us


class Window:
    """What windows by period and by calendar share; they differ in where a window begins and ends."""

    requests: int

    def window(self, time_us: int) -> tuple[int, int]:
        """The start (inclusive) and end (exclusive) of the window that contains a time."""
        raise NotImplementedError

    def present(self, record: WindowRecord | None, now_us: int) -> tuple[int, int]:
        """The window of a call."""
        return self.window(later(now_us, record))

    def ask(self, record: WindowRecord | None, cost: int, now_us: int) -> Said:
        """See Limit."""
        _, end_us = self.present(record, now_us)
        used = self._used(record, now_us)
        ok = cost == 0 or used + cost <= self.requests
        wait_us = 0 if ok else NEVER if cost > self.requests else end_us - now_us
        return Said(ok, max(0, self.requests - used), wait_us, end_us - now_us if used > 0 else 0)

    def charge(self, record: WindowRecord | None, cost: int, now_us: int) -> WindowRecord:
        """See Limit."""
        at_us = later(now_us, record)
        return WindowRecord(at_us, self._used(record, now_us) + cost, self.present(record, now_us)[1])

    def refund(
        self,
        record: WindowRecord,
        cost: int,
        owed_before: int,  # noqa: ARG002
        charged_at_us: int,
        now_us: int,  # noqa: ARG002
    ) -> WindowRecord | None:
        """See Limit. Only within the window of the charge."""
        try:
            _, end_us = self.window(charged_at_us)
        except StaleEdgesError:
            return record
        if record.at_us < charged_at_us or record.end_us != end_us:
            return record
        return replace(record, count=record.count - cost) if record.count > cost else None

    def _used(self, record: WindowRecord | None, now_us: int) -> int:
        if record is None or now_us >= record.end_us:
            return 0
        start_us, _ = self.present(record, now_us)
        return record.count if record.at_us >= start_us else 0


@dataclass(frozen=True, slots=True)
class FixedWindow(Window):
    """`requests` in each window of `period_us`."""

    requests: int
    period_us: int

    def window(self, time_us: int) -> tuple[int, int]:
        """Aligned to the epoch."""
        start_us = time_us - time_us % self.period_us
        return start_us, start_us + self.period_us


@dataclass(frozen=True, slots=True)
class CalendarWindow(Window):
    """`requests` in each day, week or month: `edges_us` are those of three in a row."""

    requests: int
    edges_us: tuple[int, int, int, int]

    def window(self, time_us: int) -> tuple[int, int]:
        """One of the three. Raises StaleEdgesError for a time outside them."""
        for start_us, end_us in zip(self.edges_us, self.edges_us[1:], strict=False):
            if start_us <= time_us < end_us:
                return start_us, end_us
        raise StaleEdgesError(time_us)

    def present(self, record: WindowRecord | None, now_us: int) -> tuple[int, int]:
        """Around now. A record that is ahead of the edges, as after a clock that went back, has its own end."""
        present = self.window(now_us)
        if record is None or record.at_us <= now_us:
            return present
        return self.window(record.at_us) if record.at_us < self.edges_us[-1] else (record.at_us, record.end_us)


@dataclass(frozen=True, slots=True)
class SlidingWindowCounter:
    """`requests` in the last `period_us`, estimated: this window, and of the one before what it still overlaps."""

    requests: int
    period_us: int

    def ask(self, record: CounterRecord | None, cost: int, now_us: int) -> Said:
        """See Limit."""
        seen = self._roll(record, now_us)
        elapsed_us, behind_us = seen.at_us - seen.start_us, seen.at_us - now_us
        used = seen.current + self._overlap(seen.previous, elapsed_us)
        ok = cost == 0 or used + cost <= self.requests
        wait_us = 0
        if not ok:
            wait_us = NEVER if cost > self.requests else behind_us + self._wait_us(seen, cost, elapsed_us)
        windows = 2 if seen.current > 0 else 1 if seen.previous > 0 else 0
        reset_us = seen.start_us + windows * self.period_us - now_us if windows else 0
        return Said(ok, max(0, self.requests - used), wait_us, reset_us)

    def charge(self, record: CounterRecord | None, cost: int, now_us: int) -> CounterRecord:
        """See Limit."""
        seen = self._roll(record, now_us)
        return replace(seen, current=seen.current + cost)

    def refund(
        self,
        record: CounterRecord,
        cost: int,
        owed_before: int,  # noqa: ARG002
        charged_at_us: int,
        now_us: int,  # noqa: ARG002
    ) -> CounterRecord | None:
        """See Limit. From the window of the charge, while it is one of the two."""
        previous_start_us = record.start_us - record.period_us
        if record.at_us < charged_at_us or record.period_us != self.period_us or charged_at_us < previous_start_us:
            return record
        if charged_at_us >= record.start_us:
            left = replace(record, current=max(0, record.current - cost))
        else:
            left = replace(record, previous=max(0, record.previous - cost))
        return left if left.current + left.previous > 0 else None

    def _roll(self, record: CounterRecord | None, now_us: int) -> CounterRecord:
        """The counts as of now: time moves windows on, and another period makes what is used a count of its own."""
        if record is None or now_us >= record.ends_us:
            return CounterRecord(later(now_us, record), 0, 0, self.period_us)
        current, previous = record.current, record.previous
        if record.period_us != self.period_us:
            left_us = record.start_us + record.period_us - record.at_us
            used = current + ceil_div(previous * left_us, record.period_us)
            current, previous = min(used, MAX_EXACT // self.period_us), 0
        at_us = later(now_us, record)
        start_us = at_us - at_us % self.period_us
        if record.at_us < start_us - self.period_us:
            current, previous = 0, 0
        elif record.at_us < start_us:
            current, previous = 0, current
        return CounterRecord(at_us, current, previous, self.period_us)

    def _overlap(self, previous: int, elapsed_us: int) -> int:
        return ceil_div(previous * (self.period_us - elapsed_us), self.period_us)

    def _wait_us(self, seen: CounterRecord, cost: int, elapsed_us: int) -> int:
        """Until so much of a window has aged that the rest of it leaves room for the cost."""
        room = self.requests - seen.current - cost
        if room >= 0:  # in this window, of the one before
            return self.period_us - room * self.period_us // seen.previous - elapsed_us
        aged_us = max(0, self.period_us - (self.requests - cost) * self.period_us // seen.current)
        return self.period_us - elapsed_us + aged_us  # in the next window, of this one
