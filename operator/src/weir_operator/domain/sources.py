# SPDX-License-Identifier: Apache-2.0
"""What a key can be made of: the wire types, the one name of each source, and the syntax of a claim's path.

A source's name (`header:x-api-key`, `clientIP`) is what overrides call it in the document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weir_operator.domain.wire import member

_FIELD_NAME = "^[!#$%&'*+.^_`|~0-9a-z-]+$"  # RFC 9110 field name, lower case
_CLAIM_PART = re.compile(r"(?:[^.\\]|\\[.\\])+")
_ESCAPE = re.compile(r"\\(.)")
MAX_CLAIM_DEPTH = 8  # arbitrary; tokens nest two or three levels

CLIENT_IP, PRINCIPAL, HOST, METHOD = "clientIP", "principal", "host", "method"
NAMED_KINDS = ("header", "cookie", "query", "claim", "path")
"""Sources of which there are many, told apart by a name after the kind and a colon."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """An object without members: the source has no settings."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The size of the network that counts as one client."""

    ipv4_prefix: int = member("Bits.", minimum=0, maximum=32)
    ipv6_prefix: int = member("Bits.", minimum=0, maximum=128)


@dataclass(frozen=True, slots=True)
class HeaderKey:
    """The value of a request header."""

    header: str = member("Lower case.", pattern=_FIELD_NAME)


@dataclass(frozen=True, slots=True)
class CookieKey:
    """The value of a cookie, as it was sent."""

    cookie: str = member("The cookie's name; case matters.", minLength=1)


@dataclass(frozen=True, slots=True)
class QueryKey:
    """The first value of a query parameter, percent-decoded."""

    query: str = member("The parameter's name; case matters.", minLength=1)


@dataclass(frozen=True, slots=True)
class ClientIPKey:
    """The client's network."""

    client_ip: Prefixes = member("How much of the address counts.", name="clientIP")


@dataclass(frozen=True, slots=True)
class ClaimKey:
    """A claim of the verified token."""

    claim: tuple[str, ...] = member("Names of members, from the payload inwards.", minItems=1)


@dataclass(frozen=True, slots=True)
class PrincipalKey:
    """The peer of mutual TLS."""

    principal: Nothing = member("Without settings.")


@dataclass(frozen=True, slots=True)
class PathKey:
    """What a parameter of the route stands for."""

    path: str = member("The parameter's name, without braces.", minLength=1)


@dataclass(frozen=True, slots=True)
class HostKey:
    """The request's host."""

    host: Nothing = member("Without settings.")


@dataclass(frozen=True, slots=True)
class MethodKey:
    """The request's method."""

    method: Nothing = member("Without settings.")


KeyPart = HeaderKey | CookieKey | QueryKey | ClientIPKey | ClaimKey | PrincipalKey | PathKey | HostKey | MethodKey


def source_name(part: KeyPart) -> str:  # noqa: PLR0911  a table of cases reads best as one
    """The one name of a source: what an override's subject says in the document."""
    match part:
        case HeaderKey(name):
            return f"header:{name}"
        case CookieKey(name):
            return f"cookie:{name}"
        case QueryKey(name):
            return f"query:{name}"
        case ClaimKey(members):
            return f"claim:{claim_text(members)}"
        case PathKey(name):
            return f"path:{name}"
        case ClientIPKey():
            return CLIENT_IP
        case PrincipalKey():
            return PRINCIPAL
        case HostKey():
            return HOST
        case MethodKey():
            return METHOD


def parse_claim(text: str) -> tuple[str, ...] | None:
    """The members that a claim's dotted text names, `\\.` and `\\\\` being a dot and a backslash in a name.

    None = malformed: an empty member, another escape, or more than `MAX_CLAIM_DEPTH` members.
    """
    members = _CLAIM_PART.findall(text)
    if ".".join(members) != text or not members or len(members) > MAX_CLAIM_DEPTH:
        return None
    return tuple(_ESCAPE.sub(r"\1", part) for part in members)


def claim_text(members: tuple[str, ...]) -> str:
    """The dotted text of a claim's path: `parse_claim` undone."""
    return ".".join(part.replace("\\", "\\\\").replace(".", "\\.") for part in members)
