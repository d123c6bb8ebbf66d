# SPDX-License-Identifier: Apache-2.0
"""Conformance vectors as requests to a limiter: what is sent when, and what a client learns from the answers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import reading
from model import NEVER, Model, Rule
from rig.documents import document, policy, rule
from rig.envoy import Answer
from vector import Vector, load_all, rule_id

MOST_REQUESTS = 300  # longer stories are left to the implementations that take no time
LATE_US = 50_000  # far above what a store's clock that stands moves on by until a request is decided
HOST = "vectors.example.com"


@dataclass(frozen=True)
class Seen:
    """What a client learns from one answer: which rules of it are told, with what is left of each."""

    allowed: bool
    remaining: Mapping[str, int]
    retry_after: int | None


@dataclass(frozen=True)
class Call:
    """One request of a vector: when, under which rules, at which cost for each."""

    at_us: int
    rules: Mapping[str, Mapping[str, Any]]
    costs: tuple[int, ...]


def calls(case: Vector) -> list[Call] | None:
    """The requests of a vector; None when one is no request: a refund, a limiter's wrong clock, some of the rules."""
    rules: dict[str, Mapping[str, Any]] = dict(case.content["rules"])
    found: list[Call] = []
    for step in case.content["steps"]:
        if {"refund", "limiter_at", "rules"} & step.keys():
            return None
        for name, change in step.get("change", {}).items():
            rules[name] = {**rules[name], **change}
        cost = step.get("cost", 1)
        costs = tuple(cost if isinstance(cost, int) else cost.get(name, 1) for name in rules)
        times = [turn * reading.span_us(step, "every") for turn in range(step.get("times", 1))]
        found += [Call(reading.instant_us(step, "at") + after_us, dict(rules), costs) for after_us in times]
    return found


def by_model(requests: Sequence[Call], late_us: int) -> list[Seen]:
    """What a client would learn if each request were decided so much later."""
    model = Model()
    return [_by_model(model, replace(request, at_us=request.at_us + late_us)) for request in requests]


def _by_model(model: Model, request: Call) -> Seen:
    allowed, _, *said = model.decide(request.at_us, _asked(request))
    told = {name: place for place, name in enumerate(request.rules) if not _shadow(request.rules[name])}
    waits = [said[4 * place + 2] for place in told.values() if not said[4 * place]]
    wait_s = None if allowed else max(1, math.ceil(max(waits) / 1_000_000))
    return Seen(bool(allowed), {name: said[4 * place + 1] for name, place in told.items()}, wait_s)


def _asked(request: Call) -> list[Rule]:
    named = zip(request.rules.items(), request.costs, strict=True)
    return [
        Rule(entry.get("key", "subject"), rule_id(name), reading.limit(entry, request.at_us), cost, not _shadow(entry))
        for (name, entry), cost in named
    ]


def _shadow(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("shadow", False))


def subset() -> Iterator[tuple[Vector, list[Call]]]:
    """The vectors that a client can tell right from wrong: that hold nobody, and end the same a little later."""
    for case in load_all():
        requests = calls(case)
        if not requests or len(requests) > MOST_REQUESTS:
            continue
        holds = any("queue" in entry for request in requests for entry in request.rules.values())
        if not holds and _is_lawful(requests) and by_model(requests, 0) == by_model(requests, LATE_US):
            yield case, requests


def _is_lawful(requests: Sequence[Call]) -> bool:
    """Whether a limiter takes its rules: not those with a cost that could never pass."""
    model, lawful = Model(), True
    for request in requests:
        _, _, *said = model.decide(request.at_us, _asked(request))
        lawful &= NEVER not in said[2::4]
    return lawful


def as_document(rules: Mapping[str, Mapping[str, Any]], costs: Sequence[tuple[int, ...]]) -> bytes:
    """A document in which a path `/n` costs what `costs[n]` says, by rule."""
    return document(as_policy(rules, costs, HOST))


def as_policy(
    rules: Mapping[str, Mapping[str, Any]], costs: Sequence[tuple[int, ...]], host: str, **members: Any
) -> dict[str, Any]:
    """The same as a policy of one host; `members` are for each of its rules."""
    written = [
        rule(
            name,
            mode="Shadow" if _shadow(entry) else "Enforce",
            key=[{"header": f"x-{entry.get('key', 'subject')}"}],
            limit=as_limit(entry),
            cost=[
                {"match": {"path": f"/{number}", "methods": []}, "cost": each[place]}
                for number, each in enumerate(costs)
            ],
            **members,
        )
        for place, (name, entry) in enumerate(rules.items())
    ]
    return policy(*written, id=f"vectors/{host.partition('.')[0]}", match={"hosts": [host], "routes": []})


def as_limit(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A vector's limit as the contract has it."""
    algorithm = entry.get("algorithm", "TokenBucket")
    limit: dict[str, Any] = {"algorithm": algorithm, "requests": entry["requests"]}
    if "calendar" in entry:
        return limit | {"calendar": entry["calendar"], "timeZone": entry.get("time_zone", "UTC")}
    limit["periodUs"] = reading.duration_us(entry["period"])
    if algorithm == "TokenBucket":
        limit["burst"] = entry["burst"]
    if algorithm == "LeakyBucket":
        limit |= {"queue": 0, "maxDelayUs": 0}
    return limit


def seen(answer: Answer, *, mode: str | None = None) -> Seen:
    """What the answer's headers tell. `mode`: who has decided, if it was not the store."""
    assert answer.headers.get("x-ratelimit-mode") == mode, "somebody else has decided"
    told = re.findall(r'"([^"]+)";r=(\d+)', answer.headers.get("ratelimit", ""))
    wait_s = answer.headers.get("retry-after")
    return Seen(answer.allowed, {name: int(left) for name, left in told}, int(wait_s) if wait_s else None)
