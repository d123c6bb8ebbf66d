# SPDX-License-Identifier: Apache-2.0
"""A rehearsal says of an object what a pass over everything would say, though it looks at a part."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from weir_operator.api.parsing import parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.neighbourhood import neighbours_of
from weir_operator.reconcile.ports import POLICIES, Listing
from weir_operator.reconcile.rehearsal import Rehearsal
from weir_operator.reconcile.store import Store

GATEWAY = Gateway("edge", "weir-system", (), frozenset({"*"}), hosts_default=HostsDefault.ANY)
HOSTS = st.lists(st.sampled_from(["a.test", "x.a.test", "*.a.test", "b.test", "*.test", "c.example"]), max_size=2)


def policy(name: str, hosts: list[str], rules: int, age: int = 0) -> dict[str, Any]:
    limit = {"key": [], "limit": {"requests": 10, "period": "1s"}}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": name,
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": f"2026-12-01T00:00:{age:02}Z",
        },
        "spec": {
            "gateway": "edge",
            "mode": "Enforce",
            "match": {"hosts": hosts},
            "rules": [{"name": f"r{n}", **limit} for n in range(rules)],
        },
    }


@given(st.lists(st.tuples(HOSTS, st.integers(1, 6)), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_the_verdict_is_the_one_of_a_pass_over_all(drawn: list[tuple[list[str], int]]) -> None:
    found = [policy(f"p{n}", hosts, rules, n) for n, (hosts, rules) in enumerate(drawn)]
    store = Store([GATEWAY], lambda _: None)
    store.relist((POLICIES, None), Listing(tuple(found[:-1]), 1))
    whole = compile_ruleset([parse_policy(one) for one in found], (), GATEWAY, None)
    expected = whole.policies[f"team/p{len(found) - 1}"].problems
    assert Rehearsal(store, [GATEWAY]).of(POLICIES, found[-1]).problems == expected


def test_policies_of_other_hosts_are_left_out_and_links_between_hosts_are_followed() -> None:
    mine = parse_policy(policy("mine", ["x.a.test"], 1))
    others = {
        "wide": ["*.a.test"],
        "linked": ["*.a.test", "b.test"],
        "beyond": ["b.test"],
        "apart": ["c.example"],
    }
    found = neighbours_of(mine, [parse_policy(policy(name, hosts, 1)) for name, hosts in others.items()])
    assert [one.meta.name for one in found] == ["wide", "linked", "beyond"]
    everywhere = neighbours_of(mine, [parse_policy(policy("all", [], 1)), parse_policy(policy("c", ["c.example"], 1))])
    assert [one.meta.name for one in everywhere] == ["all", "c"]
