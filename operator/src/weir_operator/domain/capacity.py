# SPDX-License-Identifier: Apache-2.0
"""How many store primaries, how much memory and how many limiter cores a load needs: arithmetic over unit costs.

Owns the model and shows every step of it. Knows no figure by itself: what things cost is an argument.
A region counts for itself, so regions are planned one at a time and all alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

_US_PER_S = 1_000_000
_BYTES_PER_GB = 1_000_000_000
_WHOLE_FROM, _SCIENTIFIC_BELOW = 1000, 0.001  # how numbers are shown


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What one of each costs. CPU is in microseconds of a core, and saturated means that the server is never idle."""

    script_us: float  # the store, for a call with one rule, saturated by pipelines of 16
    script_alone: float  # how many times as much it is when each call comes alone, as it does from many limiters
    script_instructions: float  # the same call
    script_further_rule_instructions: float  # what each further rule of that call adds
    bucket_bytes: float  # the store, for a subject with one rule, at the worst fill of its tables
    bucket_further_rule_bytes: float
    limiter_us: float  # for a decision, saturated
    limiter_sparse_us: float  # for a decision at `limiter_sparse_per_s`, where each wakes the limiter anew
    limiter_sparse_per_s: float
    limiter_mb: float  # resident, idle


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked for. `subjects_per_request`: among how many subjects a request's rules are divided."""

    requests_per_s: float
    subjects: float
    rules: int
    regions: int = 1
    lost_regions: int = 0
    subjects_per_request: int = 1
    hot_share: float = 0.0
    limiters: int | None = None  # in each region; None = as many as have work for one core
    busy: float = 0.6
    full: float = 0.5
    primary_gb: float = 8.0
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the calculation: Python's arithmetic over the numbers as they are shown, and what it comes to."""

    name: str
    arithmetic: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What each region needs; `steps` is how that was found."""

    primaries: int
    primary_gb: float  # maxmemory of each
    limiters: int
    limiter_threads: int
    limiter_cores: float  # busy ones, of all limiters together
    limiters_gb: float
    steps: tuple[Step, ...]


class TooHotError(ValueError):
    """One subject has more traffic than one primary can count, and a subject cannot be divided."""


@dataclass(slots=True)
class _Sheet:
    steps: list[Step] = field(default_factory=list)

    def add(self, name: str, arithmetic: str, value: float, unit: str) -> float:
        self.steps.append(Step(name, arithmetic, value, unit))
        return value

    def count(self, name: str, arithmetic: str, value: int) -> int:
        self.steps.append(Step(name, arithmetic, value, ""))
        return value


def plan(demand: Demand, costs: UnitCosts) -> Plan:
    """Plan one region. Raises TooHotError when no number of primaries is enough."""
    sheet = _Sheet()
    rate = sheet.add(
        "requests of a region",
        f"{shown(demand.requests_per_s)} / ({demand.regions} - {demand.lost_regions})",
        demand.requests_per_s / (demand.regions - demand.lost_regions),
        "/s",
    )
    primaries, primary_gb = _store(sheet, demand, costs, rate)
    limiters, threads, cores = _limiters(sheet, demand, costs, rate)
    memory_gb = limiters * costs.limiter_mb / 1000
    sheet.add("memory of the limiters", f"{limiters} * {shown(costs.limiter_mb)} / 1000", memory_gb, "GB")
    return Plan(primaries, primary_gb, limiters, threads, cores, memory_gb, tuple(sheet.steps))


def _store(sheet: _Sheet, demand: Demand, costs: UnitCosts, rate: float) -> tuple[int, float]:
    for_cpu = _primaries_for_cpu(sheet, demand, rate, _request_us(sheet, demand, costs))
    further = ceil(demand.rules / demand.subjects_per_request) - 1
    one, more, full, most_gb = costs.bucket_bytes, costs.bucket_further_rule_bytes, demand.full, demand.primary_gb
    subject = sheet.add(
        "bytes of a subject", f"{shown(one)} + {further} * {shown(more)}", one + further * more, "bytes"
    )
    data_gb = sheet.add(
        "data, every subject in every region",
        f"{shown(demand.subjects)} * {shown(subject)} / 1,000,000,000",
        demand.subjects * subject / _BYTES_PER_GB,
        "GB",
    )
    for_memory = sheet.count(
        "primaries for the memory",
        f"ceil({shown(data_gb)} / ({shown(most_gb)} * {shown(full)}))",
        ceil(data_gb / (most_gb * full)),
    )
    primaries = sheet.count("primaries", f"max({for_cpu}, {for_memory})", max(for_cpu, for_memory))
    arithmetic = f"{shown(data_gb)} / {primaries} / {shown(full)}"
    return primaries, sheet.add("maxmemory of a primary", arithmetic, data_gb / primaries / full, "GB")


def _request_us(sheet: _Sheet, demand: Demand, costs: UnitCosts) -> float:
    first, more = costs.script_instructions, costs.script_further_rule_instructions
    calls, further = demand.subjects_per_request, demand.rules - demand.subjects_per_request
    return sheet.add(
        "store CPU of a request",
        f"{shown(costs.script_us)} * {shown(costs.script_alone)}"
        f" * ({calls} * {shown(first)} + {further} * {shown(more)}) / {shown(first)}",
        costs.script_us * costs.script_alone * (calls * first + further * more) / first,
        "us",
    )


def _primaries_for_cpu(sheet: _Sheet, demand: Demand, rate: float, request_us: float) -> int:
    share, busy = demand.hot_share, demand.busy
    arithmetic = f"{shown(rate)} * {shown(request_us)} / 1,000,000"
    cores = sheet.add("store CPU", arithmetic, rate * request_us / _US_PER_S, "cores")
    hot = sheet.add("of it for the hottest subject", f"{shown(share)} * {shown(cores)}", share * cores, "cores")
    if hot >= busy:
        raise TooHotError(
            f"one subject with {share:.0%} of {shown(rate)} requests/s of a region needs {shown(hot)} cores"
            f" of the one primary that counts it, which may be {busy:.0%} busy"
        )
    # The primary that has the hottest subject has its share of the others too.
    return sheet.count(
        "primaries for the CPU",
        f"ceil((1 - {shown(share)}) * {shown(cores)} / ({shown(busy)} - {shown(hot)}))",
        ceil((1 - share) * cores / (busy - hot)),
    )


def _limiters(sheet: _Sheet, demand: Demand, costs: UnitCosts, rate: float) -> tuple[int, int, float]:
    often_us, sparse_us, sparse_per_s = costs.limiter_us, costs.limiter_sparse_us, costs.limiter_sparse_per_s
    limiters = demand.limiters or sheet.count(
        "limiters of one core",
        f"ceil({shown(rate)} * {shown(often_us)} / 1,000,000 / {shown(demand.busy)})",
        ceil(rate * often_us / _US_PER_S / demand.busy),
    )
    own = sheet.add("requests of a limiter", f"{shown(rate)} / {limiters}", rate / limiters, "/s")
    # Up to the sparse rate each decision costs what it costs alone; beyond it they share wake-ups, in all for no less.
    own_cores = sheet.add(
        "busy cores of a limiter",
        f"max(min({shown(own)}, {shown(sparse_per_s)}) * {shown(sparse_us)}, {shown(own)} * {shown(often_us)})"
        " / 1,000,000",
        max(min(own, sparse_per_s) * sparse_us, own * often_us) / _US_PER_S,
        "cores",
    )
    arithmetic = f"ceil({shown(own_cores)} / {shown(demand.busy)})"
    threads = sheet.count("threads of a limiter", arithmetic, ceil(own_cores / demand.busy))
    arithmetic = f"{limiters} * {shown(own_cores)}"
    return limiters, threads, sheet.add("busy cores of all limiters", arithmetic, limiters * own_cores, "cores")


def shown(number: float) -> str:
    """A number for people, and for the arithmetic: whole from 1,000 up, else four significant digits."""
    if number == round(number) or number >= _WHOLE_FROM:
        return f"{number:,.0f}"
    return f"{number:.4g}" if number >= _SCIENTIFIC_BELOW else f"{number:.3e}"
