# SPDX-License-Identifier: Apache-2.0
"""The syntax of host and path patterns, and what one pattern says about another.

Patterns are compared with requests as the limiter sees them: host in lower case without port, path after
normalisation (decoded once, no empty or dot segments, no trailing slash, letters compared without case). A pattern
that no such request can ever match is refused here. Matching requests is the limiter's work, not ours.
"""

from __future__ import annotations

import ipaddress
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weir_operator.domain.gateways import ANY_HOST
from weir_operator.domain.problems import Problem, invalid

MAX_PATH = 1024  # characters; arbitrary, far above any real route
_HOST = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")
_PARAMETER = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # as the limiter folds, no further
_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A parsed path pattern: its segments in lower case (None = any one segment), and whether more may follow.

    `parameters` are the names of the segments that are None.
    """

    segments: tuple[str | None, ...]
    open_ended: bool
    parameters: tuple[str, ...] = field(default=(), compare=False)

    def covers(self, other: PathPattern) -> bool:
        """Whether every path that `other` matches is matched by this pattern too."""
        if len(other.segments) < len(self.segments) or (other.open_ended and not self.open_ended):
            return False
        if len(other.segments) > len(self.segments) and not self.open_ended:
            return False
        return all(mine in (None, theirs) for mine, theirs in zip(self.segments, other.segments, strict=False))

    def overlaps(self, other: PathPattern) -> bool:
        """Whether some path is matched by both patterns."""
        short, long = sorted((self, other), key=lambda pattern: len(pattern.segments))
        if len(long.segments) > len(short.segments) and not short.open_ended:
            return False
        pairs = zip(short.segments, long.segments, strict=False)
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


def parse_path(path: str, field: str) -> PathPattern | Problem:
    """Parse a route's path: `/a/b`, `/a/*` or `/a/{name}`; `field` is where it stands, for the problem."""
    if not path.startswith("/"):
        return invalid(field, f'"{path}" does not start with "/"', f'write "/{path}"')
    if len(path) > MAX_PATH:
        return invalid(field, f"is longer than {MAX_PATH} characters")
    open_ended = path.endswith("/*")
    body = path[1:-2] if open_ended else path[1:]
    segments = body.split("/") if body else []
    parsed: list[str | None] = []
    for segment in segments:
        flaw = _segment_flaw(segment)
        if flaw:
            return invalid(field, f'"{path}" {flaw[0]}', flaw[1])
        parsed.append(None if _PARAMETER.fullmatch(segment) else segment.translate(_ASCII_LOWER))
    names = tuple(segment[1:-1] for segment in segments if _PARAMETER.fullmatch(segment))
    if len(set(names)) < len(names):
        return invalid(field, f'"{path}" names a parameter twice', "give each {parameter} its own name")
    return PathPattern(tuple(parsed), open_ended, names)


def _segment_flaw(segment: str) -> tuple[str, str] | None:  # noqa: PLR0911  a table of cases reads best as one
    if segment in ("", ".", ".."):
        return (
            "has an empty or a dot segment or ends in a slash, so no request matches it",
            'requests are compared without these; write "/a/b", or "/a/*" for everything below',
        )
    if "?" in segment or "#" in segment:
        return ("holds a query or a fragment, so no request matches it", "only the path is compared")
    if ";" in segment:
        return ("holds a path parameter (;), so no request matches it", 'requests are compared without ";…"')
    if "\\" in segment:
        return ("holds a backslash, so no request matches it", 'requests are compared with "/" instead')
    if _ESCAPE.search(segment):
        return ("holds a percent escape, so no request matches it", "write the decoded character")
    if _PARAMETER.fullmatch(segment):
        return None
    if "*" in segment:
        return ('has a "*" that is not its last segment', 'write "/a/*" or "/a/{name}"')
    if "{" in segment or "}" in segment:
        return ("has a brace that is not a whole segment", 'a parameter is a segment like "{name}"')
    if not segment.isprintable():
        return ("holds an unprintable character", "")
    return None


def methods_with_head(methods: Iterable[str]) -> frozenset[str]:
    """The methods of the requests that a route with these matches: GET covers HEAD. None = all."""
    given = frozenset(methods)
    return given | {"HEAD"} if "GET" in given else given


def check_methods(methods: Iterable[str], field: str) -> list[Problem]:
    """What is wrong with a list of methods."""
    return [
        invalid(f"{field}[{index}]", f'"{method}" is no method', f'methods are upper case, like "{method.upper()}"')
        for index, method in enumerate(methods)
        if not _METHOD.fullmatch(method)
    ]


def check_host(host: str, field: str) -> list[Problem]:
    """What is wrong with a host pattern: exact, or with one leftmost wildcard."""
    if _HOST.fullmatch(host) and len(host) <= 253:  # noqa: PLR2004  the limit of a DNS name
        return []
    hint = 'write a lower-case name without port, like "api.example.com" or "*.example.com"'
    return [invalid(field, f'"{host}" is no host name', hint)]


def host_covers(allowed: str, wanted: str) -> bool:
    """Whether every host that `wanted` matches is matched by `allowed` too. "*" allows every host."""
    if allowed in (ANY_HOST, wanted):
        return True
    return allowed.startswith("*.") and wanted.removeprefix("*").endswith(allowed[1:])


def parse_network(text: str, field: str) -> Network | Problem:  # noqa: PLR0911  a table of cases reads best as one
    """Parse a network in CIDR notation; its host bits must be zero and the prefix must be written."""
    address = text.split("/", maxsplit=1)[0]
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return invalid(field, f'"{text}" is no network', 'write CIDR notation, like "10.0.0.0/8" or "2001:db8::/32"')
    if "%" in text:
        return invalid(field, f'"{text}" has a zone', "a zone means something on one machine only; leave it out")
    if "/" not in text:
        return invalid(field, f'"{text}" has no prefix length', f'write "{text}/{network.prefixlen}" for this address')
    if not text.rsplit("/", 1)[1].isdecimal():
        return invalid(field, f'"{text}" has a mask, not a prefix length', f'write "{network}"')
    if network.network_address != ipaddress.ip_address(address):
        return invalid(field, f'"{text}" has bits set beyond its prefix', f'write "{network}"')
    if isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped:
        return invalid(field, f'"{text}" is an IPv4 network in IPv6 form', "clients are compared as IPv4; write it so")
    return network


def covers_everybody(networks: Sequence[Network]) -> bool:
    """Whether these networks together hold every IPv4 and every IPv6 address."""
    v4 = [n for n in networks if isinstance(n, ipaddress.IPv4Network)]
    v6 = [n for n in networks if isinstance(n, ipaddress.IPv6Network)]
    return any(n.prefixlen == 0 for n in ipaddress.collapse_addresses(v4)) and any(
        n.prefixlen == 0 for n in ipaddress.collapse_addresses(v6)
    )
