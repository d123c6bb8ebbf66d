# SPDX-License-Identifier: Apache-2.0
"""Limiters that only answer `/status`: each says what a real one says, under a name of its own.

Run as a process of its own: `mirrors.py --of URL --ports 4001 4002 …`. What a hundred limiters cost the operator can so
be measured on a machine that has no room for a hundred. The document is the real one's, whole, with its rules and their
counts, at most a quarter of a second old.
"""

from __future__ import annotations

import argparse
import asyncio
import json

import aiohttp
from aiohttp import web

_HOST = "127.0.0.1"
_FRESH_S = 0.25  # as late as a limiter on another node may be


class Mirror:
    """What the real limiter said last."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._before, self._after = b"", b""

    async def follow(self) -> None:
        """Ask the real one again and again."""
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{self._url}/status") as answer:
                        self._take(await answer.read())
                except aiohttp.ClientError:
                    self._before = self._after = b""
                await asyncio.sleep(_FRESH_S)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer as the limiter of the port that was asked."""
        if not self._after:
            return web.Response(status=503)
        name = f"mirror-{request.url.port}".encode()
        return web.Response(body=self._before + name + self._after, content_type="application/json")

    def _take(self, body: bytes) -> None:
        instance = json.dumps(json.loads(body)["instance"]).encode()
        before, self._after = body.split(b'"instance":' + instance, 1)
        self._before, self._after = before + b'"instance":"', b'"' + self._after


async def _serve(url: str, ports: list[int]) -> None:
    mirror = Mirror(url)
    application = web.Application()
    application.router.add_get("/status", mirror.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    for port in ports:
        await web.TCPSite(runner, _HOST, port).start()
    await mirror.follow()


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", required=True, metavar="URL", help="admin endpoint of the real limiter")
    parser.add_argument("--ports", required=True, nargs="+", type=int, help="where to answer")
    options = parser.parse_args()
    asyncio.run(_serve(options.of, options.ports))


if __name__ == "__main__":
    main()
