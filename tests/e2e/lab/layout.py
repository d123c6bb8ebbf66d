# SPDX-License-Identifier: Apache-2.0
"""What a lab consists of, as data: its gateway, who may attach to it, and the chart's values that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

GATEWAY = "edge"
SYSTEM_NAMESPACE = "weir-system"
RULES_CONFIGMAP = f"{GATEWAY}-rules-0"
ENVOY_CONFIGMAP = f"{GATEWAY}-envoy"
CLOSED_CONFIGMAP = f"{GATEWAY}-closed"
TEAM_HOSTS: Mapping[str, Sequence[str]] = {
    "team-orders": ("api.example.com", "*.orders.example.com"),
    "team-auth": ("login.example.com",),
}
TRUSTED_PROXY = "127.0.0.9"  # who connects from this address is a proxy whose X-Forwarded-For counts


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request waits for a decision: the limiter for the store, and Envoy for the limiter."""

    store_ms: int
    limiter_ms: int


PRODUCTION = Patience(store_ms=5, limiter_ms=50)
# Where the load generator, two Envoys and all the rest share two cores, a thread may wait 20 ms for its turn. With
# production's figures such a request passes undecided, which is right there and would blur every count here.
SHARED_MACHINE = Patience(store_ms=100, limiter_ms=500)


class StoreKind(StrEnum):
    """What the limiters count in."""

    SINGLE = "single"  # one server
    CLUSTER = "cluster"  # three primaries, each with a replica


@dataclass(frozen=True, slots=True)
class Layout:
    """How many Envoy and sidecar pairs there are, what they count in, and which hosts each team namespace may limit."""

    pairs: int = 2
    store: StoreKind = StoreKind.SINGLE
    patience: Patience = PRODUCTION
    conditions: Mapping[str, str] = field(default_factory=dict)  # when silence shows in them; empty = as by default
    max_delay_ms: int = 0  # how long a limiter may hold a request in a queue
    hosts: Mapping[str, Sequence[str]] = field(default_factory=lambda: dict(TEAM_HOSTS))
    reviewed: str = ""  # the one namespace whose objects the webhook reviews; without it there is no webhook
    other_admin_ports: tuple[int, ...] = ()  # of limiters that somebody else starts

    @property
    def namespaces(self) -> list[str]:
        """The team namespaces, in order."""
        return list(self.hosts)


def chart_values(
    layout: Layout, *, admin_ports: Sequence[int], upstream_port: int, webhook_port: int
) -> dict[str, Any]:
    """The chart's values for a layout. Ports, socket and folder of Envoy are placeholders: `lab.envoy` moves them."""
    envoy = {
        "listen": {"address": "127.0.0.1", "port": 8080},
        "admin": {"address": "127.0.0.1", "port": 9901},
        "limiterSocket": "/run/weir/limiter.sock",
        "closedDirectory": "/etc/weir/closed",
        "timeout": f"{layout.patience.limiter_ms}ms",
        "trustedProxies": {"cidrs": [f"{TRUSTED_PROXY}/32"]},
        "upstreams": [{"name": "echo", "hosts": ["*"], "address": "127.0.0.1", "port": upstream_port}],
    }
    gateway = {
        "name": GATEWAY,
        "namespace": SYSTEM_NAMESPACE,
        "limiters": {"addresses": [f"http://127.0.0.1:{port}" for port in (*admin_ports, *layout.other_admin_ports)]},
        "allowedNamespaces": layout.namespaces,
        "hosts": {namespace: list(hosts) for namespace, hosts in layout.hosts.items()},
        "hostsDefault": "None",
        "forwardedHeaders": {"withhold": ["cookie", "authorization"]},
        "envoy": envoy,
    }
    if layout.max_delay_ms:
        gateway["queueing"] = {"maxDelay": f"{layout.max_delay_ms}ms"}
    if layout.conditions:
        gateway["conditions"] = dict(layout.conditions)
    webhook = {
        "enabled": bool(layout.reviewed),
        "url": f"https://127.0.0.1:{webhook_port}/admission",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": layout.reviewed}},
    }
    return {"gateways": [gateway], "webhook": webhook}
