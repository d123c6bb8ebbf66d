# SPDX-License-Identifier: Apache-2.0
"""Weir's own programs as processes, each with the command line and identity it would have in a pod."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.client import fetch, sample
from lab.processes import Part, PartFailedError, free_port, spawn
from lab.waiting import eventually
from lab.workspace import VENV

_HOST = "127.0.0.1"
_READY_S = 30.0  # all of them are ready within 3 s on an idle machine


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and what it adds to the environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Program:
    """A part that can be started again exactly as before. `url` is its own HTTP endpoint, `ready` the path to ask."""

    part: Part
    argv: tuple[str, ...]
    env: Mapping[str, str]
    url: str
    ready: str
    metrics_url: str = ""

    @property
    def command(self) -> Command:
        """How to start it again from another process."""
        return Command(self.argv, self.env)

    def restart(self) -> None:
        """Start it again with the same command line, after ending it if it still runs. Does not wait."""
        self.part.stop()
        self.part = spawn(self.part.name, self.argv, log=self.part.log, env=self.env)

    def wait_ready(self) -> None:
        """Return once its readiness endpoint says 200. Raises PartFailedError with the log's end."""

        def answers() -> bool:
            if not self.part.alive:
                raise PartFailedError(f"{self.part.name} ended; the end of {self.part.log}:\n{self.part.tail()}")
            return fetch(self.url + self.ready).status == 200

        try:
            eventually(answers, _READY_S, what=f"{self.part.name} is ready")
        except AssertionError as never:
            raise PartFailedError(f"{never}; the end of {self.part.log}:\n{self.part.tail()}") from never


def start(name: str, argv: tuple[str, ...], *, log: Path, url: str, ready: str, env: Mapping[str, str]) -> Program:
    """Start any program. Raises FileNotFoundError when it does not exist."""
    return Program(spawn(name, argv, log=log, env=env), argv, dict(env), url, ready)


@dataclass(slots=True)
class Limiter:
    """A sidecar: its process, its socket for Envoy, its admin endpoint."""

    program: Program
    socket: Path
    instance: str

    @property
    def url(self) -> str:
        """The admin endpoint."""
        return self.program.url

    def status(self) -> Any:
        """Its status document. Raises OSError while it is away."""
        return fetch(f"{self.url}/status").json()

    def metric(self, name: str, **labels: str) -> float:
        """A metric's value; 0 for a series that does not exist (yet)."""
        return sample(fetch(f"{self.url}/metrics").body.decode(), name, **labels)


@dataclass(frozen=True, slots=True)
class LimiterOptions:
    """What the limiters of one gateway share; `extra` are further flags of `weir-limiter serve`."""

    gateway: str
    rules_configmap: str
    store_url: str
    kubeconfig: Path
    hash_key_file: Path
    extra: tuple[str, ...] = field(default=())


def start_limiter(
    number: int, options: LimiterOptions, *, admin_port: int, sockets: Path, run: Path, log: Path
) -> Limiter:
    """Start sidecar `number` of a gateway. It is ready once it has rules, so after the operator has rendered some."""
    instance, socket = f"{options.gateway}-{number}", sockets / f"{number}.sock"
    argv = (
        str(VENV / "bin" / "weir-limiter"), "serve", "--gateway", options.gateway, "--instance", instance,
        "--listen", f"unix:{socket}", "--admin", f"{_HOST}:{admin_port}",
        "--rules-configmap", options.rules_configmap, "--state-dir", str(run / f"limiter-{number}"),
        "--hash-key-file", str(options.hash_key_file), "--log-format", "json", *options.extra,
    )  # fmt: skip
    env = {"KUBECONFIG": str(options.kubeconfig), "WEIR_LIMITER_STORE": options.store_url}
    url = f"http://{_HOST}:{admin_port}"
    program = start(f"limiter-{number}", argv, log=log, url=url, ready="/readyz", env=env)
    return Limiter(program, socket, instance)


def start_operator(settings: Path, kubeconfig: Path, *, log: Path, name: str = "operator", webhook: int = 0) -> Program:
    """Start the operator with a settings file, as the mounted ConfigMap would give it.

    `name` is its pod's, `webhook` the port on which it reviews objects, if it shall.
    """
    health, metrics = free_port(), free_port()
    argv = (
        str(VENV / "bin" / "weir-operator"), "run", "--settings", str(settings), "--health", f"{_HOST}:{health}",
        "--metrics", f"{_HOST}:{metrics}", "--log-format", "json",
        *(("--webhook", f"{_HOST}:{webhook}", "--webhook-names", _HOST) if webhook else ()),
    )  # fmt: skip
    env = {"KUBECONFIG": str(kubeconfig), "POD_NAME": name}
    program = start(name, argv, log=log, url=f"http://{_HOST}:{health}", ready="/readyz", env=env)
    program.metrics_url = f"http://{_HOST}:{metrics}/metrics"
    return program


def start_kubelet(kubectl: Path, kubeconfig: Path, *, configmap: str, folder: Path, log: Path) -> Program:
    """Start what keeps `folder` as a kubelet would keep the mounted ConfigMap (`namespace/name`)."""
    port, (namespace, name) = free_port(), configmap.split("/")
    argv = (
        sys.executable, "-m", "lab.kubelet", "--kubectl", str(kubectl), "--namespace", namespace, "--configmap", name,
        "--folder", str(folder), "--port", str(port),
    )  # fmt: skip
    env = {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "KUBECONFIG": str(kubeconfig)}
    return start("kubelet", argv, log=log, url=f"http://{_HOST}:{port}", ready="/", env=env)


def start_upstream(port: int, *, log: Path) -> Program:
    """Start the echo upstream."""
    argv = (sys.executable, "-m", "lab.upstream", "--port", str(port))
    env = {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    return start("upstream", argv, log=log, url=f"http://{_HOST}:{port}", ready="/", env=env)
