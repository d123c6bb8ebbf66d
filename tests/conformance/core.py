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

import wire
from model import Rule
from vector import Call


@dataclass(slots=True)
class Core:
    """`evaluate` takes and returns JSON: {"steps": [{"now_us", "rules": [...]}]} to {"replies": [[integers]]}.

    A step with "refund" and "charged_at_us" gives back what a call has charged; its reply is [1].
    """

    evaluate: Callable[[str], str]
    steps: list[dict[str, Any]] = field(default_factory=list)

    def decide_all(self, calls: Sequence[Call]) -> list[list[int]]:
        """The replies of calls made one after the other, following those of earlier calls of this method."""
        return self._run([{"now_us": now_us, "rules": _as_json(rules)} for now_us, rules in calls])

    def refund(self, now_us: int, charged_at_us: int, rules: Sequence[Rule]) -> None:
        """Give back what a call of these rules has charged."""
        step: dict[str, Any] = {"now_us": now_us, "refund": True, "charged_at_us": charged_at_us}
        step["rules"] = _as_json(rules, refund=True)
        assert self._run([step]) == [[1]]

    def check_ttl(self, key: str, ttl_ms: int) -> None:
        """Nothing to check: the core has no store that could forget."""

    def _run(self, steps: list[dict[str, Any]]) -> list[list[int]]:
        self.steps += steps
        replies: list[list[int]] = json.loads(self.evaluate(json.dumps({"steps": self.steps})))["replies"]
        return replies[len(self.steps) - len(steps) :]


def _as_json(rules: Sequence[Rule], *, refund: bool = False) -> list[dict[str, Any]]:
    return [
        {"key": rule.stored_under, "id": rule.id, "kind": kind, "enforcing": rule.enforcing, "numbers": row}
        for rule, (kind, row) in ((rule, wire.numbers(rule, refund=refund)) for rule in rules)
    ]
