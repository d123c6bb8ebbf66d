# SPDX-License-Identifier: Apache-2.0
"""Envoy as a process, with the bootstrap that the operator rendered.

In a cluster each Envoy has its own network namespace and its own mounted files, so all share one bootstrap. Here they
share a host: exactly four values are moved per instance (listener port, admin port, the limiter's socket, the folder
of the mounted Closed rules), and everything else runs as rendered.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab import programs, toolbox
from lab.processes import free_port
from lab.programs import Program

_HOST = "127.0.0.1"


class BootstrapError(RuntimeError):
    """Envoy refused a bootstrap, or it lacks what every instance needs; the message is Envoy's or names the part."""


@dataclass(slots=True)
class Envoy:
    """One Envoy: its process (whose URL is the admin endpoint) and the URL that clients use."""

    program: Program
    url: str

    @property
    def admin_url(self) -> str:
        """The admin endpoint."""
        return self.program.url


def start(name: str, bootstrap: str, *, socket: Path, closed: Path, folder: Path, log: Path) -> Envoy:
    """Start an Envoy whose limiter listens on `socket`, with its Closed rules mounted at `closed`."""
    port, admin_port = free_port(), free_port()
    moved = move(yaml.safe_load(bootstrap), port=port, admin_port=admin_port, socket=socket, closed=closed)
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(moved, sort_keys=False))
    argv = (
        str(toolbox.envoy()), "-c", str(config), "--disable-hot-restart", "--concurrency", "1",
        "--log-level", "info", "--log-format", "%Y-%m-%dT%T.%e %l %n %v", "--reject-unknown-dynamic-fields",
    )  # fmt: skip
    admin = f"http://{_HOST}:{admin_port}"
    program = programs.start(name, argv, log=log, url=admin, ready="/ready", env={})
    return Envoy(program, f"http://{_HOST}:{port}")


def move(bootstrap: dict[str, Any], *, port: int, admin_port: int, socket: Path, closed: Path) -> dict[str, Any]:
    """The same bootstrap on loopback with other ports, limiter socket and Closed rules. Raises BootstrapError."""
    bootstrap["admin"]["address"]["socket_address"] = {"address": _HOST, "port_value": admin_port}
    listeners = bootstrap["static_resources"]["listeners"]
    if len(listeners) != 1:
        raise BootstrapError(f"expected one listener in the rendered bootstrap, found {len(listeners)}")
    listeners[0]["address"]["socket_address"] = {"address": _HOST, "port_value": port}
    pipes = [endpoint["pipe"] for endpoint in _endpoint_addresses(bootstrap) if "pipe" in endpoint]
    if not pipes:
        raise BootstrapError("no cluster of the rendered bootstrap leads to a Unix socket")
    for pipe in pipes:
        pipe["path"] = str(socket)
    sources = list(_mounted_files(bootstrap))
    if not sources:
        raise BootstrapError("nothing in the rendered bootstrap reads the Closed rules")
    for source in sources:
        source["path"] = str(closed / Path(source["path"]).name)
        source["watched_directory"]["path"] = str(closed)
    return bootstrap


def validate(bootstrap: str, folder: Path) -> None:
    """Have Envoy itself judge a bootstrap as it stands. Raises BootstrapError with Envoy's words."""
    config = folder / "validate.yaml"
    config.write_text(bootstrap)
    argv = [str(toolbox.envoy()), "--mode", "validate", "--log-level", "error", "-c", str(config)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise BootstrapError(done.stderr.strip() or done.stdout.strip())


def _mounted_files(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict) and "path_config_source" in node:
        yield node["path_config_source"]
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _mounted_files(child)


def _endpoint_addresses(bootstrap: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        endpoint["endpoint"]["address"]
        for cluster in bootstrap["static_resources"]["clusters"]
        for locality in cluster.get("load_assignment", {}).get("endpoints", [])
        for endpoint in locality.get("lb_endpoints", [])
    ]
