# SPDX-License-Identifier: Apache-2.0
"""What each identity of the chart may do, asked of the API server that would have to allow it."""

import json
from collections.abc import Iterator

import pytest

from lab.cluster import Cluster
from lab.waiting import eventually

OPERATOR = "system:serviceaccount:weir-system:weir-operator"
LIMITER = "system:serviceaccount:weir-system:weir-limiter"
TEAM = "rbac-team"
WRITES = ["create", "update", "patch", "delete", "deletecollection"]


def may(cluster: Cluster, user: str, verb: str, resource: str, namespace: str = "", name: str = "") -> bool:
    """Whether `user` may do that; `resource` is `group/plural[/subresource]`, the group "core" for ours without one."""
    group, plural, *subresource = resource.split("/")
    asked = {
        "verb": verb,
        "group": "" if group == "core" else group,
        "resource": plural,
        "subresource": "".join(subresource),
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": asked},
    }
    answer = cluster.kubectl("create", "-f", "-", "-o", "json", input=json.dumps(review))
    return bool(json.loads(answer)["status"]["allowed"])


@pytest.fixture(scope="module")
def team(cluster: Cluster) -> Iterator[str]:
    """A namespace in which `erin` is an editor and `vic` a viewer by the built-in roles."""
    cluster.kubectl("create", "namespace", TEAM)
    cluster.kubectl("create", "rolebinding", "erin", "--clusterrole=edit", "--user=erin", "-n", TEAM)
    cluster.kubectl("create", "rolebinding", "vic", "--clusterrole=view", "--user=vic", "-n", TEAM)
    yield TEAM
    cluster.kubectl("delete", "namespace", TEAM, "--wait=false")


@pytest.mark.parametrize("kind", ["ratelimitpolicies", "ratelimitoverrides"])
@pytest.mark.parametrize("verb", ["get", "list", "watch"])
def test_the_operator_reads_policies_everywhere(cluster: Cluster, kind: str, verb: str) -> None:
    assert may(cluster, OPERATOR, verb, f"weir.dev/{kind}")


@pytest.mark.parametrize("kind", ["ratelimitpolicies", "ratelimitoverrides"])
def test_the_operator_writes_the_status_of_an_object_and_never_the_object(cluster: Cluster, kind: str) -> None:
    assert may(cluster, OPERATOR, "patch", f"weir.dev/{kind}/status", "team-orders")
    assert [verb for verb in WRITES if may(cluster, OPERATOR, verb, f"weir.dev/{kind}", "team-orders")] == []


@pytest.mark.parametrize("name", ["edge-rules-0", "edge-envoy"])
@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
def test_the_operator_keeps_the_generated_config_maps(cluster: Cluster, verb: str, name: str) -> None:
    assert may(cluster, OPERATOR, verb, "core/configmaps", "weir-system", name)


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "name"),
    [
        ("patch", "core/configmaps", "weir-system", "weir-settings"),
        ("create", "core/configmaps", "weir-system", "another"),
        ("patch", "core/configmaps", "team-orders", "edge-rules-0"),
        ("list", "core/configmaps", "team-orders", ""),
        ("list", "core/configmaps", "", ""),
        ("get", "core/secrets", "weir-system", ""),
        ("list", "core/namespaces", "", ""),
        ("create", "core/events", "weir-system", ""),
        ("list", "apiextensions.k8s.io/customresourcedefinitions", "", ""),
        ("create", "core/serviceaccounts/token", "weir-system", "weir-operator"),
    ],
)
def test_the_operator_may_nothing_else(cluster: Cluster, verb: str, resource: str, namespace: str, name: str) -> None:
    assert not may(cluster, OPERATOR, verb, resource, namespace, name)


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
def test_a_limiter_reads_its_gateways_rules(cluster: Cluster, verb: str) -> None:
    assert may(cluster, LIMITER, verb, "core/configmaps", "weir-system", "edge-rules-0")


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "name"),
    [
        ("list", "core/configmaps", "weir-system", ""),
        ("get", "core/configmaps", "weir-system", "edge-envoy"),
        ("get", "core/configmaps", "weir-system", "weir-settings"),
        ("patch", "core/configmaps", "weir-system", "edge-rules-0"),
        ("delete", "core/configmaps", "weir-system", "edge-rules-0"),
        ("get", "weir.dev/ratelimitpolicies", "team-orders", ""),
        ("get", "core/secrets", "weir-system", ""),
    ],
)
def test_a_limiter_may_nothing_else(cluster: Cluster, verb: str, resource: str, namespace: str, name: str) -> None:
    assert not may(cluster, LIMITER, verb, resource, namespace, name)


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("kind", ["ratelimitpolicies", "ratelimitoverrides"])
def test_whoever_may_edit_a_namespace_may_write_its_policies_but_not_their_status(
    cluster: Cluster, team: str, kind: str
) -> None:
    eventually(lambda: may(cluster, "erin", "create", f"weir.dev/{kind}", team), within_s=20)
    assert [verb for verb in WRITES if not may(cluster, "erin", verb, f"weir.dev/{kind}", team)] == []
    assert not may(cluster, "erin", "patch", f"weir.dev/{kind}/status", team)
    assert not may(cluster, "erin", "create", f"weir.dev/{kind}", "team-orders")


@pytest.mark.parametrize("kind", ["ratelimitpolicies", "ratelimitoverrides"])
def test_whoever_may_view_a_namespace_may_read_its_policies(cluster: Cluster, team: str, kind: str) -> None:
    eventually(lambda: may(cluster, "vic", "get", f"weir.dev/{kind}", team), within_s=20)
    assert may(cluster, "vic", "get", f"weir.dev/{kind}/status", team)
    assert [verb for verb in WRITES if may(cluster, "vic", verb, f"weir.dev/{kind}", team)] == []
