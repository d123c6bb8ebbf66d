# SPDX-License-Identifier: Apache-2.0
"""The written forms of settings: text in, value out, or a ValueError that says what would be right.

Owns syntax only: whether an address is free or a file exists is found out by whoever uses it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m)")
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_NAME: Final = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,251}[A-Za-z0-9])?")
_OBJECT: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_UNIX_PATH_MAX: Final = 106  # sun_path holds 108 bytes with its end; putting the socket in place takes one more
_PORT_MAX: Final = 65_535
_COUNT_MAX: Final = 1_000_000  # arbitrary; far beyond what a machine bears
_THREADS_MAX: Final = 64  # the server's own bound
_STORE_SCHEMES: Final = ("redis://", "rediss://", "redis+cluster://", "rediss+cluster://", "redis+unix://")


def name(text: str) -> str:
    """A name as Kubernetes and host names have it."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"must be a name of letters, digits, '-', '.' and '_', not {text!r}")
    return text


def non_empty(text: str) -> str:
    """Any text but the empty one."""
    if not text:
        raise ValueError("must not be empty")
    return text


def configmap(text: str) -> str:
    """`NAMESPACE/NAME`."""
    namespace, separator, rest = text.partition("/")
    if not (separator and _OBJECT.fullmatch(namespace) and _OBJECT.fullmatch(rest)):
        raise ValueError(f"must be NAMESPACE/NAME, not {text!r}")
    return text


def address(text: str) -> str:
    """`ADDRESS:PORT`, an IPv6 address in brackets."""
    host, _, port = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    if not (_is_ip(host[1:-1], 6) if in_brackets else _is_ip(host, 4)) or not _is_port(port):
        raise ValueError(f"must be ADDRESS:PORT such as 127.0.0.1:9090 or [::1]:9090, not {text!r}")
    return text


def _is_ip(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _PORT_MAX


def listen(text: str) -> str:
    """`unix:PATH` or `tcp:ADDRESS:PORT`."""
    kind, _, rest = text.partition(":")
    if kind == "unix" and rest:
        if len(rest.encode()) > _UNIX_PATH_MAX:
            raise ValueError(
                f"must be a path of at most {_UNIX_PATH_MAX} bytes, the longest that a Unix socket may have"
            )
        return text
    if kind == "tcp":
        address(rest)
        return text
    raise ValueError(f"must be unix:PATH or tcp:ADDRESS:PORT, not {text!r}")


def store_url(text: str) -> str:
    """The URL of a store. The message does not quote it, because it may hold a password."""
    if not text.startswith(_STORE_SCHEMES):
        *most, last = _STORE_SCHEMES
        raise ValueError(f"must be a URL that begins with {', '.join(most)} or {last}")
    return text


def duration(text: str) -> float:
    """A positive time with its unit; in seconds."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not seconds:
        raise ValueError(f"must be a time above zero with its unit, such as 500us, 5ms, 2s or 1m, not {text!r}")
    return seconds


def count(text: str) -> int:
    """A whole number, 0 or more."""
    number = int(text) if text.isascii() and text.isdigit() else _COUNT_MAX + 1
    if number > _COUNT_MAX:
        raise ValueError(f"must be a whole number from 0 to {_COUNT_MAX}, not {text!r}")
    return number


def threads(text: str) -> int:
    """A whole number from 1 to 64."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= _THREADS_MAX:
        raise ValueError(f"must be a whole number from 1 to {_THREADS_MAX}, not {text!r}")
    return number


def boolean(text: str) -> bool:
    """`true` or `false`."""
    if text not in ("true", "false"):
        raise ValueError(f"must be true or false, not {text!r}")
    return text == "true"


def one_of(*words: str) -> Callable[[str], str]:
    """One of the listed words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {text!r}")
        return text

    return parse
