# SPDX-License-Identifier: Apache-2.0
"""The API behind the gateways: answers every request with what it received, as JSON, so that a test can see it.

A process of its own (`python -m lab.upstream --port N`). Keeps connections alive, answers HEAD without a body, reads
bodies to their end and says how long they were.
"""

from __future__ import annotations

import argparse
import logging

from aiohttp import web

_LARGEST_BODY = 64 * 1024 * 1024


async def _echo(request: web.Request) -> web.Response:
    body = await request.read()
    received = {
        "method": request.method,
        "path": request.raw_path,
        "host": request.host,
        "headers": [[name, value] for name, value in request.headers.items()],
        "bodyBytes": len(body),
    }
    return web.json_response(received, headers={"x-upstream": "echo"})


def application() -> web.Application:
    """The whole upstream: one handler for every method and path."""
    app = web.Application(client_max_size=_LARGEST_BODY)
    app.router.add_route("*", "/{anything:.*}", _echo)
    return app


def main() -> None:
    """Serve on loopback until SIGTERM."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--port", type=int, required=True)
    logging.basicConfig(level=logging.WARNING)
    web.run_app(application(), host="127.0.0.1", port=arguments.parse_args().port, print=None, access_log=None)


if __name__ == "__main__":
    main()
