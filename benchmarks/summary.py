# SPDX-License-Identifier: Apache-2.0
"""From windows to figures: medians, ranges, ratios within the run. Measures nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from figures import Figure, median_of, number
from scenarios import CROWDED, ECHO, HOT, ONE, OVERRIDES, POLICIES, RELOAD, SCRIPT, STOPPED, WITH_FILTER, WITHOUT_FILTER
from windows import SATURATION, Window

_PEAK = "2400"  # of the traffic that the product is designed for
_AT = "at 2,400/s"
_LATENCIES = {"p50": "p50_us", "p90": "p90_us", "p99": "p99_us", "p99.9": "p999_us"}

Found = Mapping[tuple[str, str], Sequence[Window]]
Pick = Callable[[Window], float]


def figures(windows: Sequence[Window], idle_mb: float) -> list[Figure]:
    """What is judged, and what is compared within the run."""
    return [*_compared(_grouped(windows)), Figure("sidecar: resident memory, idle", idle_mb, "MB", 25.0, 12.0)]


def details(windows: Sequence[Window]) -> list[Figure]:
    """Every subject at every point, for the file: the table shows the same to people."""
    found = _grouped(windows)
    return [row for key in sorted(found) for row in _rows(*key, found[key])]


def _grouped(windows: Sequence[Window]) -> dict[tuple[str, str], list[Window]]:
    found: dict[tuple[str, str], list[Window]] = defaultdict(list)
    for window in windows:
        found[window.subject, window.point].append(window)
    return found


def _compared(found: Found) -> list[Figure]:
    def at(subject: str, point: str, pick: Pick) -> float:
        return median([pick(window) for window in found[subject, point]])

    def above_ms(pick: Pick, subject: str, other: str) -> float:
        return (at(subject, _PEAK, pick) - at(other, _PEAK, pick)) / 1000

    floor = at(ECHO, _PEAK, _p50) + at(SCRIPT, _PEAK, _p50)
    big = f"{POLICIES:,} policies and {OVERRIDES:,} overrides"
    return [
        Figure(f"decision p50 {_AT} / (echo p50 + script p50)", at(ONE, _PEAK, _p50) / floor, "", 1.1, 1.0),
        Figure(f"decision p99 {_AT} above the echo's", above_ms(_p99, ONE, ECHO), "ms", 1.0, 0.5),
        Figure(
            "CPU per decision at saturation / bare echo",
            at(ONE, SATURATION, _cpu) / at(ECHO, SATURATION, _cpu), "", 2.0, 1.4,
        ),
        Figure(
            f"CPU per decision with {big} / with one policy",
            at(CROWDED, SATURATION, _cpu) / at(ONE, SATURATION, _cpu), "", 1.2, 1.05,
        ),
        Figure(f"p99 {_AT} while {big} are applied, above that without", above_ms(_p99, RELOAD, CROWDED), "ms", 1.0),
        Figure(f"store stopped: p99 {_AT} above the echo's, so nobody waits", above_ms(_p99, STOPPED, ECHO), "ms", 1.0),
        Figure(
            f"hot key: p99 of the other keys {_AT}, above that without a hot key",
            (at(HOT, _PEAK, lambda window: window.report.apart.p99_us) - at(ONE, _PEAK, _p99)) / 1000, "ms",
        ),
        Figure(f"envoy: p50 {_AT} that the filter adds", above_ms(_p50, WITH_FILTER, WITHOUT_FILTER), "ms"),
        Figure(f"envoy: p99 {_AT} that the filter adds", above_ms(_p99, WITH_FILTER, WITHOUT_FILTER), "ms"),
    ]  # fmt: skip


def _rows(subject: str, point: str, windows: Sequence[Window]) -> list[Figure]:
    """One subject at one point."""
    name = "sidecar" if subject == ONE else subject
    where = "at saturation" if point == SATURATION else f"at {int(point):,}/s"
    rows = []
    if point == SATURATION:
        rows.append(median_of([window.report.per_s for window in windows], f"{name}: calls per second {where}", "/s"))
    else:
        rows += [
            median_of([getattr(window.report.all, field) for window in windows], f"{name}: {label} {where}", "us")
            for label, field in _LATENCIES.items()
        ]
        if subject == HOT:
            others = [window.report.apart.p99_us for window in windows]
            rows.append(median_of(others, f"{name}: p99 of the other keys {where}", "us"))
    for process in windows[0].cpu_us:
        whose = "CPU" if process == "server" else f"CPU of the {process}"
        rows.append(
            median_of([window.cpu_us[process] for window in windows], f"{name}: {whose} per call {where}", "us")
        )
    lost = sum(window.report.all.lost for window in windows)
    return [*rows, Figure(f"{name}: calls lost {where}", lost, "")] if lost else rows


def table(windows: Sequence[Window]) -> str:
    """Medians of every subject at every point, side by side, each p50 and p99 also as a ratio to the echo's."""
    found = _grouped(windows)
    head = (
        "subject",
        "load",
        "calls/s",
        "p50 us",
        "p90 us",
        "p99 us",
        "p99.9 us",
        "p50 / echo",
        "p99 / echo",
        "CPU us",
    )
    rows = [head, ("---", "---", *["---:"] * (len(head) - 2))]
    for subject, point in sorted(found, key=_order):
        mine = found[subject, point]
        echo = found.get((ECHO, point), [])
        ratios = [number(_median(mine, pick) / _median(echo, pick)) if echo else "" for pick in (_p50, _p99)]
        latencies = [_median(mine, lambda window, field=field: getattr(window.report.all, field)) for field in _FIELDS]
        cpu = " + ".join(
            f"{number(median(window.cpu_us[process] for window in mine))} {process}" for process in mine[0].cpu_us
        )
        load = point if point == SATURATION else f"{int(point):,}/s"
        per_s = number(_median(mine, lambda window: window.report.per_s))
        rows.append((subject, load, per_s, *map(number, latencies), *ratios, cpu))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _order(key: tuple[str, str]) -> tuple[str, bool, int]:
    subject, point = key
    return subject, point == SATURATION, 0 if point == SATURATION else int(point)


_FIELDS = tuple(_LATENCIES.values())


def _median(windows: Sequence[Window], pick: Callable[..., float]) -> float:
    return median(pick(window) for window in windows)


def _p50(window: Window) -> float:
    return window.report.all.p50_us


def _p99(window: Window) -> float:
    return window.report.all.p99_us


def _cpu(window: Window) -> float:
    return window.cpu_us["server"]
