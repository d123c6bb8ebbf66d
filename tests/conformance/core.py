# SPDX-License-Identifier: Apache-2.0
"""The Rust core as an implementation that vectors can be played on, through `weir_limiter._core.evaluate`.

The core keeps no state between calls of `evaluate`: it is given a whole sequence and answers with all replies. So this
one remembers the calls it was given and asks for all of them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from model import Rule
from vector import Call


@dataclass(slots=True)
class Core:
    """`evaluate` takes and returns JSON: {"steps": [{"now_us", "rules": [...]}]} to {"replies": [[integers]]}."""

    evaluate: Callable[[str], str]
    steps: list[dict[str, Any]] = field(default_factory=list)

    def decide_all(self, calls: Sequence[Call]) -> list[list[int]]:
        """The replies of calls made one after the other, following those of earlier calls of this method."""
        self.steps += [{"now_us": now_us, "rules": [_as_json(rule) for rule in rules]} for now_us, rules in calls]
        replies: list[list[int]] = json.loads(self.evaluate(json.dumps({"steps": self.steps})))["replies"]
        return replies[len(self.steps) - len(calls) :]

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Nothing to check: the core has no store that could forget."""


def _as_json(rule: Rule) -> dict[str, Any]:
    return {
        "key": rule.key, "id": rule.id, "p": rule.p, "l": rule.l, "capacity": rule.capacity,
        "increment": rule.increment, "enforcing": rule.enforcing,
    }  # fmt: skip
