# SPDX-License-Identifier: Apache-2.0
"""The whole way of a request: a real Envoy with the configuration that the operator renders, an echo behind it.

With and without the filter is one Envoy, switched by the runtime key that operators switch limits off with.
"""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import load
from lab import envoy_bench, toolbox
from lab.processes import Part, free_port, spawn, stop_all
from lab.waiting import eventually
from lab.workspace import LOGS
from weir_operator.domain.gateways import Address, Envoy, Gateway, TrustedProxies, Upstream
from weir_operator.domain.ruleset import Ruleset
from weir_operator.render.envoy import render_envoy
from windows import Subject

_HOST = "127.0.0.1"
_UP_S = 30.0


@dataclass(frozen=True, slots=True)
class Route:
    """A running Envoy and the echo behind it."""

    envoy: Part
    echo: Part
    port: int
    admin: int

    @property
    def parts(self) -> list[Part]:
        """Both processes."""
        return [self.echo, self.envoy]

    def filter(self, percent: int) -> None:
        """Ask the limiter about so many of 100 requests."""
        status = _admin(self.admin, "POST", f"/runtime_modify?weir.enabled_pct={percent}")
        if status != http.client.OK:
            raise RuntimeError(f"Envoy answered {status} to the change of its runtime")


def start(folder: Path, limiter: Path) -> Route:
    """Start both, with the limiter at this socket, and wait until Envoy serves."""
    folder.mkdir(parents=True)
    upstream, port, admin = free_port(), free_port(), free_port()
    echo = spawn("echo", load.echo_command({"tcp": f"{_HOST}:{upstream}"}), log=LOGS / "bench" / "upstream.log")
    settings = Envoy(
        listen=Address(_HOST, port),
        admin=Address(_HOST, admin),
        limiter_socket=str(limiter),
        closed_directory=str(folder / "closed"),
        trusted_proxies=TrustedProxies(),
        upstreams=(Upstream("echo", ("*",), _HOST, upstream),),
    )
    envoy_bench.mount_closed(folder / "closed", Ruleset("edge"))
    config = folder / "bootstrap.yaml"
    config.write_text(render_envoy(Gateway("edge", "weir-system", envoy=settings))["bootstrap.yaml"])
    argv = [str(toolbox.envoy()), "-c", str(config), "--concurrency", "1", "--disable-hot-restart", "-l", "warning"]
    envoy = spawn("envoy", argv, log=LOGS / "bench" / "envoy.log")
    try:
        eventually(lambda: _admin(admin, "GET", "/ready") == http.client.OK, _UP_S, what="Envoy serves")
    except BaseException:
        stop_all([echo, envoy])
        raise
    return Route(envoy, echo, port, admin)


def subjects(path: Route, limiter: Part, requests: Sequence[dict[str, Any]], names: tuple[str, str]) -> list[Subject]:
    """The same Envoy twice: with the filter, and without it."""
    target, address = load.through_envoy(requests), {"tcp": f"{_HOST}:{path.port}"}
    counted = {"server": path.envoy, "limiter": limiter}
    return [
        Subject(name, address, target, 4, counted, before=partial(path.filter, percent))
        for name, percent in zip(names, (100, 0), strict=True)
    ]


def _admin(port: int, method: str, path: str) -> int:
    connection = http.client.HTTPConnection(_HOST, port, timeout=10)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
