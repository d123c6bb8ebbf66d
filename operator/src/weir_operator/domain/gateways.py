# SPDX-License-Identifier: Apache-2.0
"""What the operator is told about each gateway: where its limiters are, who may attach, with which hosts.

Values only. Reading them from the settings file belongs to `settings.py`, writing Envoy's configuration from
them to `render.envoy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

ANY_NAMESPACE = "*"
ANY_HOST = "*"
DEFAULT_RULE_BUDGET = 8  # arbitrary: two policies of a few rules each on one route, at a few microseconds of store each


class HostsDefault(StrEnum):
    """Which hosts a namespace may use that the gateway's `hosts` does not list."""

    ANY = "Any"
    NONE = "None"


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address and a TCP port."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """Which proxies in front of Envoy may name the client, either by network or by number, never both.

    `cidrs` and `hops` both empty: nobody is trusted, the TCP peer is the client.
    """

    cidrs: tuple[str, ...] = ()
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Upstream:
    """A cluster behind the bundled Envoy: requests for `hosts` (Envoy domains, "*" = the rest) go to it."""

    name: str
    hosts: tuple[str, ...]
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Envoy:
    """Settings of the bundled Envoy.

    `limiter_socket` is the path of the sidecar's Unix socket, `timeout_ms` how long Envoy waits for a decision,
    `closed_directory` where the ConfigMap `<gateway>-closed` is mounted.
    """

    listen: Address = Address("0.0.0.0", 8080)  # noqa: S104  a gateway serves every interface unless told otherwise
    admin: Address = Address("127.0.0.1", 9901)
    limiter_socket: str = "/run/weir/limiter.sock"
    timeout_ms: int = 50
    closed_directory: str = "/etc/weir/closed"
    trusted_proxies: TrustedProxies = TrustedProxies()
    upstreams: tuple[Upstream, ...] = ()


@dataclass(frozen=True, slots=True)
class Jwt:
    """Where Envoy's JWT filter leaves the claims that it verified: the namespace of its metadata, and the key there."""

    metadata_namespace: str = "envoy.filters.http.jwt_authn"
    payload_key: str = "jwt_payload"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long it may take until silence means something.

    `unmatched_ms`: that no request has matched a policy yet. `unasked_ms`: that Envoy asked no limiter.
    """

    unmatched_ms: int = 60_000  # who has just applied a policy looks for about that long whether it works
    unasked_ms: int = 600_000  # arbitrary: a gateway with health checks is never silent for that long


@dataclass(frozen=True, slots=True)
class NamespaceBudget:
    """How much of a gateway's documents the objects of one namespace may fill, all together.

    `rules`: of its policies. `document_bytes`: JSON of its policies and overrides. `closed_bytes`: what Envoy is told
    of its Closed rules.
    """

    rules: int = 500  # arbitrary: with the usual few rules each, a policy for each of 100 services
    document_bytes: int = 250_000  # a quarter of a ConfigMap when nothing of it can be packed; of overrides, 750
    closed_bytes: int = 200_000  # of 900,000 that all namespaces share


@dataclass(frozen=True, slots=True)
class Gateway:
    """One fleet of limiters that share their counters.

    `namespace` is where the generated ConfigMaps live. `limiters` are base URLs of admin endpoints.
    `allowed_namespaces` contains "*" for all. `hosts` gives the host patterns of each namespace ("*" = every
    host); a namespace that it does not list follows `hosts_default`. `withheld_headers` (lower case) never reach
    the limiter, so no policy can use them. `max_delay_ms` is how long a request may be held in a queue (0 = never),
    `rule_budget` how many rules one request may meet, `patience` when silence becomes a condition,
    `namespace_budget` how much of all the rules may be one namespace's.
    """

    name: str
    namespace: str
    limiters: tuple[str, ...] = ()
    allowed_namespaces: frozenset[str] = frozenset()
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hosts_default: HostsDefault = HostsDefault.NONE
    withheld_headers: frozenset[str] = frozenset({"authorization", "cookie"})
    envoy: Envoy = Envoy()
    max_delay_ms: int = 0
    rule_budget: int = DEFAULT_RULE_BUDGET
    jwt: Jwt = Jwt()
    patience: Patience = Patience()
    namespace_budget: NamespaceBudget = NamespaceBudget()

    @property
    def decision_timeout_ms(self) -> int:
        """How long Envoy waits for a decision: its usual patience, and as long as a request may be held."""
        return self.envoy.timeout_ms + self.max_delay_ms

    def admits(self, namespace: str) -> bool:
        """Whether objects of `namespace` may attach to this gateway."""
        return ANY_NAMESPACE in self.allowed_namespaces or namespace in self.allowed_namespaces

    def hosts_of(self, namespace: str) -> tuple[str, ...]:
        """The host patterns that `namespace` may use: ("*",) for every host, empty for none."""
        default = (ANY_HOST,) if self.hosts_default is HostsDefault.ANY else ()
        return self.hosts.get(namespace, default)
