# SPDX-License-Identifier: Apache-2.0
"""Where Envoy connects to: the limiter beside it and the upstreams of the bundled gateway."""

from __future__ import annotations

from ipaddress import ip_address

from weir_operator.domain.gateways import Gateway, Upstream
from weir_operator.render.envoy_document import Message, seconds, socket_address, typed
from weir_operator.render.envoy_filters import LIMITER_CLUSTER

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

_LIMITER_CONNECT_MS = 50  # a Unix socket answers in microseconds or not at all
# Calls in flight at once. Beyond it Envoy fails calls itself, and so opens the gate, hence far above the default of
# 1,024: 10,000 that the limiter holds in the queues of leaky buckets (its default `--max-held`), and beside them, even
# when every other call takes its whole 50 ms, 16,384 / 0.05 = 327,680 requests/s.
_LIMITER_CALLS = 10_000 + 16_384
# As many as the limiter takes on one connection. With the default of 1,024 held calls would fill one connection after
# the other, each to be opened by a request that waits for it.
_LIMITER_STREAMS = 4_096
_UPSTREAM_CONNECT_MS = 1_000
_UPSTREAM_CALLS = 8_192  # arbitrary; above the default of 1,024, which one busy gateway reaches in a short stall
_UPSTREAM_BUFFER_BYTES = 32_768  # Envoy's advice for an edge; the default of 1 MiB per connection invites exhaustion


def grpc_cluster_name(upstream: Upstream) -> str:
    """The cluster for gRPC requests of an upstream: the same endpoint, spoken to in HTTP/2."""
    return f"{upstream.name}_grpc"


def limiter_cluster(gateway: Gateway) -> Message:
    """The limiter on its Unix socket: gRPC, so HTTP/2."""
    return {
        "name": LIMITER_CLUSTER,
        "type": "STATIC",
        "connect_timeout": seconds(_LIMITER_CONNECT_MS),
        "typed_extension_protocol_options": _speak(
            {"http2_protocol_options": {"max_concurrent_streams": _LIMITER_STREAMS}}
        ),
        "circuit_breakers": _at_most(_LIMITER_CALLS),
        "load_assignment": _one_endpoint(LIMITER_CLUSTER, {"pipe": {"path": gateway.envoy.limiter_socket}}),
    }


def upstream_clusters(gateway: Gateway) -> list[Message]:
    """Two clusters per upstream, one for HTTP/1.1 and one for gRPC.

    A gateway cannot know what its upstream speaks, except that gRPC is always HTTP/2.
    """
    return [
        _upstream_cluster(upstream, name, protocol)
        for upstream in gateway.envoy.upstreams
        for name, protocol in (
            (upstream.name, "http_protocol_options"),
            (grpc_cluster_name(upstream), "http2_protocol_options"),
        )
    ]


def _upstream_cluster(upstream: Upstream, name: str, protocol: str) -> Message:
    discovery: Message = (
        {"type": "STATIC"} if _is_ip(upstream.address) else {"type": "STRICT_DNS", "dns_lookup_family": "V4_PREFERRED"}
    )
    return {
        "name": name,
        **discovery,
        "connect_timeout": seconds(_UPSTREAM_CONNECT_MS),
        "per_connection_buffer_limit_bytes": _UPSTREAM_BUFFER_BYTES,
        "typed_extension_protocol_options": _speak({protocol: {}}),
        "circuit_breakers": _at_most(_UPSTREAM_CALLS),
        "load_assignment": _one_endpoint(name, socket_address(upstream.address, upstream.port)),
    }


def _is_ip(address: str) -> bool:
    try:
        ip_address(address)
    except ValueError:
        return False
    return True


def _speak(explicit: Message) -> Message:
    return {_HTTP_OPTIONS: typed(_HTTP_OPTIONS, explicit_http_config=explicit)}


def _at_most(calls: int) -> Message:
    return {"thresholds": [{"max_connections": calls, "max_pending_requests": calls, "max_requests": calls}]}


def _one_endpoint(cluster: str, address: Message) -> Message:
    return {"cluster_name": cluster, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]}
