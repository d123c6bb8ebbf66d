# SPDX-License-Identifier: Apache-2.0
"""One HTTP/1.1 request, sent exactly as written: no path is normalised, no header added but Host and the body's length.

For tests and for questions to admin endpoints. `lab.traffic` is for load.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status, header lines in order with lower-case names, body."""

    status: int
    header_lines: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The values of a header joined with `, `; None when it is absent."""
        values = [value for line, value in self.header_lines if line == name]
        return ", ".join(values) if values else None

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Client:
    """A keep-alive connection to one address; `source` is the local address that the server will see."""

    def __init__(self, url: str, *, source: str | None = None) -> None:
        target = urlsplit(url)
        bound = (source, 0) if source else None
        self._connection = http.client.HTTPConnection(
            target.hostname or "", target.port, timeout=_TIMEOUT_S, source_address=bound
        )

    def send(
        self,
        method: str = "GET",
        path: str = "/",
        *,
        host: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request and read the answer. Raises OSError or http.client.HTTPException when there is none."""
        connection = self._connection
        connection.putrequest(method, path, skip_host=host is not None, skip_accept_encoding=True)
        if host is not None:
            connection.putheader("host", host)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        with connection.getresponse() as response:
            lines = tuple((name.lower(), value) for name, value in response.getheaders())
            return Answer(response.status, lines, response.read())

    @property
    def connected(self) -> bool:
        """Whether the connection is still open after the last answer."""
        return self._connection.sock is not None

    def close(self) -> None:
        """Close the connection; the next `send` opens a new one."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fetch(url: str) -> Answer:
    """GET one URL on a connection of its own."""
    target = urlsplit(url)
    with Client(url) as client:
        return client.send("GET", f"{target.path or '/'}{'?' + target.query if target.query else ''}")


def sample(exposition: str, name: str, **labels: str) -> float:
    """The value of a metric in a page of metrics; 0 for a series that does not exist (yet)."""
    wanted = {f'{label}="{value}"' for label, value in labels.items()}
    for line in exposition.splitlines():
        series, _, value = line.rpartition(" ")
        found, _, rest = series.partition("{")
        if found == name and wanted <= set(rest.rstrip("}").split(",")) | {""}:
            return float(value)
    return 0.0
