# SPDX-License-Identifier: Apache-2.0
"""The listener of the bundled gateway: connections, the one spelling of each path, routes, the access log.

What a limiter must be able to rely on is settled here, before any filter runs: who the client is, and that
two requests which reach the same handler carry the same path.
"""

from __future__ import annotations

from weir_operator.domain.gateways import Gateway, TrustedProxies, Upstream
from weir_operator.render.envoy_clusters import grpc_cluster_name
from weir_operator.render.envoy_document import Message, extension, socket_address
from weir_operator.render.envoy_filters import METADATA_NAMESPACE, cidr_ranges, limiter_filters, router

# Envoy's published advice for a proxy that faces strangers.
_CONNECTION_BUFFER_BYTES = 32_768
_HTTP2_LIMITS: Message = {
    "max_concurrent_streams": 100,
    "initial_stream_window_size": 65_536,
    "initial_connection_window_size": 1_048_576,
}
_REQUEST_HEADERS_TIMEOUT = "10s"  # a client that dribbles its headers holds memory no longer than this
_STREAM_IDLE_TIMEOUT = "300s"
_CONNECTION_IDLE_TIMEOUT = "3600s"

_METADATA_FIELDS = ("policy", "rule", "decision", "mode")


def listener(gateway: Gateway) -> Message:
    """The one listener: plain HTTP/1.1 and HTTP/2 (gRPC) on the gateway's address."""
    return {
        "name": "weir",
        "address": socket_address(gateway.envoy.listen.address, gateway.envoy.listen.port),
        "per_connection_buffer_limit_bytes": _CONNECTION_BUFFER_BYTES,
        "filter_chains": [{"filters": [_connection_manager(gateway)]}],
    }


def _connection_manager(gateway: Gateway) -> Message:
    return extension(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="weir",
        **_client_detection(gateway.envoy.trusted_proxies),
        early_header_mutation_extensions=[_forget_envoy_headers()],
        **_one_spelling(),
        http2_protocol_options=_HTTP2_LIMITS,
        request_headers_timeout=_REQUEST_HEADERS_TIMEOUT,
        stream_idle_timeout=_STREAM_IDLE_TIMEOUT,
        # A client can quote the id of a refused request, and the access log holds it.
        always_set_request_id_in_response=True,
        access_log=[_access_log()],
        http_filters=[*limiter_filters(gateway), router()],
        route_config=_routes(gateway),
    )


def _client_detection(trusted: TrustedProxies) -> Message:
    """Who the client is: the peer, the n-th entry from the right, or the first untrusted one from the right."""
    if not trusted.cidrs:
        return {"use_remote_address": True, "xff_num_trusted_hops": trusted.hops}
    by_network = extension(
        "envoy.http.original_ip_detection.xff",
        "envoy.extensions.http.original_ip_detection.xff.v3.XffConfig",
        xff_trusted_cidrs={"cidrs": cidr_ranges(trusted.cidrs)},
        skip_xff_append=False,
    )
    return {"use_remote_address": False, "original_ip_detection_extensions": [by_network]}


def _forget_envoy_headers() -> Message:
    """Drop a client's `x-envoy-*` before Envoy obeys it.

    With proxies trusted by network Envoy takes no request for one from outside and would honour `x-envoy-retry-on`:
    one counted request, several at the upstream.
    """
    return extension(
        "envoy.http.early_header_mutation.header_mutation",
        "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
        mutations=[{"remove_on_match": {"key_matcher": {"prefix": "x-envoy-"}}}],
    )


def _one_spelling() -> Message:
    """Normalise what can be spelled in several ways, or refuse it.

    An escaped slash is answered by a redirect to the path without it: a well-meaning client follows and is counted
    under the one spelling, and neither the limiter nor the upstream ever sees the other. A header with an
    underscore is refused, since many frameworks read `x_api_key` as `x-api-key`, a key the limiter would not have seen.
    """
    return {
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "UNESCAPE_AND_REDIRECT",
        "strip_trailing_host_dot": True,
        "common_http_protocol_options": {
            "idle_timeout": _CONNECTION_IDLE_TIMEOUT,
            "headers_with_underscores_action": "REJECT_REQUEST",
        },
    }


def _access_log() -> Message:
    """One JSON object per request on stdout. No query string and no request header: either may hold a secret."""
    fields: Message = {
        "time": "%START_TIME%",
        "request_id": "%REQUEST_HEADER(X-REQUEST-ID)%",
        "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
        "method": "%REQUEST_HEADER(:METHOD)%",
        "host": "%REQUEST_HEADER(:AUTHORITY)%",
        "path": "%PATH(NQ:PATH)%",
        "protocol": "%PROTOCOL%",
        "status": "%RESPONSE_CODE%",
        "details": "%RESPONSE_CODE_DETAILS%",
        "flags": "%RESPONSE_FLAGS%",
        "duration_ms": "%DURATION%",
        "upstream": "%UPSTREAM_CLUSTER%",
        "limiter_ms": f"%DYNAMIC_METADATA({METADATA_NAMESPACE}:ext_authz_duration)%",
        **{name: f"%DYNAMIC_METADATA({METADATA_NAMESPACE}:{name})%" for name in _METADATA_FIELDS},
    }
    return extension(
        "envoy.access_loggers.stdout",
        "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
        log_format={"json_format": fields},
    )


def _routes(gateway: Gateway) -> Message:
    return {
        "name": "weir",
        "ignore_port_in_host_matching": True,
        "virtual_hosts": [_virtual_host(upstream) for upstream in gateway.envoy.upstreams],
    }


def _virtual_host(upstream: Upstream) -> Message:
    grpc = {
        "match": {"prefix": "/", "grpc": {}},
        # A gRPC stream may live long; its own deadline (grpc-timeout) is what ends it.
        "route": {
            "cluster": grpc_cluster_name(upstream),
            "timeout": "0s",
            "max_stream_duration": {"grpc_timeout_header_max": "0s"},
        },
    }
    http = {"match": {"prefix": "/"}, "route": {"cluster": upstream.name}}
    return {"name": upstream.name, "domains": list(upstream.hosts), "routes": [grpc, http]}
