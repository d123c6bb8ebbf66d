# SPDX-License-Identifier: Apache-2.0
"""Toxiproxy as a process, and its proxies: between a sidecar and its store, or between Envoy and a sidecar."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from lab import toxiproxy
from lab.processes import Part, free_port, spawn
from lab.waiting import eventually

_HOST = "127.0.0.1"
_READY_S = 20.0  # it is up in about 10 ms; this is for a machine that is busy building something


@dataclass(frozen=True, slots=True)
class Proxy:
    """A port that leads to another one, in good order until it is told otherwise."""

    api: str
    name: str
    port: int

    @property
    def url(self) -> str:
        """The store behind it."""
        return f"redis://{_HOST}:{self.port}/0"

    def refuse(self) -> None:
        """Cut all connections and accept no new ones."""
        _call("POST", f"{self.api}/{self.name}", {"enabled": False})

    def accept(self) -> None:
        """Accept connections again."""
        _call("POST", f"{self.api}/{self.name}", {"enabled": True})

    def cut(self) -> None:
        """Cut all connections; new ones are welcome."""
        self.refuse()
        self.accept()

    @contextmanager
    def toxic(self, kind: str, *, upstream: bool = False, **attributes: int) -> Iterator[None]:
        """Have a toxic of Toxiproxy in the connections, present and future, while the body runs."""
        stream = "upstream" if upstream else "downstream"
        name = f"{kind}-{stream}"
        toxic = {"name": name, "type": kind, "stream": stream, "attributes": attributes}
        _call("POST", f"{self.api}/{self.name}/toxics", toxic)
        try:
            yield
        finally:
            _call("DELETE", f"{self.api}/{self.name}/toxics/{name}")


@dataclass(slots=True)
class Toxiproxy:
    """The server; a proxy lives as long as it does."""

    part: Part
    api: str
    _numbers: Iterator[int] = field(default_factory=count)

    def to(self, port: int) -> Proxy:
        """A new proxy that leads to a port of this machine."""
        name = f"proxy-{next(self._numbers)}"
        made = _call("POST", self.api, {"name": name, "listen": f"{_HOST}:0", "upstream": f"{_HOST}:{port}"})
        return Proxy(self.api, name, int(made["listen"].rpartition(":")[2]))


def start_toxiproxy(folder: Path) -> Toxiproxy:
    """Start the server and wait until it answers. Its log is in `folder`."""
    port = free_port()
    argv = [str(toxiproxy.server()), "-host", _HOST, "-port", str(port)]
    part = spawn("toxiproxy", argv, log=folder / "toxiproxy.log", env={"LOG_LEVEL": "error"})
    api = f"http://{_HOST}:{port}/proxies"
    eventually(lambda: _call("GET", api) == {}, _READY_S, what=f"toxiproxy answers; {part.tail()}")
    return Toxiproxy(part, api)


def _call(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_READY_S) as response:
            return json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"toxiproxy refused {method} {url}: {error.read().decode()}") from error
