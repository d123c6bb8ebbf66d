# SPDX-License-Identifier: Apache-2.0
"""What a rule's version is: the name of its numbers and of the requests that they hold for.

Evidence belongs to a version. So everything is in it that changes who is refused while the store answers, and nothing
else: a rule that goes from shadow to enforced, or whose refusals are worded anew, keeps its evidence.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from weir_operator.domain.ruleset import Policy, Rule, Ruleset, canonical_json
from weir_operator.domain.wire import Json, encode

_DIGITS = 12  # as many as a Git commit is abbreviated to; an accident costs evidence, not correctness

_NOT_IN_IT = frozenset(
    {
        *("name", "version", "slot"),  # which rule, not what it does
        *("mode", "stage", "switches"),  # for whom its verdict counts
        *("onStoreFailure", "localFactorMilli"),  # what holds without a store; no evidence tells of that
        *("visibility", "code"),  # what the client is told
    }
)


def rule_version(rule: Rule, policy: Policy) -> str:
    """The version of a rule of this policy: equal as long as it would refuse the same requests."""
    rule_members = {name: value for name, value in encode(rule).items() if name not in _NOT_IN_IT}
    return _version(rule_members, _seen(policy))


def limit_version(rule: Rule) -> str:
    """What names a rule's own numbers, whichever requests its policy lets it see: what a rollout is about."""
    return _version({name: value for name, value in encode(rule).items() if name not in _NOT_IN_IT}, {})


def with_versions(policy: Policy) -> Policy:
    """The policy with each rule's version written into it."""
    return replace(policy, rules=tuple(replace(rule, version=rule_version(rule, policy)) for rule in policy.rules))


def upgraded(ruleset: Ruleset) -> Ruleset:
    """A ruleset that was read from a document of format 1, with what format 2 always has."""
    return replace(ruleset, policies=tuple(with_versions(policy) for policy in ruleset.policies))


def _seen(policy: Policy) -> dict[str, Json]:
    """Which requests the policy's rules see."""
    return {"match": encode(policy.match), "exempt": encode(policy.exempt)}


def _version(rule_members: dict[str, Json], seen: dict[str, Json]) -> str:
    return hashlib.sha256(canonical_json({**rule_members, **seen})).hexdigest()[:_DIGITS]
