# SPDX-License-Identifier: Apache-2.0
"""What a limiter's status says of the rules that it runs, joined by policy.

Owns the form of the entries of `rules`: strict about the members it uses, silent about those it does not know. Counts
are none of its business: they change with every request, and what is compared from poll to poll must not.
"""

from __future__ import annotations

from weir_operator.domain.limits import Mode
from weir_operator.reconcile.ports import PolicyRun

_STRENGTH = {Mode.DISABLED: 0, Mode.SHADOW: 1, Mode.ENFORCE: 2}


class UnusableAnswer(Exception):  # noqa: N818  named by its consequence
    """The answer is not a status document of this gateway."""


def parse_rules(entries: object) -> dict[str, PolicyRun]:
    """Return what runs, by policy; a limiter too old to say it runs nothing that is known of."""
    found: dict[str, tuple[int, dict[str, Mode]]] = {}
    for entry in entries if isinstance(entries, list) else ():
        match entry:
            case {"policy": str(policy), "rule": str(rule), "generation": int(generation), "mode": str(mode)}:
                _, modes = found.setdefault(policy, (generation, {}))
                effective = _mode(entry.get("effectiveMode", mode))
                modes[rule] = max(effective, modes.get(rule, Mode.DISABLED), key=_STRENGTH.__getitem__)
            case _:
                raise UnusableAnswer("GET /status: an entry of rules lacks policy, rule, generation or mode")
    return {policy: PolicyRun(generation, modes) for policy, (generation, modes) in found.items()}


def _mode(word: object) -> Mode:
    try:
        return Mode(str(word))
    except ValueError as error:
        raise UnusableAnswer(f"GET /status: {word!r} is no mode of a rule") from error
