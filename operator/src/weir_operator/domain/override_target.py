# SPDX-License-Identifier: Apache-2.0
"""A policy as its overrides see it: what thousands of them would each work out again.

Owns what only the policy and the gateway decide. What an override says is `override_compiler`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence

from weir_operator.domain.gateways import Gateway
from weir_operator.domain.override_numbers import Change, check_numbers
from weir_operator.domain.override_subjects import sources_of
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Policy, Rule


def one_entry_each(policy: Policy) -> list[Rule]:
    """The rules, without the candidates of a rollout beside them that a kept policy has: limiters ask both anyway."""
    first = {rule.name: rule for rule in reversed(policy.rules)}
    return [rule for rule in policy.rules if first[rule.name] is rule]


class Selection:
    """The rules that an override selects, and `keyed`: all that their keys are made of, sorted."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.keyed = tuple(sorted(frozenset().union(*(sources_of(rule) for rule in rules))))
        self._fitting: dict[frozenset[frozenset[str]], tuple[Rule, ...]] = {}

    def fitting(self, whos: frozenset[frozenset[str]]) -> tuple[Rule, ...]:
        """The rules whose key has all the sources of one of these sets."""
        if whos not in self._fitting:
            self._fitting[whos] = tuple(rule for rule in self.rules if any(names <= sources_of(rule) for names in whos))
        return self._fitting[whos]


class Target:
    """The version of a policy that runs on a gateway."""

    def __init__(self, policy: Policy, gateway: Gateway) -> None:
        self.policy = policy
        self._gateway = gateway
        self._selections: dict[tuple[str, ...], Selection] = {}
        self._checked: dict[tuple[Change, tuple[str, ...]], tuple[Problem, ...]] = {}

    def select(self, names: tuple[str, ...]) -> Selection:
        """The rules of these names, in the policy's order; no names = all rules."""
        if names not in self._selections:
            rules = tuple(rule for rule in one_entry_each(self.policy) if not names or rule.name in names)
            self._selections[names] = Selection(rules)
        return self._selections[names]

    def check_numbers(self, change: Change, rules: Sequence[Rule]) -> tuple[Problem, ...]:
        """What is wrong with the numbers that `change` makes of those of `rules`, which are some of the policy's."""
        question = change, tuple(rule.name for rule in rules)
        if question not in self._checked:
            self._checked[question] = tuple(check_numbers(change, rules, self._gateway))
        return self._checked[question]
