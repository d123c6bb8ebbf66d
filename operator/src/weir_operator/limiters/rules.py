# SPDX-License-Identifier: Apache-2.0
"""What a limiter's status says of the rules that it runs, joined by policy.

Owns the form of the entries of `rules`, thousands in each answer, so it looks only at what it uses. Counts are none of
its business: they change with every request, and what is compared from poll to poll must not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import strongest
from weir_operator.reconcile.ports import PolicyRun

_MODES = {str(mode): mode for mode in Mode}
_UNTOLD = object()


class UnusableAnswer(Exception):  # noqa: N818  named by its consequence
    """The answer is not a status document of this gateway."""


def parse_rules(entries: object) -> dict[str, PolicyRun]:
    """Return what runs, by policy; a limiter too old to say it runs nothing that is known of."""
    found: dict[str, _Rules] = {}
    for entry in entries if isinstance(entries, list) else ():
        members = entry if isinstance(entry, dict) else {}
        policy, rule, generation = (members.get(name) for name in ("policy", "rule", "generation"))
        if not (isinstance(policy, str) and isinstance(rule, str) and isinstance(generation, int)):
            raise UnusableAnswer("GET /status: an entry of rules lacks policy, rule or generation")
        rules = found.get(policy)
        if rules is None:
            rules = found[policy] = _Rules(generation)
        rules.add(rule, _mode(members.get("effectiveMode", members.get("mode"))), members)
    return {policy: rules.run() for policy, rules in found.items()}


def parse_break_glass(member: object) -> tuple[dict[str, Mode], str]:
    """Return what break glass caps, and why it could not be read last; a limiter too old for it has none."""
    match member:
        case {"modes": dict(modes), "error": str() | None as error}:
            return {str(key): _mode(word) for key, word in modes.items()}, error or ""
        case _:
            return {}, ""


@dataclass(slots=True)
class _Rules:
    """The entries of one policy."""

    generation: int
    modes: dict[str, Mode] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)
    since_ms: int = 0
    unmatched: bool = True

    def add(self, name: str, effective: Mode, entry: Mapping[str, Any]) -> None:
        before = self.modes.get(name)
        self.modes[name] = effective if before is None else strongest((effective, before))
        if entry.get("lastRequestMs", _UNTOLD) is None:
            since_ms = entry.get("sinceMs")
            self.since_ms = max(self.since_ms, since_ms if isinstance(since_ms, int) else 0)
        else:
            self.unmatched = False
        if isinstance(version := entry.get("version"), str):
            self.versions.add(version)

    def run(self) -> PolicyRun:
        unmatched_since_ms = self.since_ms if self.unmatched else None
        return PolicyRun(self.generation, self.modes, frozenset(self.versions), unmatched_since_ms)


def _mode(word: object) -> Mode:
    mode = _MODES.get(str(word))
    if mode is None:
        raise UnusableAnswer(f"GET /status: {word!r} is no mode of a rule")
    return mode
