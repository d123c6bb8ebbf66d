# SPDX-License-Identifier: Apache-2.0
"""What is legal in a policy and yet may surprise its author. Words for a warning, never a reason to refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weir_operator.domain.crowds import find_crowds
from weir_operator.domain.limits import Mode
from weir_operator.domain.loosening import only_admits_more
from weir_operator.domain.ruleset import Policy

OTHERS_MAX = 3  # policies of others that are named; a person looks at the rest with `kubectl get`
COMPARED_MAX = 50  # arbitrary: so that a warning takes no time; each costs a tenth of a millisecond


def surprises_of(policy: Policy, others: Iterable[Policy]) -> list[str]:
    """Return the warnings for an accepted policy beside those of its gateway."""
    return [*_shadow(policy), *_idle_rules(policy), *_neighbours(policy, others)]


def _shadow(policy: Policy) -> Iterator[str]:
    if all(rule.mode is Mode.SHADOW for rule in policy.rules):
        yield "spec.mode: in Shadow this policy counts and reports, and refuses nobody; that is also the default"


def _idle_rules(policy: Policy) -> Iterator[str]:
    rules = [rule for rule in policy.rules if rule.mode is Mode.ENFORCE]
    for number, idle in enumerate(rules):
        for place, strict in enumerate(rules):
            equal = only_admits_more(strict, idle)
            if place != number and only_admits_more(idle, strict) and not (equal and place > number):
                yield (
                    f"spec.rules[{idle.name}]: can never refuse anybody, because the rule {strict.name} "
                    f"has the same key and is {'the same' if equal else 'stricter'}"
                )
                break


def _neighbours(policy: Policy, others: Iterable[Policy]) -> Iterator[str]:
    """Policies of other namespaces that meet this one in some request."""
    namespace, _, _ = policy.id.partition("/")
    near = [other for other in others if other.id.partition("/")[0] != namespace]
    met = []
    for other in near[:COMPARED_MAX]:
        crowds = find_crowds((policy, other), (1, 1), 1)
        if crowds:
            met.append((crowds[0].request, other.id))
    for request, other_id in met[:OTHERS_MAX]:
        yield f"spec.match: {request} is limited by {other_id} as well; each rule of both must allow it"
    if len(met) > OTHERS_MAX:
        yield f"spec.match: {len(met) - OTHERS_MAX} more policies of other namespaces limit some of the same requests"
