# SPDX-License-Identifier: Apache-2.0
"""The rendered Envoy configuration, read as data. That a real Envoy obeys it is shown in tests/integration."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from weir_operator.domain.gateways import Address, Envoy, Gateway, Jwt, TrustedProxies, Upstream
from weir_operator.render.envoy import render_envoy

GOLDEN = Path(__file__).parent / "golden" / "envoy"
ORDERS = Upstream("orders", ("api.example.com", "*.orders.example.com"), "orders.team-orders.svc", 80)
REST = Upstream("echo", ("*",), "127.0.0.1", 8081)

CASES = {
    "peer-is-the-client": Envoy(upstreams=(ORDERS, REST)),
    "proxies-by-hops": Envoy(trusted_proxies=TrustedProxies(hops=2), upstreams=(REST,)),
    "proxies-by-cidr": Envoy(trusted_proxies=TrustedProxies(cidrs=("10.0.0.0/8", "fd00::/8")), upstreams=(REST,)),
}


def gateway(envoy: Envoy) -> Gateway:
    return Gateway("edge", "weir-system", envoy=envoy)


def parsed(envoy: Envoy, key: str = "bootstrap.yaml") -> Any:
    return yaml.safe_load(render_envoy(gateway(envoy))[key])


def connection_manager(envoy: Envoy) -> dict[str, Any]:
    listener = parsed(envoy)["static_resources"]["listeners"][0]
    manager: dict[str, Any] = listener["filter_chains"][0]["filters"][0]["typed_config"]
    return manager


def ext_authz(filters: list[dict[str, Any]]) -> dict[str, Any]:
    config: dict[str, Any] = next(f for f in filters if f["name"] == "envoy.filters.http.ext_authz")["typed_config"]
    return config


def every_node(node: Any) -> Iterator[Any]:
    yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from every_node(child)


@pytest.mark.parametrize("case", CASES)
def test_rendered_files_equal_the_accepted_ones(case: str) -> None:
    rendered = render_envoy(gateway(CASES[case]))
    for key, text in rendered.items():
        accepted = GOLDEN / case / key
        if os.environ.get("WEIR_ACCEPT_GOLDEN"):
            accepted.parent.mkdir(parents=True, exist_ok=True)
            accepted.write_text(text)
        assert text == accepted.read_text(), f"look at the difference; WEIR_ACCEPT_GOLDEN=1 accepts it ({accepted})"


@pytest.mark.parametrize("case", CASES)
def test_rendering_twice_gives_the_same_bytes(case: str) -> None:
    again = replace(gateway(CASES[case]), withheld_headers=frozenset(["cookie", "authorization"]))
    assert render_envoy(gateway(CASES[case])) == render_envoy(again)


@pytest.mark.parametrize("case", CASES)
def test_no_file_uses_yaml_anchors_so_that_parts_can_be_pasted(case: str) -> None:
    assert not [text for text in render_envoy(gateway(CASES[case])).values() if "&id" in text or "*id" in text]


@pytest.mark.parametrize("case", CASES)
def test_the_filters_for_ones_own_envoy_are_those_of_the_bundled_gateway(case: str) -> None:
    bundled = connection_manager(CASES[case])["http_filters"]
    assert bundled[-1]["name"] == "envoy.filters.http.router"
    assert parsed(CASES[case], "http-filters.yaml") == bundled[:-1]


def test_the_limiter_cluster_for_ones_own_envoy_is_that_of_the_bundled_gateway() -> None:
    envoy = CASES["peer-is-the-client"]
    assert parsed(envoy, "cluster.yaml") == parsed(envoy)["static_resources"]["clusters"][:1]


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("case", CASES)
def test_the_client_address_is_stated_before_the_limiter_is_asked(case: str) -> None:
    names = [f["name"] for f in connection_manager(CASES[case])["http_filters"]]
    assert names.index("weir.client_ip") < names.index("envoy.filters.http.ext_authz")


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("case", CASES)
def test_nothing_but_the_detected_address_is_ever_written_into_the_client_header(case: str) -> None:
    writes = [
        node["append"]
        for node in every_node(parsed(CASES[case]))
        if isinstance(node, dict) and "append" in node and node["append"]["header"]["key"] == "x-weir-client-ip"
    ]
    assert writes == [
        {
            "header": {"key": "x-weir-client-ip", "value": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"},
            "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
        }
    ]


@pytest.mark.requirement("R37")
def test_a_clients_own_claim_is_removed_where_the_address_may_stay_unstated() -> None:
    filters = connection_manager(CASES["proxies-by-cidr"])["http_filters"]
    assert [f["name"] for f in filters[:2]] == ["weir.client_ip_claim", "weir.client_ip"]
    assert {"remove": "x-weir-client-ip"} in filters[0]["typed_config"]["mutations"]["request_mutations"]


@pytest.mark.requirement("R37")
def test_x_forwarded_for_is_not_read_without_trusted_proxies() -> None:
    """D27."""
    manager = connection_manager(CASES["peer-is-the-client"])
    assert (manager["use_remote_address"], manager["xff_num_trusted_hops"]) == (True, 0)


def test_trusted_ipv4_networks_are_trusted_in_their_ipv4_mapped_spelling_too() -> None:
    (extension,) = connection_manager(CASES["proxies-by-cidr"])["original_ip_detection_extensions"]
    assert extension["typed_config"]["xff_trusted_cidrs"]["cidrs"] == [
        {"address_prefix": "10.0.0.0", "prefix_len": 8},
        {"address_prefix": "::ffff:10.0.0.0", "prefix_len": 104},
        {"address_prefix": "fd00::", "prefix_len": 8},
    ]


@pytest.mark.requirement("R24")
def test_envoy_lets_requests_pass_and_says_so_when_the_limiter_does_not_answer() -> None:
    config = ext_authz(parsed(Envoy(timeout_ms=75), "http-filters.yaml"))
    assert config["grpc_service"]["timeout"] == "0.075s"
    assert (config["failure_mode_allow"], config["failure_mode_allow_header_add"]) == (True, True)
    assert config["status_on_error"] == {"code": "ServiceUnavailable"}


def test_envoy_checks_and_charges_as_a_limiter_needs_it() -> None:
    config = ext_authz(parsed(Envoy(), "http-filters.yaml"))
    assert config["validate_mutations"] is True
    assert config["charge_cluster_response_stats"] is False
    assert config["encode_raw_headers"] is False
    assert config["filter_enabled"]["runtime_key"] == "weir.enabled_pct"


def test_withheld_headers_never_reach_the_limiter() -> None:
    filters = yaml.safe_load(
        render_envoy(Gateway("edge", "weir-system", withheld_headers=frozenset({"cookie", "x-secret"})))[
            "http-filters.yaml"
        ]
    )
    withheld = [{"exact": name, "ignore_case": True} for name in ("cookie", "x-secret")]
    assert ext_authz(filters)["disallowed_headers"] == {"patterns": withheld}


def test_a_gateway_that_withholds_nothing_has_no_pattern_list_at_all() -> None:
    filters = yaml.safe_load(render_envoy(Gateway("edge", "ns", withheld_headers=frozenset()))["http-filters.yaml"])
    assert "disallowed_headers" not in ext_authz(filters)


@pytest.mark.parametrize("case", CASES)
def test_every_path_has_one_spelling_before_it_is_counted(case: str) -> None:
    """D60."""
    manager = connection_manager(CASES[case])
    assert manager["normalize_path"] is True
    assert manager["merge_slashes"] is True
    assert manager["path_with_escaped_slashes_action"] == "UNESCAPE_AND_REDIRECT"
    assert manager["common_http_protocol_options"]["headers_with_underscores_action"] == "REJECT_REQUEST"


def test_the_limiter_is_reached_in_http2_over_its_socket_with_room_for_a_stall() -> None:
    (cluster,) = parsed(Envoy(limiter_socket="/run/x.sock"), "cluster.yaml")
    (options,) = cluster["typed_extension_protocol_options"].values()
    (threshold,) = cluster["circuit_breakers"]["thresholds"]
    (endpoint,) = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["address"] == {"pipe": {"path": "/run/x.sock"}}
    assert options["explicit_http_config"] == {"http2_protocol_options": {"max_concurrent_streams": 4096}}
    assert min(threshold.values()) > 1024
    assert cluster["connect_timeout"] == "0.050s"


def test_grpc_requests_have_a_route_in_http2_and_no_time_limit_but_their_own() -> None:
    (host,) = connection_manager(CASES["proxies-by-hops"])["route_config"]["virtual_hosts"]
    grpc, http = host["routes"]
    assert grpc["match"] == {"prefix": "/", "grpc": {}}
    assert (grpc["route"]["cluster"], grpc["route"]["timeout"]) == ("echo_grpc", "0s")
    assert http["route"] == {"cluster": "echo"}


def test_upstreams_by_name_are_resolved_and_by_address_are_not() -> None:
    clusters = parsed(CASES["peer-is-the-client"])["static_resources"]["clusters"]
    assert {c["name"]: c["type"] for c in clusters} == {
        "weir_limiter": "STATIC",
        "orders": "STRICT_DNS",
        "orders_grpc": "STRICT_DNS",
        "echo": "STATIC",
        "echo_grpc": "STATIC",
    }


def test_the_access_log_holds_the_decision_and_no_place_for_a_secret() -> None:
    (log,) = connection_manager(CASES["peer-is-the-client"])["access_log"]
    fields = log["typed_config"]["log_format"]["json_format"]
    assert {"policy", "rule", "decision", "mode"} <= fields.keys()
    requested = [value for value in fields.values() if value.startswith("%REQUEST_HEADER(")]
    assert requested == ["%REQUEST_HEADER(X-REQUEST-ID)%", "%REQUEST_HEADER(:METHOD)%", "%REQUEST_HEADER(:AUTHORITY)%"]
    assert fields["path"] == "%PATH(NQ:PATH)%"


def test_an_ipv6_listener_serves_ipv4_clients_under_their_own_addresses() -> None:
    """D25."""
    listener = parsed(Envoy(listen=Address("::", 8080)))["static_resources"]["listeners"][0]
    assert listener["address"]["socket_address"] == {"address": "::", "port_value": 8080, "ipv4_compat": True}


def test_envoy_waits_for_a_decision_as_long_as_a_request_may_be_held_and_its_usual_patience() -> None:
    holding = replace(gateway(CASES["peer-is-the-client"]), max_delay_ms=1500)
    filters = yaml.safe_load(render_envoy(holding)["http-filters.yaml"])
    assert ext_authz(filters)["grpc_service"]["timeout"] == "1.550s"


@pytest.mark.parametrize("namespace", ["envoy.filters.http.jwt_authn", "my.jwt"])
def test_the_limiter_gets_the_claims_of_verified_tokens_and_no_other_metadata(namespace: str) -> None:
    verified = replace(gateway(CASES["peer-is-the-client"]), jwt=Jwt(namespace, "claims"))
    text = render_envoy(verified)["http-filters.yaml"]
    assert ext_authz(yaml.safe_load(text))["metadata_context_namespaces"] == [namespace]
    assert f"{namespace}) with payload_in_metadata: claims" in text
