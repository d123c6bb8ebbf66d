# SPDX-License-Identifier: Apache-2.0
"""Whom an override means: its sources resolved among those of the rules, its values checked and hashed.

Values are never quoted in problems: they may be secrets, and conditions are widely readable.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weir_operator.domain.matching import check_host, check_methods
from weir_operator.domain.overriding import Subject
from weir_operator.domain.policy_compiler import sha256
from weir_operator.domain.problems import Problem, invalid
from weir_operator.domain.ruleset import Rule
from weir_operator.domain.source_checks import FIELD_NAME, is_header_value
from weir_operator.domain.sources import (
    CLIENT_IP,
    HOST,
    METHOD,
    NAMED_KINDS,
    PRINCIPAL,
    ClientIPKey,
    KeyPart,
    claim_text,
    parse_claim,
    source_name,
)
from weir_operator.domain.specs import SubjectValue

_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")
_BARE = (CLIENT_IP, PRINCIPAL, HOST, METHOD)
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # as the limiter folds paths, no further

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Named:
    """One source of a subject by its one name, with the value, and where it stands in the object."""

    source: str
    value: SubjectValue
    path: str


def sources_of(rule: Rule) -> frozenset[str]:
    """The names of all sources of a rule's key."""
    return _names_of(rule.key)


@functools.lru_cache(maxsize=4096)  # arbitrary; thousands of overrides ask about the few keys of their policies
def _names_of(key: tuple[KeyPart, ...]) -> frozenset[str]:
    return frozenset(source_name(part) for part in key)


def resolve(value: SubjectValue, path: str, keyed: Sequence[str]) -> Named | Problem:
    """The source that the user means: by `kind:name`, or by its own name where only one of `keyed` has it."""
    kind, colon, name = value.source.partition(":")
    if value.source in _BARE:
        return Named(value.source, value, path)
    if colon and kind in NAMED_KINDS:
        return Named(f"{kind}:{_own_name(kind, name)}", value, path)
    found = [source for source in keyed if source not in _BARE and _is_called(source, value.source)]
    if len(found) > 1:
        return invalid(path, f"can be {' or '.join(found)}", "write the one that is meant, in this form")
    if found:
        return Named(found[0], value, path)
    if FIELD_NAME.fullmatch(value.source):
        return Named(f"header:{value.source.lower()}", value, path)  # what most people mean; no rule has it
    hint = (
        f"write a source's own name, like a header's, or its kind and name, like \"cookie:sid\"; or {', '.join(_BARE)}"
    )
    return invalid(path, f'"{value.source}" is no source', hint)


def check_value(named: Named) -> Iterator[Problem]:
    """What is wrong with a subject's value."""
    text, kind = named.value.value, named.source.partition(":")[0]
    if named.value.hashed:
        if not _SHA256.fullmatch(text):
            yield invalid(f"{named.path}.sha256", "is no SHA-256", "write 64 hexadecimal digits")
        return
    match kind:
        case "clientIP" if parse_address(text) is None:
            hint = 'write one address, like "203.0.113.7"; the rule\'s prefix length decides how far it reaches'
            yield invalid(named.path, "is no IP address", hint)
        case "header" | "cookie" if not is_header_value(text) or (kind == "cookie" and ";" in text):
            hint = "write the value without space around it; an empty value counts as missing"
            yield invalid(named.path, f"is a value that no {kind} can have", hint)
        case "path" if not text or "/" in text:
            yield invalid(named.path, "is no segment of a path", "write what stands between two slashes, decoded")
        case "host" if check_host(text.lower(), "") or text.startswith("*"):
            yield invalid(named.path, "is no host", 'write one host without port, like "api.example.com"')
        case "method" if check_methods([text.upper()], ""):
            yield invalid(named.path, "is no method", "write a method, like GET")
        case _ if not text:
            yield invalid(named.path, "is empty", "an empty value counts as missing; write the value")


def hash_subject(subject: Sequence[Named], rule: Rule) -> tuple[Subject, ...]:
    """The subject as the rule counts it; rules may count addresses by networks of different sizes."""
    return tuple(sorted((_hash(named, rule) for named in subject), key=lambda item: item.source))


def parse_address(text: str) -> Address | None:
    """An address without zone, IPv4-mapped ones as IPv4; None for anything else."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return None if address.scope_id is not None else address.ipv4_mapped or address
    return address


def network_text(address: Address, bits: int) -> str:
    """The canonical text of the network of `bits` bits around an address; a whole address has no `/n`."""
    network = ipaddress.ip_network((address, bits), strict=False)
    return str(network.network_address) if bits == address.max_prefixlen else str(network)


def _own_name(kind: str, name: str) -> str:
    """The name after the kind, in the spelling of the rules' sources."""
    if kind == "claim":
        members = parse_claim(name)
        return claim_text(members) if members else name
    return name.lower() if kind == "header" else name


def _is_called(source: str, name: str) -> bool:
    kind, _, own = source.partition(":")
    return own == _own_name(kind, name)


def _hash(named: Named, rule: Rule) -> Subject:
    value, kind = named.value.value, named.source.partition(":")[0]
    if named.value.hashed:
        return Subject(named.source, value.lower())
    match kind:
        case "clientIP":
            value = _network_of(value, rule)
        case "path":
            value = value.translate(_ASCII_LOWER)
        case "host":
            value = value.lower()
        case "method":
            value = value.upper()
    return Subject(named.source, sha256(value))


def _network_of(text: str, rule: Rule) -> str:
    (prefixes,) = (part.client_ip for part in rule.key if isinstance(part, ClientIPKey))
    address = parse_address(text)
    if address is None:  # refused by check_value
        raise AssertionError(rule.name)
    bits = prefixes.ipv4_prefix if isinstance(address, ipaddress.IPv4Address) else prefixes.ipv6_prefix
    return network_text(address, bits)
