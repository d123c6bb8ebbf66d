# SPDX-License-Identifier: Apache-2.0
"""What the webhook answers to an AdmissionReview, and when it does not judge at all."""

from __future__ import annotations

from typing import Any

import pytest

from weir_operator.domain.conditions import Reason
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.domain.problems import Problem
from weir_operator.handlers.admission import WARNING_MAX_CHARS, judged
from weir_operator.reconcile.ports import POLICIES, Listing, Object, Resource
from weir_operator.reconcile.rehearsal import Foresight, Rehearsal
from weir_operator.reconcile.store import Store

POLICY = {"metadata": {"name": "api"}, "spec": {"rules": []}}
GATEWAY = Gateway("edge", "weir-system", (), frozenset({"*"}), hosts_default=HostsDefault.ANY)
BURST = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 10, "period": "1s"}}


class Strict:
    """Refuses whatever it is asked about, and remembers it."""

    def __init__(self, foresight: Foresight | None = None) -> None:
        self.asked: list[Object] = []
        self._foresight = foresight or Foresight((Problem("spec.rules", Reason.INVALID, "is empty", "write one"),))

    def of(self, _: Resource, obj: Object) -> Foresight:
        self.asked.append(obj)
        return self._foresight


def review(**members: Any) -> dict[str, Any]:
    return {"uid": "u", "kind": {"kind": "RateLimitPolicy"}, "namespace": "team", "object": POLICY, **members}


def test_a_refusal_carries_the_conditions_reason_and_message() -> None:
    answer = judged(review(), Strict())
    assert answer == {
        "uid": "u",
        "allowed": False,
        "status": {"code": 403, "reason": "Invalid", "message": "Invalid: spec.rules: is empty; write one"},
    }


def test_surprises_are_warnings_short_enough_for_the_api_server() -> None:
    answer = judged(review(), Strict(Foresight(surprises=("x" * 400,))))
    assert (answer["allowed"], answer["warnings"]) == (True, ["x" * WARNING_MAX_CHARS])


@pytest.mark.parametrize(
    "members",
    [
        {"oldObject": POLICY, "object": {**POLICY, "metadata": {"name": "api", "labels": {"a": "b"}}}},
        {"object": {**POLICY, "metadata": {"name": "api", "deletionTimestamp": "2026-12-01T00:00:00Z"}}},
        {"oldObject": {**POLICY, "spec": {}}, "subResource": "status"},
        {"object": None, "oldObject": POLICY},
        {"kind": {"kind": "Pod"}},
    ],
    ids=["metadata", "deleting", "status", "delete", "another kind"],
)
def test_what_is_no_change_of_a_spec_is_not_judged(members: dict[str, Any]) -> None:
    strict = Strict()
    assert judged(review(**members), strict) == {"uid": "u", "allowed": True}
    assert strict.asked == []


def test_an_object_without_a_name_yet_is_judged_in_its_namespace() -> None:
    strict = Strict()
    judged(review(object={"metadata": {"generateName": "api-"}, "spec": {}}), strict)
    assert strict.asked[0]["metadata"] == {"generateName": "api-", "name": "api-new", "namespace": "team"}


def policy(name: str, namespace: str = "team", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "generation": 1}
    whole = {"gateway": "edge", "mode": "Enforce", "rules": [BURST], **spec}
    return {
        "metadata": {**metadata, "resourceVersion": "1", "creationTimestamp": "2026-12-01T00:00:00Z"},
        "spec": whole,
    }


def rehearsal(*stored: dict[str, Any]) -> Rehearsal:
    store = Store([GATEWAY], lambda _: None)
    store.relist((POLICIES, None), Listing(stored, 1))
    return Rehearsal(store, [GATEWAY])


def test_a_policy_is_judged_beside_those_that_are_there() -> None:
    full = [{**BURST, "name": f"r{n}"} for n in range(5)]
    (problem,) = rehearsal(policy("first", rules=full)).of(POLICIES, policy("second", rules=full)).problems
    assert problem.reason is Reason.BUDGET_EXCEEDED
    assert "team/first" in problem.message
    assert rehearsal(policy("second", rules=full)).of(POLICIES, policy("second", rules=full)).problems == ()


def test_an_author_is_told_who_limits_the_same_requests() -> None:
    there = policy("theirs", "other", match={"hosts": ["api.example.com"]})
    surprises = rehearsal(there).of(POLICIES, policy("mine", match={"hosts": ["api.example.com"]})).surprises
    assert len(surprises) == 1
    assert "is limited by other/theirs as well" in surprises[0]
    assert rehearsal(there).of(POLICIES, policy("mine", match={"hosts": ["b.example.com"]})).surprises == ()


def test_of_two_rules_with_one_key_the_idle_one_is_named() -> None:
    loose = {**BURST, "name": "loose", "limit": {"requests": 20, "period": "1s"}}
    same = {**BURST, "name": "same"}
    other = {**loose, "name": "other", "key": [{"header": "x-other"}]}
    surprises = rehearsal().of(POLICIES, policy("mine", rules=[BURST, loose, same, other])).surprises
    assert [text.partition(":")[0] for text in surprises] == ["spec.rules[loose]", "spec.rules[same]"]


def test_a_policy_in_shadow_is_said_to_refuse_nobody() -> None:
    assert ["refuses nobody" in text for text in rehearsal().of(POLICIES, policy("mine", mode="Shadow")).surprises] == [
        True
    ]
