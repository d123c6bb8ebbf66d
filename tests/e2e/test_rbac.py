# SPDX-License-Identifier: Apache-2.0
"""What each identity of the chart may do, asked of the API server that would have to allow it."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from lab.cluster import Cluster
from lab.waiting import eventually

OPERATOR = "system:serviceaccount:weir-system:weir-operator"
LIMITER = "system:serviceaccount:weir-system:weir-limiter"
TEAM = "rbac-team"
KINDS = ("ratelimitpolicies", "ratelimitoverrides")
READS = ("get", "list", "watch")
WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Access(NamedTuple):
    """A question: `resource` is `plural[/subresource]`, with `.group` where it is not the core group's."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""

    def review(self, user: str) -> dict[str, object]:
        resource, _, subresource = self.resource.partition("/")
        plural, _, group = resource.partition(".")
        asked = {"verb": self.verb, "group": group, "resource": plural, "subresource": subresource}
        where = {"namespace": self.namespace, "name": self.name}
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": asked | where},
        }


def allowed(cluster: Cluster, user: str, accesses: Sequence[Access]) -> list[Access]:
    """Those of `accesses` that the API server grants `user`, in their order."""
    reviews = {"apiVersion": "v1", "kind": "List", "items": [access.review(user) for access in accesses]}
    printed = ("-o", r'jsonpath={.status.allowed}{"\n"}')
    answers = cluster.kubectl("create", "-f", "-", *printed, input=json.dumps(reviews)).split()
    return [access for access, answer in zip(accesses, answers, strict=True) if answer == "true"]


def on_kinds(verbs: Sequence[str], namespace: str = "", subresource: str = "") -> list[Access]:
    return [Access(verb, f"{kind}.weir.dev{subresource}", namespace) for kind in KINDS for verb in verbs]


@pytest.fixture(scope="module")
def team_namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace in which `erin` is an editor, `vic` a viewer by the built-in roles, and `sam` a switcher by ours."""
    cluster.kubectl("create", "namespace", TEAM)
    cluster.kubectl("create", "rolebinding", "erin", "--clusterrole=edit", "--user=erin", "-n", TEAM)
    cluster.kubectl("create", "rolebinding", "vic", "--clusterrole=view", "--user=vic", "-n", TEAM)
    cluster.kubectl("create", "rolebinding", "sam", "--clusterrole=weir-switcher", "--user=sam", "-n", TEAM)
    yield TEAM
    cluster.kubectl("delete", "namespace", TEAM, "--wait=false")


def test_the_operator_reads_both_kinds_everywhere(cluster: Cluster) -> None:
    wanted = on_kinds(READS)
    assert allowed(cluster, OPERATOR, wanted) == wanted


def test_the_operator_writes_the_status_of_an_object(cluster: Cluster) -> None:
    wanted = on_kinds(["patch"], "team-orders", "/status")
    assert allowed(cluster, OPERATOR, wanted) == wanted


def test_the_operator_never_writes_the_object_itself(cluster: Cluster) -> None:
    assert allowed(cluster, OPERATOR, on_kinds(WRITES, "team-orders")) == []


def test_the_operator_keeps_the_generated_config_maps(cluster: Cluster) -> None:
    wanted = [
        Access(verb, "configmaps", "weir-system", name)
        for name in ("edge-rules-0", "edge-envoy")
        for verb in ("list", "watch", "create", "patch", "delete")
    ]
    assert allowed(cluster, OPERATOR, wanted) == wanted


def test_the_operator_may_hold_its_own_lease_and_no_other(cluster: Cluster) -> None:
    wanted = [
        Access("create", "leases.coordination.k8s.io", "weir-system"),
        Access("get", "leases.coordination.k8s.io", "weir-system", "weir-operator"),
        Access("update", "leases.coordination.k8s.io", "weir-system", "weir-operator"),
    ]
    unwanted = [
        Access("update", "leases.coordination.k8s.io", "weir-system", "another"),
        Access("delete", "leases.coordination.k8s.io", "weir-system", "weir-operator"),
        Access("create", "leases.coordination.k8s.io", "kube-system"),
    ]
    assert allowed(cluster, OPERATOR, [*wanted, *unwanted]) == wanted


def test_the_operator_may_nothing_else(cluster: Cluster) -> None:
    unwanted = [
        Access("patch", "configmaps", "weir-system", "weir-settings"),
        Access("delete", "configmaps", "weir-system", "weir-settings"),
        Access("create", "configmaps", "weir-system", "another"),
        *[Access(verb, "configmaps", "weir-system", "edge-breakglass") for verb in WRITES],
        Access("patch", "configmaps", "team-orders", "edge-rules-0"),
        Access("list", "configmaps", "team-orders"),
        Access("list", "configmaps"),
        Access("get", "secrets", "weir-system"),
        Access("list", "namespaces"),
        Access("create", "events", "weir-system"),
        Access("list", "customresourcedefinitions.apiextensions.k8s.io"),
        Access("create", "serviceaccounts/token", "weir-system", "weir-operator"),
    ]
    assert allowed(cluster, OPERATOR, unwanted) == []


def test_a_limiter_reads_its_gateways_rules(cluster: Cluster) -> None:
    names = ("edge-rules-0", "edge-breakglass")
    wanted = [Access(verb, "configmaps", "weir-system", name) for name in names for verb in READS]
    assert allowed(cluster, LIMITER, wanted) == wanted


def test_a_limiter_may_nothing_else(cluster: Cluster) -> None:
    unwanted = [
        *[Access(verb, "configmaps", "weir-system", "edge-rules-0") for verb in WRITES],
        *[Access(verb, "configmaps", "weir-system", "edge-breakglass") for verb in WRITES],
        Access("list", "configmaps", "weir-system"),
        Access("get", "configmaps", "weir-system", "edge-envoy"),
        Access("get", "configmaps", "weir-system", "weir-settings"),
        Access("get", "secrets", "weir-system"),
        *on_kinds(READS, "team-orders"),
    ]
    assert allowed(cluster, LIMITER, unwanted) == []


@pytest.mark.requirement("R40")
def test_whoever_may_edit_a_namespace_may_write_its_policies(cluster: Cluster, team_namespace: str) -> None:
    wanted = on_kinds((*READS, *WRITES), team_namespace)
    eventually(lambda: allowed(cluster, "erin", wanted) == wanted, within_s=20)
    assert allowed(cluster, "erin", on_kinds(WRITES, "team-orders")) == []


def test_whoever_may_view_a_namespace_may_read_its_policies_and_their_status(
    cluster: Cluster, team_namespace: str
) -> None:
    wanted = [*on_kinds(READS, team_namespace), *on_kinds(["get"], team_namespace, "/status")]
    eventually(lambda: allowed(cluster, "vic", wanted) == wanted, within_s=20)
    assert allowed(cluster, "vic", on_kinds(WRITES, team_namespace)) == []


@pytest.mark.parametrize("user", ["erin", "vic"])
def test_no_team_may_write_status(cluster: Cluster, team_namespace: str, user: str) -> None:
    assert allowed(cluster, user, on_kinds(["update", "patch"], team_namespace, "/status")) == []


@pytest.mark.requirement("R42")
def test_a_switcher_may_touch_nothing_but_the_status_of_policies(cluster: Cluster, team_namespace: str) -> None:
    verbs = (*READS, *WRITES)
    status = on_kinds(verbs, team_namespace, "/status")
    granted = [Access(verb, "ratelimitpolicies.weir.dev/status", team_namespace) for verb in ("get", "patch")]
    eventually(lambda: allowed(cluster, "sam", status) == granted, within_s=20)
    assert allowed(cluster, "sam", [*on_kinds(verbs, team_namespace), *on_kinds(verbs, "team-orders", "/status")]) == []
