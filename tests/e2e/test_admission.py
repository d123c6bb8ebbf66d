# SPDX-License-Identifier: Apache-2.0
"""What the schema and its validation rules can refuse, the API server refuses, and it names the field.

The cases are data: `manifests/admission-accepted.yaml` and `manifests/admission-refused.yaml`. The unit tests run
the same cases through the operator.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Cluster, KubectlError

NAMESPACE = "team-orders"
MANIFESTS = Path(__file__).parent / "manifests"
SERVER_DEFAULTS = {"RateLimitPolicy": {"gateway": "default", "mode": "Shadow"}, "RateLimitOverride": {}}


def cases(name: str) -> list[Any]:
    loaded = yaml.safe_load((MANIFESTS / f"admission-{name}.yaml").read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["case"].replace(" ", "-")) for case in loaded]


def manifest(case: dict[str, Any], name: str) -> str:
    metadata = {"name": name, "namespace": NAMESPACE}
    return json.dumps(
        {"apiVersion": "weir.dev/v1alpha1", "kind": case["kind"], "metadata": metadata, "spec": case["spec"]}
    )


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("case", cases("refused"))
def test_a_bad_spec_is_refused_by_the_api_server_with_the_path_of_the_field(
    cluster: Cluster, case: dict[str, Any]
) -> None:
    """D68, D69, and the schema's share of D03 and D22."""
    with pytest.raises(KubectlError) as refusal:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", input=manifest(case, "admission-refused"))
    assert case["field"] in str(refusal.value)
    assert "evaluating rule" not in str(refusal.value)  # a rule that broke on what another had refused


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("case", cases("accepted"))
def test_a_good_spec_is_kept_as_it_was_written(cluster: Cluster, case: dict[str, Any]) -> None:
    """D58: but for the documented defaults of `gateway` and `mode`, nothing is added, dropped or respelt."""
    text = manifest(case, "admission-accepted")
    try:
        cluster.apply(text)
        stored = cluster.get(case["kind"], "admission-accepted", NAMESPACE)
        assert {**SERVER_DEFAULTS[case["kind"]], **case["spec"]} == stored["spec"]
        assert cluster.kubectl("diff", "-f", "-", input=text) == ""
    finally:
        cluster.kubectl("delete", case["kind"], "admission-accepted", "-n", NAMESPACE, "--ignore-not-found")


def largest_spec(last_cost: int) -> dict[str, Any]:
    """As much of everything as the schema allows wherever a validation rule looks."""
    limit = {"requests": 100, "period": "1s"}
    cost = [{"match": {"path": f"/{n}"}, "cost": 100} for n in range(15)]
    rule = {
        "key": [{"header": f"x-{n}"} for n in range(8)],
        "limit": limit,
        "plans": {"from": {"claim": "plan"}, "limits": {f"plan-{n}": limit for n in range(32)}},
        "cost": [*cost, {"match": {"path": "/last"}, "cost": last_cost}],
    }
    networks = [{"clientIP": [f"2001:db8:{m:x}:{n:x}::/64" for n in range(64)]} for m in range(16)]
    return {"exempt": networks, "rules": [{"name": f"r{n}", **rule} for n in range(16)]}


@pytest.mark.requirement("R40")
def test_the_largest_spec_stays_within_the_cost_that_validation_may_have(cluster: Cluster) -> None:
    def create(last_cost: int) -> str:
        case = {"kind": "RateLimitPolicy", "spec": largest_spec(last_cost)}
        return cluster.kubectl("create", "--dry-run=server", "-f", "-", input=manifest(case, "admission-largest"))

    assert "created" in create(100)
    with pytest.raises(KubectlError, match=r"spec\.rules\[15\]\.cost"):
        create(101)


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("kind", "short_name", "columns"),
    [
        ("RateLimitPolicy", "rlpol", "NAME GATEWAY MODE ENFORCING LIMITERS AGE RULES WOULD-REJECT"),
        ("RateLimitOverride", "rlovr", "NAME POLICY ACTION EXPIRES READY AGE MESSAGE"),
    ],
)
def test_the_printed_columns_say_what_matters(cluster: Cluster, kind: str, short_name: str, columns: str) -> None:
    (case, *_) = [c.values[0] for c in cases("accepted") if c.values[0]["kind"] == kind]
    cluster.apply(manifest(case, "admission-printed"))
    try:
        printed = cluster.kubectl("get", short_name, "-n", NAMESPACE, "-o", "wide").splitlines()
        assert printed[0].split() == columns.split()
        listed = cluster.kubectl("get", "weir", "-n", NAMESPACE, "-o", "name").split()
        assert f"{kind.lower()}.weir.dev/admission-printed" in listed
    finally:
        cluster.kubectl("delete", kind, "admission-printed", "-n", NAMESPACE, "--ignore-not-found")
