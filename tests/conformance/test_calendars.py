# SPDX-License-Identifier: Apache-2.0
"""The edges of calendar windows: what holds in every zone, and the Rust core's against the plain ones."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calendars import SECOND_US, edges

# Clocks that go forward and back, skip midnight or have it twice, half hours, a day that never was (Apia).
ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Asia/Kathmandu", "Asia/Tehran",
    "America/Havana", "Australia/Lord_Howe", "Pacific/Apia",
]  # fmt: skip
calendar = st.sampled_from(["Day", "Week", "Month"])
zone = st.sampled_from(ZONES)
# Up to 2025: of what governments decided later, the core's and the machine's time zone data may know differently much.
seconds = st.integers(1_300_000_000, 1_760_000_000)


@pytest.mark.requirement("R11")
@given(calendar=calendar, zone=zone, second=seconds)
@settings(max_examples=300)
def test_three_windows_follow_each_other_and_the_middle_one_holds_the_time(
    calendar: str, zone: str, second: int
) -> None:
    around = edges(calendar, zone, second * SECOND_US)
    assert around[1] <= second * SECOND_US < around[2]
    assert all(first < last for first, last in pairwise(around))
    assert edges(calendar, zone, around[2])[:3] == around[1:]


@pytest.mark.requirement("R11")
@given(calendar=calendar, zone=zone, second=seconds)
@settings(max_examples=200)
def test_window_begins_with_the_first_instant_of_its_first_day(calendar: str, zone: str, second: int) -> None:
    """D14: the date of the last microsecond before is another one, and it is the right day of the week or month."""
    start = edges(calendar, zone, second * SECOND_US)[1] // SECOND_US
    first, before = (datetime.fromtimestamp(at, ZoneInfo(zone)).date() for at in (start, start - 1))
    assert before < first
    if zone != "Pacific/Apia":
        assert {"Day": True, "Week": first.weekday() == 0, "Month": first.day == 1}[calendar]


@pytest.mark.requirement("R11")
@given(calendar=calendar, zone=zone, second=seconds)
@settings(max_examples=300)
def test_core_finds_the_same_edges(core_module: Any, calendar: str, zone: str, second: int) -> None:
    found = core_module.calendar_edges(calendar, zone, second * SECOND_US)
    assert tuple(found) == edges(calendar, zone, second * SECOND_US)


def test_core_refuses_what_is_no_calendar_and_no_zone(core_module: Any) -> None:
    for calendar, zone in (("Year", "UTC"), ("Day", "Europe/Atlantis")):
        with pytest.raises(ValueError):  # noqa: PT011 - the wording is the limiter's
            core_module.calendar_edges(calendar, zone, 0)
