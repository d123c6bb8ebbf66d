# SPDX-License-Identifier: Apache-2.0
"""The chart as Helm renders it: what the programs may do, that CRDs outlive a release, and which values are refused."""

from functools import cache
from pathlib import Path
from typing import Any

import helm_python as helm
import pytest
import yaml

from weir_operator.settings import InvalidSettings, parse_settings

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts" / "weir"
EXAMPLE = yaml.safe_load((ROOT / "examples" / "values.yaml").read_text())
INNER = {
    "name": "inner",
    "namespace": "inner-gateway",
    "limiters": {"addresses": ["http://limiter.inner-gateway.svc:9090"]},
    "allowedNamespaces": ["*"],
    "hostsDefault": "Any",
}
TWO_GATEWAYS = {"gateways": [*EXAMPLE["gateways"], INNER]}

Manifest = dict[str, Any]


def render(values: dict[str, Any]) -> list[Manifest]:
    with helm.Chart.load(CHART) as chart:
        files = chart.render(values, name="weir", namespace="weir-system")
    texts = [text for name, text in sorted(files.items()) if name.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


@cache
def manifests() -> tuple[Manifest, ...]:
    return tuple(render(TWO_GATEWAYS))


def of_kind(kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests() if manifest["kind"] == kind]


def named(kind: str, name: str, namespace: str | None = None) -> Manifest:
    (found,) = [
        manifest
        for manifest in of_kind(kind)
        if manifest["metadata"]["name"] == name and manifest["metadata"].get("namespace") == namespace
    ]
    return found


def refused(values: dict[str, Any]) -> str:
    with helm.Chart.load(CHART) as chart, pytest.raises(helm.HelmValuesError) as error:
        chart.validate_schema(values)
    return str(error.value)


def test_helm_lint_finds_nothing_but_the_missing_icon() -> None:
    report = helm.lint(CHART)
    assert report["errors"] == []
    assert [message["error"] for message in report["messages"]] == ["icon is recommended"]


def test_chart_and_programs_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"]
    assert f'version = "{chart["version"]}"' in (ROOT / "pyproject.toml").read_text()


def test_crds_of_the_chart_are_the_generated_ones() -> None:
    generated = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    assert generated
    assert {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")} == generated


def test_crds_are_rendered_unchanged_but_for_helms_own_metadata() -> None:
    generated = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    rendered = of_kind("CustomResourceDefinition")
    assert [crd["spec"] for crd in rendered] == [crd["spec"] for crd in generated]
    assert [crd["metadata"]["name"] for crd in rendered] == [crd["metadata"]["name"] for crd in generated]


def test_crds_are_upgraded_with_the_chart_and_kept_by_an_uninstall() -> None:
    """D56, D57."""
    assert not (CHART / "crds").exists(), "Helm never upgrades what lies in crds/"
    for crd in of_kind("CustomResourceDefinition"):
        assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_crds_can_be_left_to_somebody_else() -> None:
    assert not [m for m in render({"crds": {"install": False}}) if m["kind"] == "CustomResourceDefinition"]


def test_settings_are_what_the_operator_reads() -> None:
    text = named("ConfigMap", "weir-settings", "weir-system")["data"]["settings.yaml"]
    assert yaml.safe_load(text) == TWO_GATEWAYS
    assert [gateway.name for gateway in parse_settings(text).gateways] == ["edge", "inner"]


def test_a_chart_without_gateways_renders_settings_that_the_operator_refuses_in_plain_words() -> None:
    (settings,) = [m for m in render({}) if m["kind"] == "ConfigMap"]
    with pytest.raises(InvalidSettings, match="gateways: is empty, so there is nothing to do"):
        parse_settings(settings["data"]["settings.yaml"])


def test_the_operator_reads_both_kinds_everywhere_and_writes_only_their_status() -> None:
    assert named("ClusterRole", "weir-operator")["rules"] == [
        {
            "apiGroups": ["weir.dev"],
            "resources": ["ratelimitpolicies", "ratelimitoverrides"],
            "verbs": ["get", "list", "watch"],
        },
        {
            "apiGroups": ["weir.dev"],
            "resources": ["ratelimitpolicies/status", "ratelimitoverrides/status"],
            "verbs": ["patch"],
        },
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]


@pytest.mark.parametrize(("namespace", "gateway"), [("weir-system", "edge"), ("inner-gateway", "inner")])
def test_the_operator_writes_only_the_generated_config_maps(namespace: str, gateway: str) -> None:
    read, write = named("Role", "weir-operator", namespace)["rules"]
    assert (read["resources"], read["verbs"]) == (["configmaps"], ["list", "watch"])
    assert write["resources"] == ["configmaps"]
    assert write["resourceNames"] == [f"{gateway}-rules-0", f"{gateway}-envoy", f"{gateway}-closed"]
    assert write["verbs"] == ["create", "patch", "delete"]


def test_the_operator_holds_one_lease_in_the_releases_namespace() -> None:
    own, create = named("Role", "weir-operator-lease", "weir-system")["rules"]
    assert (own["resources"], own["resourceNames"], own["verbs"]) == (["leases"], ["weir-operator"], ["get", "update"])
    assert (create["resources"], create["verbs"]) == (["leases"], ["create"])


@pytest.mark.parametrize(("namespace", "gateway"), [("weir-system", "edge"), ("inner-gateway", "inner")])
def test_a_limiter_reads_rules_and_break_glass_of_its_gateway_and_nothing_else(namespace: str, gateway: str) -> None:
    name = f"weir-limiter-{gateway}"
    assert named("Role", name, namespace)["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [f"{gateway}-rules-0", f"{gateway}-breakglass"],
            "verbs": ["get", "list", "watch"],
        }
    ]
    subject = {"kind": "ServiceAccount", "name": "weir-limiter", "namespace": namespace}
    assert named("RoleBinding", name, namespace)["subjects"] == [subject]
    assert named("ServiceAccount", "weir-limiter", namespace)


def test_every_binding_names_a_role_and_an_account_of_this_chart() -> None:
    accounts = {(m["metadata"]["name"], m["metadata"]["namespace"]) for m in of_kind("ServiceAccount")}
    for binding in [*of_kind("RoleBinding"), *of_kind("ClusterRoleBinding")]:
        assert named(binding["roleRef"]["kind"], binding["roleRef"]["name"], binding["metadata"].get("namespace"))
        assert {(s["name"], s["namespace"]) for s in binding["subjects"]} <= accounts


def test_no_role_uses_a_wildcard_or_reads_another_secret_than_the_webhooks() -> None:
    for role in [*of_kind("Role"), *of_kind("ClusterRole")]:
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            if "secrets" in rule["resources"]:
                assert rule["resourceNames"] == ["weir-webhook"]


def test_the_webhook_can_be_left_out_and_never_stands_in_the_way() -> None:
    assert not [
        m for m in render({"webhook": {"enabled": False}}) if "webhook" in m["kind"].lower() + str(m["metadata"])
    ]
    for hook in named("ValidatingWebhookConfiguration", "weir-operator")["webhooks"]:
        assert (hook["failurePolicy"], hook["timeoutSeconds"], hook["sideEffects"]) == ("Ignore", 2, "None")
        assert "caBundle" not in hook["clientConfig"]  # the operator's, and a sync must not take it away
        assert not any("/" in resource for rule in hook["rules"] for resource in rule["resources"])


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    ("role", "aggregates"), [("weir-policy-viewer", ["view"]), ("weir-policy-editor", ["edit", "admin"])]
)
def test_team_roles_join_the_built_in_ones(role: str, aggregates: list[str]) -> None:
    labels = named("ClusterRole", role)["metadata"]["labels"]
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    assert [name.removeprefix(prefix) for name in labels if name.startswith(prefix)] == aggregates


def test_no_team_may_write_status() -> None:
    for role in ("weir-policy-viewer", "weir-policy-editor"):
        for rule in named("ClusterRole", role)["rules"]:
            if any(resource.endswith("/status") for resource in rule["resources"]):
                assert not {"update", "patch"} & set(rule["verbs"])


def test_the_admission_policy_knows_the_operator_of_this_release() -> None:
    policy = named("ValidatingAdmissionPolicy", "weir-status-ownership")
    operator = next(v for v in policy["spec"]["variables"] if v["name"] == "operator")
    assert operator["expression"] == "request.userInfo.username == 'system:serviceaccount:weir-system:weir-operator'"
    binding = named("ValidatingAdmissionPolicyBinding", "weir-status-ownership")
    assert binding["spec"] == {"policyName": "weir-status-ownership", "validationActions": ["Deny"]}


@pytest.mark.requirement("R42")
@pytest.mark.parametrize("value", ["Always", "Never"])
def test_the_api_server_signs_for_people_where_it_can(value: str) -> None:
    kinds = [m["kind"] for m in render({"admission": {"stampAuthors": value}})]
    assert ("MutatingAdmissionPolicy" in kinds, "MutatingAdmissionPolicyBinding" in kinds) == (value == "Always",) * 2


@pytest.mark.requirement("R42")
def test_both_admission_policies_agree_on_what_is_peoples() -> None:
    stamp = next(m for m in render({"admission": {"stampAuthors": "Always"}}) if m["kind"] == "MutatingAdmissionPolicy")
    owned = named("ValidatingAdmissionPolicy", "weir-status-ownership")["spec"]["variables"]
    assert [variable for variable in owned if "witches" in variable["name"] or "pprovals" in variable["name"]]
    assert all(variable in owned for variable in stamp["spec"]["variables"])


@pytest.mark.requirement("R42")
def test_a_switcher_may_touch_nothing_but_the_status_of_policies() -> None:
    role = named("ClusterRole", "weir-switcher")
    assert role["rules"] == [
        {"apiGroups": ["weir.dev"], "resources": ["ratelimitpolicies/status"], "verbs": ["get", "patch"]}
    ]
    assert not [name for name in role["metadata"]["labels"] if "aggregate-to" in name]


def test_nothing_that_is_meant_to_reload_is_mounted_by_sub_path() -> None:
    """D43."""
    text = yaml.safe_dump_all(manifests())
    assert "subPath" not in text
    assert "configMapKeyRef" not in text
    assert "envFrom" not in text


def test_everything_carries_the_labels_of_the_release() -> None:
    for manifest in manifests():
        assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == "weir"
        assert manifest["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "Edge"}, "/gateways/0/name"),
        ({"namespace": "a.b"}, "/gateways/0/namespace"),
        ({"allowedNamespace": ["x"]}, "allowedNamespace"),
        ({"hostsDefault": "All"}, "/gateways/0/hostsDefault"),
        ({"limiters": {"addresses": ["127.0.0.1:9090"]}}, "/gateways/0/limiters/addresses/0"),
        ({"envoy": {"timeout": "50"}}, "/gateways/0/envoy/timeout"),
        ({"envoy": {"timeout": 50}}, "/gateways/0/envoy/timeout"),
        ({"envoy": {"limiterSocket": "run/limiter.sock"}}, "/gateways/0/envoy/limiterSocket"),
        ({"envoy": {"closedDirectory": "/etc/weir/"}}, "/gateways/0/envoy/closedDirectory"),
        ({"envoy": {"trustedProxies": {"cidrs": ["10.0.0.0/8"], "hops": 1}}}, "/gateways/0/envoy/trustedProxies"),
        ({"envoy": {"listen": {"address": "127.0.0.1", "port": 0}}}, "/gateways/0/envoy/listen/port"),
        ({"envoy": {"upstreams": [{"name": "echo", "hosts": [], "address": "x", "port": 1}]}}, "hosts"),
        ({"forwardedHeaders": {"withhold": ["Cookie"]}}, "/gateways/0/forwardedHeaders/withhold/0"),
        ({"queueing": {"maxDelay": "1m"}}, "/gateways/0/queueing/maxDelay"),
        ({"ruleBudget": 0}, "/gateways/0/ruleBudget"),
        ({"namespaceBudget": {"closedBytes": 0}}, "/gateways/0/namespaceBudget/closedBytes"),
        ({"conditions": {"unaskedAfter": "8d"}}, "/gateways/0/conditions/unaskedAfter"),
        ({"jwt": {"payloadKey": ""}}, "/gateways/0/jwt/payloadKey"),
    ],
)
def test_values_that_make_no_gateway_are_refused_with_their_path(change: dict[str, Any], complaint: str) -> None:
    assert complaint in refused({"gateways": [{**EXAMPLE["gateways"][0], **change}]})


def test_an_unknown_way_to_sign_is_refused() -> None:
    assert "/admission/stampAuthors" in refused({"admission": {"stampAuthors": True}})


def test_a_misspelled_value_is_refused() -> None:
    assert "gateway" in refused({"gateway": []})


def test_the_commented_example_in_the_values_file_is_valid() -> None:
    text = (CHART / "values.yaml").read_text()
    commented = text[text.index("# - name: edge") :]
    gateways = yaml.safe_load("\n".join(line.removeprefix("# ") for line in commented.splitlines()))
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema({"gateways": gateways})
    assert parse_settings(yaml.safe_dump({"gateways": gateways})).gateways
