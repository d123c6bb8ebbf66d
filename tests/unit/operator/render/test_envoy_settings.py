# SPDX-License-Identifier: Apache-2.0
"""Settings from which only a bootstrap could be rendered that Envoy refuses as a whole are refused by the operator."""

from typing import Any

import pytest
import yaml

from weir_operator.settings import InvalidSettings, parse_settings

ECHO = {"name": "echo", "hosts": ["*"], "address": "127.0.0.1", "port": 8081}


def mistakes(envoy: dict[str, Any]) -> list[str]:
    gateway = {"name": "edge", "namespace": "weir-system", "envoy": envoy}
    with pytest.raises(InvalidSettings) as refused:
        parse_settings(yaml.safe_dump({"gateways": [gateway]}))
    return refused.value.mistakes


def test_two_upstreams_with_one_name_are_refused() -> None:
    assert mistakes({"upstreams": [ECHO, {**ECHO, "hosts": ["a.example.com"]}]}) == [
        "gateways[0].envoy.upstreams: the name 'echo' stands 2 times"
    ]


def test_one_host_of_two_upstreams_is_refused() -> None:
    assert mistakes({"upstreams": [ECHO, {**ECHO, "name": "other"}]}) == [
        "gateways[0].envoy.upstreams: the host '*' stands 2 times"
    ]


def test_an_upstream_without_hosts_is_refused() -> None:
    assert mistakes({"upstreams": [{**ECHO, "hosts": []}]}) == [
        'gateways[0].envoy.upstreams[0].hosts: is required: at least one host, "*" for the rest'
    ]


def test_a_socket_path_that_no_socket_can_have_is_refused() -> None:
    path = "/" + "x" * 107
    assert mistakes({"limiterSocket": path}) == [f"gateways[0].envoy.limiterSocket: {path!r} is longer than 107 bytes"]
