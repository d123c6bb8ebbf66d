# SPDX-License-Identifier: Apache-2.0
"""Which gateway a piece of news concerns, and which news is none."""

from typing import Any

import pytest

from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import Action, Dialect
from weir_operator.domain.overriding import Override
from weir_operator.domain.ruleset import Match, Policy, Response, Ruleset
from weir_operator.reconcile.ports import CONFIG_MAPS, OVERRIDES, POLICIES, Listing, Resource
from weir_operator.reconcile.store import ORPHANS, Store

GATEWAYS = [Gateway("edge", "weir-system"), Gateway("inner", "weir-inner")]


class News:
    """A store and the gateways that it marked since the last look."""

    def __init__(self) -> None:
        self._marked: set[str] = set()
        self._version = 0
        self.store = Store(GATEWAYS, self._marked.add)

    def tell(self, resource: Resource, obj: dict[str, Any], *, deleted: bool = False) -> set[str]:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._marked.clear()
        self.store.observe(resource, obj, deleted=deleted)
        return set(self._marked)


@pytest.fixture
def news() -> News:
    return News()


def policy(gateway: str | None = "edge", generation: int = 1, **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "t", "name": "p", "uid": "u", "generation": generation}
    return {"metadata": metadata, "spec": {"gateway": gateway} if gateway else {}, **more}


def override(policy_name: str = "p", generation: int = 1) -> dict[str, Any]:
    metadata = {"namespace": "t", "name": "o", "uid": "v", "generation": generation}
    return {"metadata": metadata, "spec": {"policyRef": {"name": policy_name}}}


def config_map(name: str, namespace: str = "weir-system", label: str = "", data: str = "") -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "weir-operator"} | ({"weir.dev/gateway": label} if label else {})
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}, "data": {"x": data}}


def test_a_policy_concerns_its_gateway(news: News) -> None:
    assert news.tell(POLICIES, policy()) == {"edge", ORPHANS}


def test_a_policy_that_moves_concerns_both_gateways(news: News) -> None:
    news.tell(POLICIES, policy("edge"))
    assert news.tell(POLICIES, policy("inner", 2)) == {"edge", "inner", ORPHANS}


def test_a_policy_of_no_gateway_concerns_the_orphans(news: News) -> None:
    assert news.tell(POLICIES, policy("none")) == {ORPHANS}
    assert news.tell(POLICIES, policy(None, 2)) == {ORPHANS}


def test_an_override_concerns_its_policys_gateway(news: News) -> None:
    assert news.tell(OVERRIDES, override()) == {ORPHANS}
    news.tell(POLICIES, policy())
    assert news.tell(OVERRIDES, override(generation=2)) == {"edge", ORPHANS}


def test_an_override_concerns_the_gateways_that_run_it_or_its_policy(news: News) -> None:
    news.tell(POLICIES, policy("typo"))
    exempt = Override("t/o", "t/gone", ("r",), (), Action.EXEMPT, None, None, None)
    news.store.published("inner", Ruleset("inner", (), (exempt,)))
    assert news.tell(OVERRIDES, override("none")) == {"inner", ORPHANS}
    match, response = Match((), ()), Response(Dialect.NONE, None)
    news.store.published("edge", Ruleset("edge", (Policy("t/p", 1, match, (), (), response),)))
    assert news.tell(OVERRIDES, override("p", 2)) == {"edge", "inner", ORPHANS}
    assert news.tell(OVERRIDES, override("other", 3)) == {"edge", "inner", ORPHANS}


@pytest.mark.parametrize(
    "change",
    [
        lambda o: o["metadata"].update(labels={"a": "b"}),
        lambda o: o["metadata"].update(annotations={"a": "b"}),
        lambda o: o["metadata"].update(managedFields=[]),
    ],
)
def test_a_users_labels_and_annotations_are_no_news(news: News, change: Any) -> None:
    """D49."""
    news.tell(POLICIES, policy())
    touched = policy()
    change(touched)
    assert news.tell(POLICIES, touched) == set()


def test_somebody_elses_status_is_news_and_our_own_is_not(news: News) -> None:
    """D49: an own write must not wake the writer."""
    news.tell(POLICIES, policy())
    ours = policy(status={"mode": "Enforce"})
    ours["metadata"]["resourceVersion"] = "50"
    news.store.wrote(POLICIES, ours)
    news._version = 49
    assert news.tell(POLICIES, dict(ours)) == set()
    assert news.tell(POLICIES, policy(status={})) == {"edge", ORPHANS}


def test_a_config_map_concerns_its_gateway_by_label_or_by_name(news: News) -> None:
    """D55: also after its labels were stripped."""
    assert news.tell(CONFIG_MAPS, config_map("edge-rules-0", label="edge")) == {"edge"}
    assert news.tell(CONFIG_MAPS, config_map("edge-rules-0"), deleted=True) == {"edge"}
    assert news.tell(CONFIG_MAPS, config_map("edge-rules-7", label="edge")) == {"edge"}
    assert news.tell(CONFIG_MAPS, config_map("edge-rules-0", namespace="weir-inner")) == set()
    assert news.tell(CONFIG_MAPS, config_map("edge-rules-0", namespace="elsewhere")) == set()


def test_a_list_reports_only_what_no_event_had_told(news: News) -> None:
    known = policy()
    news.tell(POLICIES, known)
    assert news.store.relist((POLICIES, None), Listing((known,), 5)) == 0
    assert news.store.relist((POLICIES, None), Listing((), 6)) == 1


def test_a_list_older_than_what_was_known_before_it_was_asked_for_is_a_rewound_history(news: News) -> None:
    known = policy()
    news.tell(POLICIES, known)
    asked_at = news.store.newest((POLICIES, None))
    assert news.store.relist((POLICIES, None), Listing((), asked_at - 1), asked_at=asked_at) == 1
    assert news.store.newest((POLICIES, None)) == asked_at - 1


def test_a_policy_that_names_no_gateway_stays_with_the_one_that_runs_it(news: News) -> None:
    news.tell(POLICIES, policy("none"))
    assert [obj["metadata"]["name"] for obj, _ in news.store.orphans().policies] == ["p"]
    news.store.published("edge", Ruleset("edge"))
    assert news.store.observation_of("edge").group.policies == ()


def test_an_object_that_changed_since_it_was_compiled_is_not_current(news: News) -> None:
    """D54: a status for one generation never lands on the next."""
    news.tell(POLICIES, policy())
    (compiled,) = news.store.observation_of("edge").group.policies
    assert news.store.current(POLICIES, compiled.meta) is not None
    news.tell(POLICIES, policy(generation=2))
    assert news.store.current(POLICIES, compiled.meta) is None
