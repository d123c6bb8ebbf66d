# SPDX-License-Identifier: Apache-2.0
"""The operator's settings file, read into the frozen gateways of `domain.gateways`.

Owns the file's form, its defaults and the words that say what is wrong with it; all mistakes are reported at once. Must
not read environment variables: everything that differs between installations stands in the file or on the command line.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from weir_operator.document import Section, load_yaml
from weir_operator.domain.gateways import (
    ANY_HOST,
    DEFAULT_RULE_BUDGET,
    Address,
    Envoy,
    Gateway,
    HostsDefault,
    Jwt,
    NamespaceBudget,
    Patience,
    TrustedProxies,
    Upstream,
)
from weir_operator.domain.matching import check_host, parse_network
from weir_operator.domain.problems import Problem

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_GATEWAY_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")  # leaves room for suffixes in the names of objects
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_METADATA_NAME_MAX = 128  # arbitrary; Envoy's own names have about 40
_DURATION = re.compile(r"([0-9]+)(ms|s)")
MAX_PORT = 65535
SOCKET_PATH_MAX = 107  # the kernel's 108 bytes with the end of the string
DIRECTORY_MAX = 1024  # arbitrary; the kernel takes 4096 bytes with the name of a file
MAX_HOPS = 16  # arbitrary: more proxies than any path has
TIMEOUT_MAX_MS = 10_000  # a client would have given up long before
MAX_DELAY_MAX_MS = 60_000  # likewise; and every request that waits holds memory in two programs
PATIENCE_MAX_MS = 7 * 86_400_000  # arbitrary: who never wants to hear of silence writes a week
NAMESPACE_BUDGET_MAX = 1_000_000_000  # in effect none, for a gateway of one team
RULE_BUDGET_MAX = 64  # arbitrary: the store's work for one request grows with every rule


class InvalidSettings(Exception):  # noqa: N818  named by its consequence
    """The settings cannot be used; `mistakes` says why, one line each with its path."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Settings:
    """All that the settings file says."""

    gateways: tuple[Gateway, ...]


def read_settings(path: Path) -> Settings:
    """Read and check the file. Raises InvalidSettings with every mistake in it."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings([f"cannot read {path}: {error}"]) from error
    return parse_settings(text)


def parse_settings(text: str) -> Settings:
    """Parse the file's content. Raises InvalidSettings with every mistake in it."""
    try:
        document = load_yaml(text)
    except yaml.YAMLError as error:
        raise InvalidSettings([f"not YAML: {' '.join(str(error).split())}"]) from error
    if not isinstance(document, dict):
        raise InvalidSettings(["expected a mapping with the member gateways"])
    mistakes: list[str] = []
    root = Section("", document, mistakes)
    gateways = tuple(_gateway(section) for section in root.sections("gateways"))
    root.finish()
    if not gateways and not mistakes:
        root.wrong("gateways", "is empty, so there is nothing to do: set up at least one gateway")
    for name, count in Counter(gateway.name for gateway in gateways).items():
        if name and count > 1:
            mistakes.append(f"gateways: the name {name!r} stands {count} times")
    if mistakes:
        raise InvalidSettings(mistakes)
    return Settings(gateways)


def _gateway(section: Section) -> Gateway:
    limiters = section.section("limiters")
    # One limiter spelt in two ways would be counted as two.
    addresses = tuple(address.rstrip("/").lower() for address in limiters.texts("addresses", _check_url))
    for address, count in Counter(addresses).items():
        if count > 1:
            limiters.wrong("addresses", f"{address!r} stands {count} times")
    limiters.finish()
    forwarded = section.section("forwardedHeaders")
    withheld = forwarded.texts("withhold", _check_header, ("authorization", "cookie"))
    forwarded.finish()
    gateway = Gateway(
        name=section.text("name", _check_gateway_name),
        namespace=section.text("namespace", _check_label),
        limiters=addresses,
        allowed_namespaces=frozenset(section.texts("allowedNamespaces", _check_namespace)),
        hosts=_hosts(section.section("hosts")),
        hosts_default=HostsDefault(_choice(section, "hostsDefault", "None", "Any")),
        withheld_headers=frozenset(withheld),
        envoy=_envoy(section.section("envoy")),
        max_delay_ms=_max_delay_ms(section.section("queueing")),
        rule_budget=section.number("ruleBudget", 1, RULE_BUDGET_MAX, DEFAULT_RULE_BUDGET),
        jwt=_jwt(section.section("jwt")),
        patience=_patience(section.section("conditions")),
        namespace_budget=_namespace_budget(section.section("namespaceBudget")),
    )
    for namespace in sorted(gateway.hosts):
        if not gateway.admits(namespace):
            section.wrong(f"hosts.{namespace}", "is for a namespace that allowedNamespaces lacks")
    section.finish()
    return gateway


def _hosts(section: Section) -> dict[str, tuple[str, ...]]:
    hosts = {}
    for namespace in section.members:
        complaint = _check_label(str(namespace))
        if complaint:
            section.wrong(str(namespace), f"{namespace!r} {complaint}")
        hosts[str(namespace)] = section.texts(namespace, _check_allowed_host)
    return hosts


def _envoy(section: Section) -> Envoy:
    defaults = Envoy()
    envoy = Envoy(
        listen=_address(section.section("listen"), defaults.listen),
        admin=_address(section.section("admin"), defaults.admin),
        limiter_socket=section.text("limiterSocket", _check_socket, defaults.limiter_socket),
        timeout_ms=_duration_ms(section, "timeout", defaults.timeout_ms, 1, TIMEOUT_MAX_MS),
        closed_directory=section.text("closedDirectory", _check_directory, defaults.closed_directory),
        trusted_proxies=_trusted_proxies(section.section("trustedProxies")),
        upstreams=tuple(_upstream(upstream) for upstream in section.sections("upstreams")),
    )
    _check_distinct(section, envoy.upstreams)
    section.finish()
    return envoy


def _check_distinct(section: Section, upstreams: tuple[Upstream, ...]) -> None:
    """Envoy refuses a whole bootstrap in which a cluster's name or a host stands twice."""
    names = Counter(upstream.name for upstream in upstreams)
    hosts = Counter(host for upstream in upstreams for host in upstream.hosts)
    for what, counted in (("name", names), ("host", hosts)):
        for value, count in counted.items():
            if value and count > 1:
                section.wrong("upstreams", f"the {what} {value!r} stands {count} times")


def _address(section: Section, default: Address) -> Address:
    address = Address(
        section.text("address", _check_ip, default.address), section.number("port", 1, MAX_PORT, default.port)
    )
    section.finish()
    return address


def _trusted_proxies(section: Section) -> TrustedProxies:
    trusted = TrustedProxies(section.texts("cidrs", _check_network), section.number("hops", 0, MAX_HOPS, 0))
    if trusted.cidrs and trusted.hops:
        section.mistakes.append(f"{section.path}: give cidrs or hops, not both")
    section.finish()
    return trusted


def _upstream(section: Section) -> Upstream:
    upstream = Upstream(
        name=section.text("name", _check_label),
        hosts=section.texts("hosts", _check_allowed_host),
        address=section.text("address", lambda value: "" if value else "is empty"),
        port=section.number("port", 1, MAX_PORT),
    )
    if not upstream.hosts:
        section.wrong("hosts", 'is required: at least one host, "*" for the rest')
    section.finish()
    return upstream


def _max_delay_ms(section: Section) -> int:
    delay_ms = _duration_ms(section, "maxDelay", 0, 0, MAX_DELAY_MAX_MS)
    section.finish()
    return delay_ms


def _jwt(section: Section) -> Jwt:
    defaults = Jwt()
    jwt = Jwt(
        section.text("metadataNamespace", _check_metadata_name, defaults.metadata_namespace),
        section.text("payloadKey", _check_metadata_name, defaults.payload_key),
    )
    section.finish()
    return jwt


def _patience(section: Section) -> Patience:
    defaults = Patience()
    patience = Patience(
        _duration_ms(section, "unmatchedAfter", defaults.unmatched_ms, 1, PATIENCE_MAX_MS),
        _duration_ms(section, "unaskedAfter", defaults.unasked_ms, 1, PATIENCE_MAX_MS),
    )
    section.finish()
    return patience


def _namespace_budget(section: Section) -> NamespaceBudget:
    defaults = NamespaceBudget()
    budget = NamespaceBudget(
        section.number("rules", 1, NAMESPACE_BUDGET_MAX, defaults.rules),
        section.number("documentBytes", 1, NAMESPACE_BUDGET_MAX, defaults.document_bytes),
        section.number("closedBytes", 1, NAMESPACE_BUDGET_MAX, defaults.closed_bytes),
    )
    section.finish()
    return budget


def _duration_ms(section: Section, name: str, default_ms: int, least_ms: int, most_ms: int) -> int:
    text = section.text(name, lambda value: "" if _DURATION.fullmatch(value) else "is no duration like 50ms", "")
    match = _DURATION.fullmatch(text)
    if match is None:
        return default_ms
    milliseconds = int(match[1]) * (1 if match[2] == "ms" else 1000)
    if not least_ms <= milliseconds <= most_ms:
        section.wrong(name, f"{text!r} is not between {least_ms}ms and {most_ms}ms")
    return milliseconds


def _choice(section: Section, name: str, *choices: str) -> str:
    value = section.text(name, lambda given: "" if given in choices else f"is none of {', '.join(choices)}", choices[0])
    return value if value in choices else choices[0]


def _check_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.path in {"", "/"} and parts.port != 0
    except ValueError:
        usable = False
    if usable and "@" in parts.netloc:
        return "names a user, and addresses stand in conditions and metrics for everybody to read"
    return "" if usable and not (parts.query or parts.fragment) else "is no base URL like http://127.0.0.1:9090"


def _check_gateway_name(value: str) -> str:
    return "" if _GATEWAY_NAME.fullmatch(value) else "is no name: lower-case letters, digits and -, at most 40"


def _check_label(value: str) -> str:
    return "" if _LABEL.fullmatch(value) else "is no name: lower-case letters, digits and -, at most 63"


def _check_namespace(value: str) -> str:
    return "" if value == "*" else _check_label(value)


def _check_header(value: str) -> str:
    return "" if _HEADER.fullmatch(value) else "is no header name in lower case"


def _check_metadata_name(value: str) -> str:
    return "" if value.isprintable() and 0 < len(value) <= _METADATA_NAME_MAX else "is no name of metadata"


def _check_allowed_host(value: str) -> str:
    problems: list[Problem] = [] if value == ANY_HOST else check_host(value, "")
    return f"is no host: {problems[0].hint}" if problems else ""


def _check_network(value: str) -> str:
    parsed = parse_network(value, "")
    return f"is no network: {parsed.hint or parsed.message}" if isinstance(parsed, Problem) else ""


def _check_ip(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return "is no IP address"
    return ""


def _check_directory(value: str) -> str:
    usable = value.startswith("/") and not value.endswith("/") and len(value.encode()) <= DIRECTORY_MAX
    return "" if usable else f"is no absolute path of a directory, without a slash at its end, of {DIRECTORY_MAX} bytes"


def _check_socket(value: str) -> str:
    if not value.startswith("/"):
        return "is no absolute path"
    return "" if len(value.encode()) <= SOCKET_PATH_MAX else f"is longer than {SOCKET_PATH_MAX} bytes"
