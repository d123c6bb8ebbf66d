# SPDX-License-Identifier: Apache-2.0
"""The operator's own HTTP endpoints: /healthz, /readyz and /metrics. What they say is decided elsewhere."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

Complaints = Callable[[], list[str]]
"""Says what is wrong; empty = nothing."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Hook:
    """Where to serve the webhook, under which names, and where its certificate is kept."""

    address: Address
    names: tuple[str, ...]
    namespace: str
    secret: str


def parse_address(text: str) -> Address:
    """Parse `host:port`, with an IPv6 host in brackets. Raises ValueError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004  the largest port
        raise ValueError(f"{text!r} is not of the form 127.0.0.1:8080")
    return Address(host.strip("[]"), int(port))


def health_routes(
    health: Complaints, readiness: Complaints, remark: Callable[[], str] = lambda: ""
) -> list[web.RouteDef]:
    """Return /healthz (fails when only a restart can help) and /readyz (fails while there is nothing to trust yet).

    `remark` is what a ready one adds for the person who asks.
    """
    return [web.get("/healthz", _probe(health, lambda: "")), web.get("/readyz", _probe(readiness, remark))]


def metrics_routes(expose: Callable[[], bytes], content_type: str) -> list[web.RouteDef]:
    """Return /metrics."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=expose(), headers={"Content-Type": content_type})

    return [web.get("/metrics", metrics)]


async def serve(address: Address, routes: list[web.RouteDef], tls: ssl.SSLContext | None = None) -> web.AppRunner:
    """Listen, with TLS if its context is given; return what to clean up at the end.

    Raises OSError when the address is taken.
    """
    application = web.Application()
    application.add_routes(routes)
    runner = web.AppRunner(application, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, address.host, address.port, ssl_context=tls).start()
    return runner


def _probe(complaints: Complaints, remark: Callable[[], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def probe(_: web.Request) -> web.Response:
        wrong = complaints()
        said = "\n".join(wrong) if wrong else ": ".join(filter(None, ("ok", remark())))
        return web.Response(status=503 if wrong else 200, text=f"{said}\n")

    return probe
