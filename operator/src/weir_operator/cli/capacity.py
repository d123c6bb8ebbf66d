# SPDX-License-Identifier: Apache-2.0
"""`weir capacity`: what a load needs, on paper. Owns options and output; the arithmetic is the domain's."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from weir_operator.cli import unit_costs
from weir_operator.domain.capacity import Demand, Plan, TooHotError, plan, shown

EXIT_IMPOSSIBLE = 1
_SUFFIXES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_MOST = 10**15  # arbitrary, more of anything than there is; Python's own end of numbers is no message
_LEAST_GB = 0.001  # for the store a maxmemory of 0 would mean that there is no limit
_QUOTED = 32  # characters of what was written, in a message
_ADVICE = (
    "a subject cannot be divided: give it rules with scope Instance, or let more than one subject share its traffic"
)


def add_to(commands: Any) -> None:
    """Add the subcommand to argparse's subparsers."""
    parser = commands.add_parser(
        "capacity",
        help="how many store primaries, how much memory and how many limiter cores a load needs",
        description="Plans a load on paper, from what things cost where they were measured, and shows every step.",
        epilog="Numbers may end in k, M or G: 2.4k, 20M. A region counts for itself; all are planned alike.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    several, share, amount = _whole(1), _between(0, 1), _between(0, None)
    for name, parse, default, text in (
        ("rps", amount, None, "requests per second at the peak, of all regions together"),
        ("subjects", amount, None, "subjects that have a counter at one time: those of the longest period"),
        ("rules", several, None, "rules that apply to a request"),
        ("regions", several, 1, "regions, each with a store of its own"),
        ("lost-regions", _whole(0), 0, "regions that may be gone while the others carry everything"),
        ("subjects-per-request", several, 1, "subjects among which these rules are divided; a call to a cluster each"),
        ("hot-share", _share_or_none, 0.0, "share of the traffic that one subject may have, 0 to 1"),
        ("limiters", several, None, "limiters in a region, one beside each Envoy (default: as few as can)"),
        ("busy", share, 0.6, "how busy a core may be at the peak, of a primary or of a limiter"),
        ("full", share, 0.5, "how full the memory of a primary may be"),
        ("primary-gb", amount, 8.0, "largest memory of a primary, in GB"),
        ("replicas", _whole(0), 1, "replicas of each primary"),
    ):
        required = name in ("rps", "subjects", "rules")
        shown_default = "" if default is None else f" (default: {default})"
        parser.add_argument(
            f"--{name}", type=parse, required=required, default=default, metavar="N", help=text + shown_default
        )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Plan and print; return the exit status."""
    demand = Demand(
        requests_per_s=options.rps,
        **{item.name: getattr(options, item.name) for item in fields(Demand) if item.name != "requests_per_s"},
    )
    mistakes = _mistakes(demand)
    if mistakes:
        print(*(f"weir capacity: {mistake}" for mistake in mistakes), sep="\n", file=sys.stderr)
        return 2
    measured = unit_costs.read()
    try:
        found = plan(demand, measured.unit_costs())
    except TooHotError as error:
        print(f"weir capacity: {error}; {_ADVICE}", file=sys.stderr)
        return EXIT_IMPOSSIBLE
    if options.json:
        print(
            json.dumps({"asked": asdict(demand), "needs": _needs(demand, found), **_shown(found, measured)}, indent=1)
        )
    else:
        print(_text(demand, found))
    return 0


def _mistakes(demand: Demand) -> list[str]:
    """What no option can know alone."""
    found = []
    if demand.lost_regions >= demand.regions:
        found.append(f"--lost-regions {demand.lost_regions} leaves none of {demand.regions} regions; lose fewer")
    if demand.subjects_per_request > demand.rules:
        found.append(f"--subjects-per-request {demand.subjects_per_request} is more than --rules {demand.rules}")
    return found


def _needs(demand: Demand, found: Plan) -> dict[str, float]:
    regions = demand.regions
    return {
        "primaries_per_region": found.primaries,
        "primaries": found.primaries * regions,
        "servers": found.primaries * (1 + demand.replicas) * regions,
        "maxmemory_gb": max(round(found.primary_gb, 3), _LEAST_GB),
        "limiters_per_region": found.limiters,
        "threads_per_limiter": found.limiter_threads,
        "limiter_cores": round(found.limiter_cores * regions, 2),
        "limiter_memory_gb": round(found.limiters_gb * regions, 3),
    }


def _shown(found: Plan, measured: unit_costs.Measurements) -> dict[str, Any]:
    return {
        "steps": [asdict(step) for step in found.steps],
        "unit_costs": {"machine": measured.machine, "measured": measured.day, **_costs(measured)},
    }


def _costs(measured: unit_costs.Measurements) -> dict[str, Any]:
    return {cost.name: {"value": cost.value, "unit": cost.unit, "what": cost.what} for cost in measured.costs}


def _text(demand: Demand, found: Plan) -> str:
    names, sums = max(len(step.name) for step in found.steps), max(len(step.arithmetic) for step in found.steps)
    steps = [
        f"  {step.name:<{names}}  {step.arithmetic:<{sums}} = {shown(step.value)} {step.unit}".rstrip()
        for step in found.steps
    ]
    needs = _needs(demand, found)
    store = (
        f"{_counted(found.primaries, 'primary', 'primaries')} with {_counted(demand.replicas, 'replica')} each"
        f" and a maxmemory of {shown(needs['maxmemory_gb'])} GB"
    )
    limiters = f"{_counted(found.limiters, 'limiter')} with {_counted(found.limiter_threads, 'thread')} each"
    primaries = _counted(found.primaries * demand.regions, "primary", "primaries")
    in_all = (
        f"{primaries}, {needs['servers']} store servers, {shown(needs['limiter_cores'])} busy limiter cores,"
        f" {shown(needs['limiter_memory_gb'])} GB for limiters"
    )
    return "\n".join(
        ["Each region:", *steps, "", f"each region  {store}", f"             {limiters}", f"in all       {in_all}"]
    )


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _number(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:_\d+)*(?:\.\d+)?)([kMG]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number such as 2400, 2.4k or 20M")
    number = float(found[1]) * _SUFFIXES[found[2]]
    if number > _MOST:
        raise argparse.ArgumentTypeError(f"{text[:_QUOTED]!r} is more than {_MOST:,}")
    return number


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = _number(text)
        if number != int(number) or number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least}")
        return int(number)

    return parse


def _between(above: float, most: float | None) -> Callable[[str], float]:
    def parse(text: str) -> float:
        number = _number(text)
        if number <= above or (most is not None and number > most):
            range_ = f"above {above}" + ("" if most is None else f" and at most {most}")
            raise argparse.ArgumentTypeError(f"{text!r} is not {range_}")
        return number

    return parse


def _share_or_none(text: str) -> float:
    number = _number(text)
    if number > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1")
    return number
