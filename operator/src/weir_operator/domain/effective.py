# SPDX-License-Identifier: Apache-2.0
"""A compiled policy as the limiters get it: with what people did to it by hand.

Owns the folding of everything that changes a rule's mode after it was compiled. Pure, and cheap: a policy about which
nothing is to be said comes back as the very same object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir_operator.domain.interventions import ALL_RULES, KillSwitch
from weir_operator.domain.modes import Switch
from weir_operator.domain.ruleset import Policy, Rule


def effective_policy(policy: Policy, switches: Mapping[str, KillSwitch], now_s: float) -> Policy:
    """Return the policy with the live switches of each rule, and without any other.

    The policy may carry older switches: it may be the last accepted version, read back from what was published.
    """
    rules = tuple(_switched(rule, switches, now_s) for rule in policy.rules)
    unchanged = all(new is old for new, old in zip(rules, policy.rules, strict=True))
    return policy if unchanged else replace(policy, rules=rules)


def next_expiry(switches: Mapping[str, KillSwitch], now_s: float) -> int | None:
    """Return when the next of the live switches ends, in Unix seconds; None = none does by itself."""
    ends = (switch.not_after for switch in switches.values() if switch.is_live(now_s))
    return min((end for end in ends if end is not None), default=None)


def unknown_rules(policy: Policy, names: Mapping[str, object]) -> tuple[str, ...]:
    """Return which of the names mean no rule of the policy, sorted."""
    known = {ALL_RULES, *(rule.name for rule in policy.rules)}
    return tuple(sorted(name for name in names if name not in known))


def _switched(rule: Rule, switches: Mapping[str, KillSwitch], now_s: float) -> Rule:
    named = (switches.get(name) for name in (rule.name, ALL_RULES))
    found = {Switch(switch.mode, switch.not_after) for switch in named if switch is not None and switch.is_live(now_s)}
    live = tuple(sorted(found, key=lambda switch: (switch.mode, switch.not_after or 0))) or None
    return rule if live == rule.switches else replace(rule, switches=live)
