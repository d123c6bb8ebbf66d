# SPDX-License-Identifier: Apache-2.0
"""Numbers between the two programs: what the operator accepts, the limiter takes, and both make the same of it.

A limiter refuses a document as a whole, so one number that only the operator believes in would stop every change of its
gateway.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from weir_limiter import _core
from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.ruleset import publish, to_bytes

GATEWAY = Gateway(
    "edge", "weir", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY, max_delay_ms=3_600_000
)
METADATA = {"namespace": "team", "name": "x", "generation": 1}
REQUEST = {"path": "/", "headers": {"x-api-key": "k"}}

small = st.integers(1, 30)
edges = st.sampled_from([9_999, 10_000, 10_001, 10**6, 10**6 + 1, 2**53 - 1, 10**12, 10**12 + 1])
numbers = st.one_of(small, small, edges, st.integers(1, 10**12))
periods = st.sampled_from(["1ms", "7ms", "999ms", "1s", "90s", "1h", "24h", "744h"])
delays = st.sampled_from(["1ms", "10s", "1h"])
zones = st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia", "America/Sao_Paulo"])


def limits(algorithm: str) -> st.SearchStrategy[dict[str, Any]]:
    fixed = {"algorithm": st.just(algorithm), "requests": numbers}
    timed = st.fixed_dictionaries({**fixed, "period": periods})
    match algorithm:
        case "TokenBucket":
            return st.fixed_dictionaries({**fixed, "period": periods}, optional={"burst": numbers})
        case "LeakyBucket":
            held = st.fixed_dictionaries({**fixed, "period": periods, "queue": numbers, "maxDelay": delays})
            return st.one_of(timed, held)
        case "FixedWindow":
            calendars = {"calendar": st.sampled_from(["Day", "Week", "Month"]), "timeZone": zones}
            return st.one_of(timed, st.fixed_dictionaries({**fixed, **calendars}))
    return timed


def rules(algorithm: str) -> st.SearchStrategy[dict[str, Any]]:
    entries = st.builds(lambda cost: {"match": {"path": "/dear"}, "cost": cost}, st.one_of(small, numbers))
    plans = st.builds(lambda limit: {"from": {"header": "x-plan"}, "limits": {"gold": limit}}, limits(algorithm))
    return st.fixed_dictionaries(
        {"name": st.just("only"), "key": st.just([{"header": "x-api-key"}]), "limit": limits(algorithm)},
        optional={"cost": st.lists(entries, max_size=2), "plans": plans, "scope": st.just("Instance")},
    )


OWN = {"TokenBucket": {"burst": numbers}, "LeakyBucket": {"queue": st.integers(0, 40), "maxDelay": delays}}
factors = st.one_of(st.integers(1, 5_000), st.integers(1, 1_000_000)).map(lambda milli: f"{milli / 1000:.3f}")


def changes(algorithm: str) -> st.SearchStrategy[dict[str, Any]]:
    """What an override changes; sometimes a number that goes with another algorithm."""
    members = {"requests": numbers, "period": periods, **OWN.get(algorithm, {})}
    others = {name: {other: members[other] for other in members if other != name} for name in members}
    replaced = st.one_of(
        *(st.fixed_dictionaries({name: members[name]}, optional=others[name]) for name in members),
        st.fixed_dictionaries({"burst": numbers}),
    )
    return st.one_of(
        st.builds(lambda factor: {"action": "Multiply", "factor": factor}, factors),
        st.builds(lambda limit: {"action": "Set", "limit": limit}, replaced),
    )


@pytest.mark.requirement("R11", "R15")
@pytest.mark.parametrize(
    "algorithm", ["TokenBucket", "LeakyBucket", "FixedWindow", "SlidingWindowCounter", "SlidingWindowLog"]
)
@settings(deadline=None, max_examples=150)
@given(st.data())
def test_what_the_operator_accepts_the_limiter_takes_and_reads_alike(algorithm: str, data: st.DataObject) -> None:
    """D69: also with the numbers that an override makes, in every plan."""
    rule, change = data.draw(rules(algorithm)), data.draw(changes(algorithm))
    policy = parse_policy({"metadata": METADATA, "spec": {"gateway": "edge", "mode": "Enforce", "rules": [rule]}})
    subject = {"x-api-key": {"sha256": hashlib.sha256(b"k").hexdigest()}}
    spec = {"policyRef": {"name": "x"}, "subjects": [subject], "permanent": True, **change}
    override = parse_override({"metadata": METADATA, "spec": spec})
    compiled = compile_ruleset([policy], [override], GATEWAY, None)
    event("override accepted" if compiled.overrides["team/x"].accepted else "override refused")
    document = to_bytes(publish(compiled.ruleset, 1))
    _core.check(document)
    if not compiled.ruleset.overrides:
        return
    (explained,) = json.loads(_core.explain(document, json.dumps(REQUEST).encode()))["rules"]
    (written,) = compiled.ruleset.overrides
    (only,) = compiled.ruleset.policies[0].rules
    meant = replace(compiled.ruleset.policies[0], rules=(replace(only, limit=written.over(only.limit)),))
    meant_ruleset = replace(compiled.ruleset, policies=(meant,), overrides=())
    (expected,) = json.loads(to_bytes(publish(meant_ruleset, 1)))["policies"][0]["rules"]
    assert explained["limit"] == expected["limit"]
