# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the sources of a key or a plan: their names, and whether a limiter of the gateway sees them.

Claims and principals need no check against the gateway: what is not there counts as missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from weir_operator.domain.gateways import Gateway
from weir_operator.domain.matching import PathPattern
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.sources import (
    CLIENT_IP,
    HOST,
    MAX_CLAIM_DEPTH,
    METHOD,
    PRINCIPAL,
    CookieKey,
    HeaderKey,
    KeyPart,
    claim_text,
    parse_claim,
)
from weir_operator.domain.specs import (
    ClaimSource,
    ClientIPSource,
    CookieSource,
    HeaderSource,
    HostSource,
    KeySource,
    MethodSource,
    PathSource,
    PrincipalSource,
    QuerySource,
    RouteSpec,
)

FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
QUERY_NAME = re.compile(r"[A-Za-z0-9_.~:@$!*'()/\[\]-]{1,128}")
Routes = Sequence[tuple[RouteSpec, PathPattern | Problem]]


def check_key(key: Sequence[KeySource], path: str, gateway: Gateway, routes: Routes) -> Iterator[Problem]:
    """Every problem of a rule's key; `routes` are the policy's, parsed."""
    seen: set[str] = set()
    for index, source in enumerate(key):
        here = f"{path}[{index}]"
        yield from check_source(source, here, gateway)
        if isinstance(source, PathSource):
            yield from _check_capture(source.name, f"{here}.path", routes)
        name = _title(source)
        if name in seen:
            yield invalid(here, f"{name} is already part of this key", "name each source once")
        seen.add(name)


def check_source(source: KeySource, path: str, gateway: Gateway) -> Iterator[Problem]:
    """What is wrong with one source by itself, or with it on this gateway; `path` is the list entry or object."""
    match source:
        case HeaderSource(name):
            yield from check_header(name, f"{path}.header", gateway)
        case CookieSource(name):
            yield from _check_cookie(name, f"{path}.cookie", gateway)
        case QuerySource(name) if not QUERY_NAME.fullmatch(name):
            hint = 'write a name like "api_key": letters, digits and . _ ~ : @ $ ! * \' ( ) / [ ] -'
            yield invalid(f"{path}.query", f'"{name}" is no name of a query parameter', hint)
        case ClaimSource(claim) if parse_claim(claim) is None:
            hint = 'write names of members with dots between, like "sub" or "realm.roles"; a dot in a name is "\\."'
            yield invalid(f"{path}.claim", f'"{claim}" is no path of at most {MAX_CLAIM_DEPTH} members', hint)
        case ClientIPSource(ipv4, ipv6):
            for bits, most, member in ((ipv4, 32, "ipv4Prefix"), (ipv6, 128, "ipv6Prefix")):
                if not 0 <= bits <= most:
                    yield invalid(f"{path}.clientIP.{member}", f"{bits} is out of range", f"write 0 to {most}")


def check_header(name: str, path: str, gateway: Gateway) -> list[Problem]:
    """Whether a limiter of the gateway can read the header."""
    if not FIELD_NAME.fullmatch(name):
        return [invalid(path, f'"{name}" is no header name', 'write a name like "x-api-key"')]
    if name.lower() in gateway.withheld_headers:
        message = f'gateway "{gateway.name}" withholds the header "{name.lower()}" from its limiters'
        return [invalid(path, message, "use another header, or ask its administrator to forward this one")]
    if name.lower() == "host":
        hint = "use spec.match.hosts, or host: {} in a key"
        return [invalid(path, "the host never reaches a limiter as a header", hint)]
    return []


def is_readable(part: KeyPart, gateway: Gateway) -> bool:
    """Whether a limiter of the gateway, as it is set up now, can read a compiled source."""
    match part:
        case HeaderKey(name):
            return not check_header(name, "", gateway)
        case CookieKey(name):
            return not _check_cookie(name, "", gateway)
    return True


def check_values(values: Sequence[str], path: str) -> list[Problem]:
    """What is wrong with a list of header values."""
    # The value itself may be a secret and is not quoted. Envoy strips the space around a header's value.
    if not values:
        return [invalid(path, "is empty", "write at least one value")]
    hint = "write the value without space around it; an empty value counts as missing"
    return [
        invalid(f"{path}[{index}]", "is a value that no header can have", hint)
        for index, value in enumerate(values)
        if not is_header_value(value)
    ]


def is_header_value(value: str) -> bool:
    """Whether a request header can have this value, as the limiter sees it."""
    return bool(value) and value == value.strip(" \t") and not any(ord(c) < 32 or ord(c) == 127 for c in value)  # noqa: PLR2004


def _check_cookie(name: str, path: str, gateway: Gateway) -> list[Problem]:
    if not FIELD_NAME.fullmatch(name):
        return [invalid(path, f'"{name}" is no name of a cookie', 'write a name like "session"')]
    if "cookie" in gateway.withheld_headers:
        message = f'gateway "{gateway.name}" withholds cookies (the header "cookie") from its limiters'
        return [invalid(path, message, "use another source, or ask its administrator to forward them")]
    return []


def _check_capture(name: str, path: str, routes: Routes) -> Iterator[Problem]:
    if not routes:
        hint = f'list routes in spec.match.routes that have it, like "/orgs/{{{name}}}/*"'
        yield invalid(path, f'the policy matches every path, and not every path has a "{{{name}}}"', hint)
        return
    lacking = [
        route.path for route, pattern in routes if isinstance(pattern, PathPattern) and name not in pattern.parameters
    ]
    if lacking:
        hint = f'write "{{{name}}}" as a segment of every route, or put that route into a policy of its own'
        yield invalid(path, f'the route "{lacking[0]}" has no parameter "{{{name}}}"', hint)


def _title(source: KeySource) -> str:  # noqa: PLR0911  a table of cases reads best as one
    match source:
        case HeaderSource(name):
            return f"header {name.lower()}"
        case CookieSource(name):
            return f"cookie {name}"
        case QuerySource(name):
            return f"query {name}"
        case ClaimSource(claim):
            members = parse_claim(claim)
            return f"claim {claim_text(members) if members else claim}"
        case PathSource(name):
            return f"path {name}"
        case PrincipalSource():
            return PRINCIPAL
        case HostSource():
            return HOST
        case MethodSource():
            return METHOD
        case _:
            return CLIENT_IP
