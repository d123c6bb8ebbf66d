# SPDX-License-Identifier: Apache-2.0
"""Test vectors: how they are read from YAML, and how an implementation is led through one.

A vector is a story for people (`requests: 100, period: 1s`); an implementation sees only the integers of a call. What a
field means is written in `vectors/schema.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import jsonschema
import pytest
import yaml
from _pytest.mark import ParameterSet

from model import NEVER, Limit, Rule

FOLDER = Path(__file__).parent / "vectors"
START_US = 1_764_547_200_000_000  # 2025-12-01, so that times have as many digits as in production

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_REPLY_FIELDS = ("ok", "remaining", "retry_after_us", "reset_us")


Call = tuple[int, Sequence[Rule]]  # now_us, and the rules that one request meets


class Implementation(Protocol):
    """Anything that decides: the model, the script in a store, the Rust core."""

    def decide_all(self, calls: Sequence[Call]) -> list[list[int]]:
        """The replies of calls made one after the other, each as `Model.decide` describes it."""
        ...

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Raise AssertionError unless the last write to `key` asked for this TTL; nothing to check without a store."""
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


def load_all() -> list[Vector]:
    """Every vector, in the order of their names. Raises jsonschema.ValidationError for one that is not well-formed."""
    return [load(path) for path in sorted(FOLDER.glob("*/*.yaml"))]


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
    rules = dict(vector.content["rules"])
    for number, step in enumerate(vector.content["steps"], start=1):
        rules = {name: {**rule, **step.get("change", {}).get(name, {})} for name, rule in rules.items()}
        called = {name: rules[name] for name in step.get("rules", rules)}
        call = [_rule(name, rule, step.get("cost", 1)) for name, rule in called.items()]
        replies = implementation.decide_all([(now_us, call) for now_us in _times(step)])
        where = f"{vector.name}, step {number} ({vector.content['behaviour']})"
        _compare(where, step["expect"], replies, list(called))
        for key, ttl_ms in step["expect"].get("ttl_ms", {}).items():
            implementation.check_ttl(key, ttl_ms)


def rule_id(name: str) -> str:
    """The eight characters that stand for a rule's name in calls."""
    return name[:8].ljust(8, ".")


def _times(step: Mapping[str, Any]) -> Iterator[int]:
    for turn in range(step.get("times", 1)):
        yield START_US + _us(step, "at") + turn * _us(step, "every")


def _rule(name: str, rule: Mapping[str, Any], cost: int | Mapping[str, int]) -> Rule:
    limit = Limit(rule["requests"], _period_us(rule["period"]), rule["burst"])
    own_cost = cost if isinstance(cost, int) else cost.get(name, 1)
    key, enforcing = rule.get("key", "subject"), not rule.get("shadow", False)
    return Rule.of(limit, key=key, name=rule_id(name), cost=own_cost, enforcing=enforcing)


def _compare(where: str, expect: Mapping[str, Any], replies: Sequence[Sequence[int]], names: Sequence[str]) -> None:
    allowed = [bool(reply[0]) for reply in replies]
    if "allowed" in expect:
        assert allowed == [expect["allowed"]] * len(replies), f"{where}: allowed was {allowed}"
    if "admitted" in expect:
        assert sum(allowed) == expect["admitted"], f"{where}: {sum(allowed)} of {len(allowed)} admitted"
    per_rule = expect.get("rules", {names[0]: expect})
    for name, wanted in per_rule.items():
        at = 1 + len(_REPLY_FIELDS) * names.index(name)
        actual = dict(zip(_REPLY_FIELDS, replies[-1][at:], strict=False))
        expected = _expected(wanted)
        assert {key: actual[key] for key in expected} == expected, f"{where}: rule {name} replied {actual}"


def _expected(wanted: Mapping[str, Any]) -> dict[str, int]:
    expected = {name: int(wanted[name]) for name in ("ok", "remaining") if name in wanted}
    for name in ("retry_after", "reset"):
        if wanted.get(name) == "never":
            expected[f"{name}_us"] = NEVER
        elif f"{name}_us" in wanted or f"{name}_ms" in wanted:
            expected[f"{name}_us"] = _us(wanted, name)
    return expected


def _us(fields: Mapping[str, Any], name: str) -> int:
    return int(fields.get(f"{name}_us", fields.get(f"{name}_ms", 0) * 1000))


def _period_us(duration: str) -> int:
    return sum(int(count) * _UNITS_US[unit] for count, unit in re.findall(r"(\d+)(us|ms|s|m|h)", duration))


@cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = yaml.safe_load((FOLDER / "schema.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
