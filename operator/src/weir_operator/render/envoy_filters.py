# SPDX-License-Identifier: Apache-2.0
"""The HTTP filters that put a limiter in front of a route: who the client is, then the question to the limiter.

The same list serves the bundled gateway and people who bring their own Envoy, so every filter here must be right
whatever stands around it.
"""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network

from weir_operator.domain.gateways import Gateway
from weir_operator.render.envoy_closed import FAILURE_MARKER, closed_filter
from weir_operator.render.envoy_document import Message, extension, seconds, typed

CLIENT_IP_HEADER = "x-weir-client-ip"
ENABLED_RUNTIME_KEY = "weir.enabled_pct"
LIMITER_CLUSTER = "weir_limiter"
METADATA_NAMESPACE = "envoy.filters.http.ext_authz"  # Envoy files the limiter's dynamic metadata under this name

_MAPPED_PREFIX = "::ffff:"
_MAPPED_BITS = 96


def limiter_filters(gateway: Gateway) -> list[Message]:
    """The filters in their order; they belong before anything that answers or routes a request."""
    return [*_client_ip_filters(gateway.envoy.trusted_proxies.cidrs), _ext_authz(gateway), closed_filter(gateway)]


def cidr_ranges(cidrs: tuple[str, ...]) -> list[Message]:
    """Envoy's form of these networks, each IPv4 one also in its IPv4-mapped spelling.

    Some proxies write `::ffff:10.0.0.1` into X-Forwarded-For; without the second form such a proxy would pass for
    the client.
    """
    ranges: list[Message] = []
    for network in (ip_network(cidr, strict=False) for cidr in cidrs):
        address = str(network.network_address)
        ranges.append({"address_prefix": address, "prefix_len": network.prefixlen})
        if isinstance(network, IPv4Network):
            mapped_len = _MAPPED_BITS + network.prefixlen
            ranges.append({"address_prefix": _MAPPED_PREFIX + address, "prefix_len": mapped_len})
    return ranges


def _client_ip_filters(trusted: tuple[str, ...]) -> list[Message]:
    """State the address that Envoy trusts in the header that the limiter reads; a client's own value never survives.

    Nor does a client's own marker that the limiter gave no answer.

    Where proxies are trusted by network, an address inside these networks is no client's: it is the proxy that Envoy
    falls back to when X-Forwarded-For is missing or unreadable. One shared counter for all such clients would be
    wrong for each of them, so the header stays away and the rule's `onMissingKey` decides.
    """
    forget_marker: Message = {"remove": FAILURE_MARKER}
    state: Message = {
        "append": {
            "header": {"key": CLIENT_IP_HEADER, "value": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"},
            "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
        }
    }
    if not trusted:
        return [_header_mutation("weir.client_ip", state, forget_marker)]
    forget_claim = _header_mutation("weir.client_ip_claim", {"remove": CLIENT_IP_HEADER}, forget_marker)
    return [forget_claim, _unless_client_in(trusted, _header_mutation("weir.client_ip", state))]


def _header_mutation(name: str, *mutations: Message) -> Message:
    return extension(
        name,
        "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
        mutations={"request_mutations": list(mutations)},
    )


def _unless_client_in(cidrs: tuple[str, ...], http_filter: Message) -> Message:
    """The same filter, skipped while the address that Envoy trusts lies in one of these networks."""
    client = extension(
        "client_address", "envoy.extensions.matching.common_inputs.network.v3.SourceIPInput"
    )  # in an HTTP filter this is the detected client, not the TCP peer
    inside = extension(
        "trusted_proxies",
        "envoy.extensions.matching.input_matchers.ip.v3.Ip",
        cidr_ranges=cidr_ranges(cidrs),
        stat_prefix="weir_trusted_proxies",
    )
    skip = extension("skip", "envoy.extensions.filters.common.matcher.action.v3.SkipFilter")
    matcher = {
        "predicate": {"single_predicate": {"input": client, "custom_match": inside}},
        "on_match": {"action": skip},
    }
    return extension(
        str(http_filter["name"]),
        "envoy.extensions.common.matching.v3.ExtensionWithMatcher",
        extension_config=http_filter,
        xds_matcher={"matcher_list": {"matchers": [matcher]}},
    )


def _ext_authz(gateway: Gateway) -> Message:
    """The question to the limiter. It fails open; what a Closed rule covers is then refused by the next filter."""
    withheld = [{"exact": name, "ignore_case": True} for name in sorted(gateway.withheld_headers)]
    return extension(
        METADATA_NAMESPACE,
        "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
        transport_api_version="V3",
        stat_prefix="weir",
        grpc_service={
            "envoy_grpc": {"cluster_name": LIMITER_CLUSTER},
            "timeout": seconds(gateway.decision_timeout_ms),
        },
        # The claims of the token that the JWT filter has verified; nothing is sent where that filter is not.
        metadata_context_namespaces=[gateway.jwt.metadata_namespace],
        # A dead limiter must not take the API down. The mark is what the next filter and the upstream go by.
        failure_mode_allow=True,
        failure_mode_allow_header_add=True,
        # Should anybody switch failure_mode_allow off: unavailable (503), not the default, "forbidden" (403).
        status_on_error={"code": "ServiceUnavailable"},
        # Envoy's own switch, read per request: POST /runtime_modify?weir.enabled_pct=0 works with a wedged limiter.
        filter_enabled={
            "runtime_key": ENABLED_RUNTIME_KEY,
            "default_value": {"numerator": 100, "denominator": "HUNDRED"},
        },
        # Without this a value with CR LF comes out as two header lines.
        validate_mutations=True,
        # Without this every 429 counts as an error of the upstream's cluster.
        charge_cluster_response_stats=False,
        # Repeated header lines reach the limiter as one value, joined by "," in their order.
        encode_raw_headers=False,
        **({"disallowed_headers": {"patterns": withheld}} if withheld else {}),
    )


def router() -> Message:
    """The last filter of every chain."""
    return {
        "name": "envoy.filters.http.router",
        "typed_config": typed("envoy.extensions.filters.http.router.v3.Router"),
    }
