# SPDX-License-Identifier: Apache-2.0
"""Test vectors: how they are read from YAML, and how an implementation is led through one.

A vector is a story for people (`requests: 100, period: 1s`); an implementation sees only the integers of a call. What a
field means is written in `vectors/schema.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import jsonschema
import pytest
import yaml
from _pytest.mark import ParameterSet

import reading
from model import NEVER, STALE, Rule, charged

FOLDER = Path(__file__).parent / "vectors"

_REPLY_HEAD = 2  # allowed, now_us
_REPLY_FIELDS = ("ok", "remaining", "wait_us", "reset_us")

Call = tuple[int, Sequence[Rule]]  # now_us, and the rules that one request meets


class Implementation(Protocol):
    """Anything that decides: the model, the scripts in a store, the Rust core."""

    def decide_all(self, calls: Sequence[Call]) -> list[list[int]]:
        """The replies of calls made one after the other, each as `Model.decide` describes it."""
        ...

    def refund(self, now_us: int, charged_at_us: int, rules: Sequence[Rule]) -> None:
        """Give back what a call of these rules has charged, which was answered with that time."""
        ...

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Raise AssertionError unless the last charge of `key` asked for this TTL; nothing to check without a store."""
        ...


@dataclass(frozen=True, slots=True)
class Vector:
    """One behaviour: the file it came from, and its checked content."""

    path: Path
    content: dict[str, Any]

    @property
    def name(self) -> str:
        """`algorithm/behaviour`."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def proves(self) -> list[str]:
        """The ids of requirements; those of bug reports stay in the file."""
        return [i for i in self.content.get("proves", []) if i.startswith("R")]


@cache
def load_all() -> tuple[Vector, ...]:
    """Every vector, in the order of their names. Raises jsonschema.ValidationError for one that is not well-formed."""
    return tuple(load(path) for path in sorted(FOLDER.glob("*/*.yaml")))


def load(path: Path) -> Vector:
    """One vector."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    _validator().validate(content)
    return Vector(path, content)


def parameters() -> list[ParameterSet]:
    """Every vector as a test parameter that carries the requirements it proves."""
    requirement = pytest.mark.requirement
    return [pytest.param(case, id=case.name, marks=[requirement(i) for i in case.proves]) for case in load_all()]


def play(vector: Vector, implementation: Implementation) -> None:
    """Make the vector's calls and compare each reply with what it expects. Raises AssertionError with the step."""
    player = _Player(dict(vector.content["rules"]), implementation)
    for number, step in enumerate(vector.content["steps"], start=1):
        where = f"{vector.name}, step {number} ({vector.content['behaviour']})"
        player.refund(step) if "refund" in step else player.decide(where, step)


@dataclass(slots=True)
class _Player:
    """The rules as they stand, and what the last call of each step was and was answered; empty for a refund."""

    rules: dict[str, Mapping[str, Any]]
    implementation: Implementation
    answered: list[tuple[Sequence[Rule], Sequence[int]]] = field(default_factory=list)

    def decide(self, where: str, step: Mapping[str, Any]) -> None:
        for name, change in step.get("change", {}).items():
            self.rules[name] = {**self.rules[name], **change}
        called = {name: self.rules[name] for name in step.get("rules", self.rules)}
        calls = [(now_us, _rules(called, step, now_us)) for now_us in _times(step)]
        replies = self.implementation.decide_all(calls)
        for place, (now_us, _) in enumerate(calls):
            if replies[place][0] == STALE:  # as a limiter does: once more, with the edges around the time in question
                again = _rules(called, {**step, "limiter_at": None}, replies[place][1])
                assert len(calls) == 1, f"{where}: edges that are stale need a step of one call"
                replies = self.implementation.decide_all([(now_us, again)])
        self.answered.append((calls[-1][1], replies[-1]))
        _compare(where, step["expect"], replies, list(called))
        for key, ttl_ms in step["expect"].get("ttl_ms", {}).items():
            self.implementation.check_ttl(key, ttl_ms)

    def refund(self, step: Mapping[str, Any]) -> None:
        rules, reply = self.answered[step["refund"] - 1]
        self.implementation.refund(next(_times(step)), reply[1], charged(rules, reply))
        self.answered.append(((), ()))


def rule_id(name: str) -> str:
    """The eight characters that stand for a rule's name in calls."""
    return name[:8].ljust(8, ".")


def _times(step: Mapping[str, Any]) -> Iterator[int]:
    for turn in range(step.get("times", 1)):
        yield reading.instant_us(step, "at") + turn * reading.span_us(step, "every")


def _rules(called: Mapping[str, Mapping[str, Any]], step: Mapping[str, Any], now_us: int) -> list[Rule]:
    """What the step calls, with the edges of calendars around what the limiter takes for the time."""
    limiter_us = reading.instant_us(step, "limiter_at") if step.get("limiter_at") else now_us
    cost = step.get("cost", 1)
    return [
        Rule(
            key=rule.get("key", "subject"),
            id=rule_id(name),
            limit=reading.limit(rule, limiter_us),
            cost=cost if isinstance(cost, int) else cost.get(name, 1),
            enforcing=not rule.get("shadow", False),
        )
        for name, rule in called.items()
    ]


def _compare(where: str, expect: Mapping[str, Any], replies: Sequence[Sequence[int]], names: Sequence[str]) -> None:
    allowed = [bool(reply[0]) for reply in replies]
    if "allowed" in expect:
        assert allowed == [expect["allowed"]] * len(replies), f"{where}: allowed was {allowed}"
    if "admitted" in expect:
        assert sum(allowed) == expect["admitted"], f"{where}: {sum(allowed)} of {len(allowed)} admitted"
    per_rule = expect.get("rules", {names[0]: expect})
    for name, wanted in per_rule.items():
        at = _REPLY_HEAD + len(_REPLY_FIELDS) * names.index(name)
        actual = dict(zip(_REPLY_FIELDS, replies[-1][at:], strict=False))
        expected = _expected(wanted, replies[-1][1])
        assert {key: actual[key] for key in expected} == expected, f"{where}: rule {name} replied {actual}"


def _expected(wanted: Mapping[str, Any], now_us: int) -> dict[str, int]:
    expected = {name: int(wanted[name]) for name in ("ok", "remaining") if name in wanted}
    if wanted.get("retry_after") == "never":
        return expected | {"ok": 0, "wait_us": NEVER}
    for name, reply_field in (("retry_after", "wait_us"), ("hold", "wait_us"), ("reset", "reset_us")):
        if f"{name}_us" in wanted or f"{name}_ms" in wanted:
            expected[reply_field] = reading.span_us(wanted, name)
        elif f"{name}_at" in wanted:
            expected[reply_field] = reading.instant_us(wanted, f"{name}_at") - now_us
        else:
            continue
        if name != "reset":  # a wait of one kind is not one of the other
            expected["ok"] = int(name == "hold" or expected["wait_us"] == 0)
    return expected


@cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = yaml.safe_load((FOLDER / "schema.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
