# SPDX-License-Identifier: Apache-2.0
"""What Hypothesis draws: limits of every algorithm, the traffic of a client, histories of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from calendars import edges
from model import (
    CalendarWindow,
    FixedWindow,
    LeakyBucket,
    Limit,
    Rule,
    SlidingWindowCounter,
    SlidingWindowLog,
    TokenBucket,
)
from reading import START_US

SECOND_US = 1_000_000

requests = st.sampled_from([1, 2, 3, 7, 10, 100, 333, 1000, 8000, 300_000])
counts = st.sampled_from([1, 2, 3, 5, 7, 10, 100, 333])
periods_us = st.sampled_from([1000, 10_000, SECOND_US, 3 * SECOND_US, 60 * SECOND_US, 3600 * SECOND_US])
token_buckets = st.builds(
    TokenBucket, requests=requests, period_us=periods_us, burst=st.sampled_from([1, 2, 5, 7, 10, 100, 333])
)
leaky_buckets = st.builds(
    LeakyBucket,
    requests=requests,
    period_us=periods_us,
    queue=st.sampled_from([0, 0, 1, 2, 5, 50]),
    max_delay_us=st.sampled_from([1, 1000, SECOND_US, 10 * SECOND_US, 3600 * SECOND_US]),
)
fixed_windows = st.builds(FixedWindow, requests=counts, period_us=periods_us)
sliding_counters = st.builds(SlidingWindowCounter, requests=counts, period_us=periods_us)
sliding_logs = st.builds(SlidingWindowLog, requests=counts, period_us=periods_us)


@dataclass(frozen=True, slots=True)
class Calendar:
    """A calendar limit before anybody has asked for its edges."""

    requests: int
    calendar: str
    zone: str

    def around(self, time_us: int) -> CalendarWindow:
        """The limit as a limiter sends it that takes this for the time."""
        return CalendarWindow(self.requests, edges(self.calendar, self.zone, time_us))


calendar_windows = st.builds(
    Calendar,
    requests=counts,
    calendar=st.sampled_from(["Day", "Week", "Month"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]),
)
# Limits with the same numbers at every call; those of a calendar have others from window to window.
limits: st.SearchStrategy[Limit] = st.one_of(
    token_buckets, leaky_buckets, fixed_windows, sliding_counters, sliding_logs
)
algorithms: list[st.SearchStrategy[Any]] = [
    token_buckets, leaky_buckets, st.one_of(fixed_windows, calendar_windows), sliding_counters, sliding_logs
]  # fmt: skip

# Around the distances at which something happens: nothing, a microsecond, a token, a window, a whole bucket.
steps_us = st.one_of(
    st.sampled_from([0, 0, 0, 1, 10, 999, 1000, 142_857, 142_858, 333_333, SECOND_US, 2 * SECOND_US]),
    st.integers(0, 5 * SECOND_US),
    st.integers(0, 100_000 * SECOND_US),
)
costs = st.sampled_from([0, 1, 1, 1, 1, 2, 5, 50, 334])


@st.composite
def histories(draw: st.DrawFn, *, size: int = 15, clock_steps_back: bool = True) -> list[tuple[int, list[Rule]]]:
    """Calls of one to four rules over two keys whose limits change now and then, each within its algorithm."""
    now_us = START_US
    calls: list[tuple[int, list[Rule]]] = []
    drawn = {name: draw(st.sampled_from(algorithms)) for name in ("alpha...", "beta....", "gamma...", "delta...")}
    current = {name: draw(algorithm) for name, algorithm in drawn.items()}
    keys = {name: draw(st.sampled_from(["one", "two"])) for name in current}
    shadow = draw(st.sampled_from([None, *current]))
    for _ in range(draw(st.integers(1, size))):
        now_us += draw(steps_us)
        if clock_steps_back and draw(st.integers(0, 9)) == 0:
            now_us = max(START_US, now_us - draw(steps_us))
        if draw(st.integers(0, 5)) == 0:
            changed = draw(st.sampled_from(sorted(current)))
            current[changed] = draw(drawn[changed])
        called = draw(st.lists(st.sampled_from(sorted(current)), min_size=1, unique=True))
        cost = draw(costs)
        calls.append(
            (now_us, [Rule(keys[name], name, at(current[name], now_us), cost, name != shadow) for name in called])
        )
    return calls


@st.composite
def traffic(draw: st.DrawFn, *, size: int = 40) -> list[tuple[int, int]]:
    """(now_us, cost) of the calls of one client, in the order of time."""
    now_us, calls = START_US, []
    for distance_us in draw(st.lists(steps_us, min_size=1, max_size=size)):
        now_us += distance_us
        calls.append((now_us, draw(st.integers(0, 4))))
    return calls


def at(limit: Any, time_us: int) -> Limit:
    """The limit itself, or of a calendar the one with the edges around the time."""
    return limit.around(time_us) if isinstance(limit, Calendar) else limit


def rule(limit: Limit, cost: int = 1, **more: Any) -> Rule:
    """A rule of one subject."""
    return Rule(**{"key": "subject", "id": "rule....", "limit": limit, "cost": cost, **more})
