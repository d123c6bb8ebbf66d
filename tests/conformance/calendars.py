# SPDX-License-Identifier: Apache-2.0
"""The edges of days, weeks and months in a time zone, found in the plainest way: by asking for the local date.

A window begins with the first instant of its first local day. That is midnight where the day has one, and later where
the clocks skip it. A day that a zone leaves out altogether is no window.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

SECOND_US = 1_000_000


def edges(calendar: str, zone: str, now_us: int) -> tuple[int, int, int, int]:
    """The edges in us of the window that contains `now_us`, of the one before it and of the one after it."""
    today = datetime.fromtimestamp(now_us // SECOND_US, ZoneInfo(zone)).date()
    turns = range(-3, 4)
    starts = sorted({_first_instant_us(_turned(calendar, today, turn), zone) for turn in turns})
    current = max(place for place, start_us in enumerate(starts) if start_us <= now_us)
    before, start, end, after = starts[current - 1 : current + 3]
    return before, start, end, after


def _turned(calendar: str, day: date, turns: int) -> date:
    """The first day of the window so many windows after the one of `day`."""
    if calendar == "Day":
        return day + timedelta(days=turns)
    if calendar == "Week":
        return day - timedelta(days=day.weekday()) + timedelta(weeks=turns)
    months = day.year * 12 + day.month - 1 + turns
    return date(months // 12, months % 12 + 1, 1)


@lru_cache(maxsize=4096)
def _first_instant_us(day: date, zone: str) -> int:
    """By halving: the earliest second at which the local date is that day or a later one."""
    noon = int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp())
    early, late = noon - 48 * 3600, noon + 48 * 3600
    while late - early > 1:
        middle = (early + late) // 2
        if datetime.fromtimestamp(middle, ZoneInfo(zone)).date() >= day:
            late = middle
        else:
            early = middle
    return late * SECOND_US
