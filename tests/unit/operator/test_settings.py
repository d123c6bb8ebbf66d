# SPDX-License-Identifier: Apache-2.0
"""The settings file: read whole, or refused with every mistake and its path."""

from pathlib import Path

import pytest

from weir_operator.domain.gateways import (
    Address,
    HostsDefault,
    Jwt,
    NamespaceBudget,
    Patience,
    TrustedProxies,
    Upstream,
)
from weir_operator.settings import InvalidSettings, parse_settings, read_settings

WHOLE = """
gateways:
- name: edge
  namespace: weir-system
  limiters: {addresses: ["http://127.0.0.1:19090"]}
  allowedNamespaces: [team-orders]
  hosts: {team-orders: ["api.example.com", "*.orders.example.com", "*"]}
  hostsDefault: Any
  forwardedHeaders: {withhold: [cookie]}
  queueing: {maxDelay: 2s}
  ruleBudget: 12
  namespaceBudget: {rules: 20, documentBytes: 3000, closedBytes: 400}
  conditions: {unmatchedAfter: 5s, unaskedAfter: 250ms}
  jwt: {metadataNamespace: my.jwt, payloadKey: claims}
  envoy:
    listen: {address: "::", port: 8443}
    admin: {address: 127.0.0.1, port: 9901}
    limiterSocket: /run/weir/limiter.sock
    closedDirectory: /mnt/closed
    timeout: 1s
    trustedProxies: {hops: 2}
    upstreams: [{name: echo, hosts: ["*"], address: 127.0.0.1, port: 8081}]
"""
LEAST = "gateways: [{name: edge, namespace: weir-system}]"


def mistakes(text: str) -> list[str]:
    with pytest.raises(InvalidSettings) as refusal:
        parse_settings(text)
    return refusal.value.mistakes


def test_a_whole_file_is_read() -> None:
    (gateway,) = parse_settings(WHOLE).gateways
    assert (gateway.name, gateway.namespace, gateway.limiters) == ("edge", "weir-system", ("http://127.0.0.1:19090",))
    assert gateway.hosts_of("team-orders") == ("api.example.com", "*.orders.example.com", "*")
    assert (gateway.hosts_default, gateway.withheld_headers) == (HostsDefault.ANY, frozenset({"cookie"}))
    assert (gateway.max_delay_ms, gateway.rule_budget, gateway.jwt) == (2000, 12, Jwt("my.jwt", "claims"))
    assert gateway.namespace_budget == NamespaceBudget(20, 3000, 400)
    assert gateway.patience == Patience(5_000, 250)
    envoy = gateway.envoy
    assert gateway.decision_timeout_ms == envoy.timeout_ms + 2000
    assert (envoy.listen, envoy.timeout_ms, envoy.trusted_proxies) == (
        Address("::", 8443),
        1000,
        TrustedProxies(hops=2),
    )
    assert envoy.closed_directory == "/mnt/closed"
    assert envoy.upstreams == (Upstream("echo", ("*",), "127.0.0.1", 8081),)


def test_what_is_left_out_has_the_safe_default() -> None:
    (gateway,) = parse_settings(LEAST).gateways
    assert not gateway.admits("team-orders")
    assert gateway.hosts_of("team-orders") == ()
    assert gateway.withheld_headers == {"authorization", "cookie"}
    assert (gateway.max_delay_ms, gateway.rule_budget) == (0, 8)
    assert gateway.patience == Patience(60_000, 600_000)
    assert gateway.jwt == Jwt("envoy.filters.http.jwt_authn", "jwt_payload")


def test_all_mistakes_are_reported_at_once() -> None:
    found = mistakes("gateways: [{name: Edge, limiters: {addresses: [ftp://x]}, envoy: {listen: {port: 0}}}, 3]")
    assert [mistake.split(":")[0] for mistake in found] == [
        "gateways[0].limiters.addresses[0]",
        "gateways[0].name",
        "gateways[0].namespace",
        "gateways[0].envoy.listen.port",
        "gateways[1]",
    ]


@pytest.mark.parametrize(
    ("member", "mistake"),
    [
        ("allowdNamespaces: [a]", "gateways[0].allowdNamespaces: is not a setting; did you mean allowedNamespaces?"),
        ("allowedNamespaces: [A]", "gateways[0].allowedNamespaces[0]: 'A' is no name"),
        ("allowedNamespaces: a", "gateways[0].allowedNamespaces: expected a list, found 'a'"),
        (
            "allowedNamespaces: ['*']\n  hosts: {a: [API.example.com]}",
            "gateways[0].hosts.a[0]: 'API.example.com' is no host",
        ),
        ("hosts: {a: [b.test]}", "gateways[0].hosts.a: is for a namespace that allowedNamespaces lacks"),
        ("allowedNamespaces: ['*']\n  hosts: {A: [b.test]}", "gateways[0].hosts.A: 'A' is no name"),
        ("hostsDefault: all", "gateways[0].hostsDefault: 'all' is none of None, Any"),
        ("forwardedHeaders: {withhold: [Cookie]}", "gateways[0].forwardedHeaders.withhold[0]: 'Cookie' is no header"),
        ("envoy: {timeout: 50}", "gateways[0].envoy.timeout: expected a string, found 50"),
        ("envoy: {timeout: 0ms}", "gateways[0].envoy.timeout: '0ms' is not between 1ms and 10000ms"),
        ("envoy: {limiterSocket: run/l.sock}", "gateways[0].envoy.limiterSocket: 'run/l.sock' is no absolute path"),
        ("envoy: {closedDirectory: /mnt/}", "gateways[0].envoy.closedDirectory: '/mnt/' is no absolute path"),
        ("envoy: {listen: {port: true}}", "gateways[0].envoy.listen.port: expected a whole number, found True"),
        ("envoy: {admin: {address: localhost}}", "gateways[0].envoy.admin.address: 'localhost' is no IP address"),
        ("envoy: {trustedProxies: {cidrs: [10.0.0.1/8]}}", "gateways[0].envoy.trustedProxies.cidrs[0]: '10.0.0.1/8'"),
        (
            "envoy: {trustedProxies: {cidrs: [10.0.0.0/8], hops: 1}}",
            "gateways[0].envoy.trustedProxies: give cidrs or hops, not both",
        ),
        ("limiters: {addresses: ['http://a/path']}", "gateways[0].limiters.addresses[0]: 'http://a/path' is no base"),
        (
            "limiters: {addresses: ['http://h:1', 'http://H:1/']}",
            "gateways[0].limiters.addresses: 'http://h:1' stands 2",
        ),
        (
            "limiters: {addresses: ['http://me:pw@h:1']}",
            "gateways[0].limiters.addresses[0]: 'http://me:pw@h:1' names a user",
        ),
        ("queueing: {maxDelay: 1m}", "gateways[0].queueing.maxDelay: '1m' is no duration like 50ms"),
        ("queueing: {maxDelay: 61s}", "gateways[0].queueing.maxDelay: '61s' is not between 0ms and 60000ms"),
        ("queueing: {maxdelay: 1s}", "gateways[0].queueing.maxdelay: is not a setting; did you mean maxDelay?"),
        ("namespaceBudget: {rules: 0}", "gateways[0].namespaceBudget.rules: 0 is not between 1 and 1000000000"),
        ("ruleBudget: 0", "gateways[0].ruleBudget: 0 is not between 1 and 64"),
        ("conditions: {unaskedAfter: 8d}", "gateways[0].conditions.unaskedAfter: '8d' is no duration like 50ms"),
        ("ruleBudget: many", "gateways[0].ruleBudget: expected a whole number, found 'many'"),
        ("jwt: {payloadKey: ''}", "gateways[0].jwt.payloadKey: '' is no name of metadata"),
        ("jwt: {namespace: x}", "gateways[0].jwt.namespace: is not a setting"),
        ("limiters: {service: x}", "gateways[0].limiters.service: is not a setting"),
    ],
)
def test_a_mistake_is_named_with_its_path_and_what_would_be_right(member: str, mistake: str) -> None:
    (found,) = mistakes(f"gateways:\n- name: edge\n  namespace: weir-system\n  {member}\n")
    assert found.startswith(mistake)


def test_two_gateways_need_two_names() -> None:
    entry = "{name: edge, namespace: a}"
    assert mistakes(f"gateways: [{entry}, {entry}]") == ["gateways: the name 'edge' stands 2 times"]


@pytest.mark.parametrize("text", ["gateways: []", "gateways:", "{}"])
def test_settings_without_any_gateway_are_refused_in_plain_words(text: str) -> None:
    assert mistakes(text) == ["gateways: is empty, so there is nothing to do: set up at least one gateway"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gateways: [", "not YAML"),
        ("- a", "expected a mapping"),
        ("", "expected a mapping"),
        ("gateways: []\ngateways: []", "a member stands twice"),
        ("gatways: []", "gatways: is not a setting; did you mean gateways?"),
        ("gateways: !!python/object:os.system []", "not YAML"),
    ],
)
def test_a_file_in_another_form_is_refused(text: str, words: str) -> None:
    assert any(words in mistake for mistake in mistakes(text))


def test_a_file_that_is_not_there_is_a_mistake_too(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot read"):
        read_settings(tmp_path / "none.yaml")
