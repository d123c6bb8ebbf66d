# SPDX-License-Identifier: Apache-2.0
"""One real Envoy between a client and an echo, with a recorder in the limiter's place.

The recorder speaks Envoy's own protobuf messages, so that a test sees exactly what a limiter is told. Limits are not
its business: the real limiter is a part of its own.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import yaml
from envoy.service.auth.v3 import external_auth_pb2, external_auth_pb2_grpc
from google.rpc import status_pb2

from lab import processes, toolbox
from lab.kubelet import swap
from lab.waiting import eventually
from weir_operator.domain.gateways import Address, Envoy, Gateway, TrustedProxies, Upstream
from weir_operator.domain.ruleset import Ruleset
from weir_operator.render.envoy import render_envoy
from weir_operator.render.envoy_closed import CLOSED_KEY, render_closed
from weir_operator.render.ruleset_config import RulesetTooLarge

METADATA = {"policy": "team/orders", "rule": "burst", "decision": "seen", "mode": "Enforce"}
OVERWRITE = 2  # HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD


class Recorder(external_auth_pb2_grpc.AuthorizationServicer):  # type: ignore[misc]  # xds-protos has no types
    """Allows every request but /denied, and remembers the headers that Envoy showed it."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []
        self.fault: Callable[[Any], None] | None = None

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802  the name is gRPC's
        """Answer as a limiter would: 429 below /denied, else allowed with a header for the client. `fault` first."""
        headers = dict(request.attributes.request.http.headers)
        self.seen.append(headers)
        if self.fault is not None:
            self.fault(context)
        if headers[":path"].startswith("/denied"):
            answer = external_auth_pb2.CheckResponse(status=status_pb2.Status(code=8))
            answer.denied_response.status.code = 429
            answer.denied_response.body = '{"status":429}'
            added = answer.denied_response.headers.add()
            added.header.key, added.header.value, added.append_action = "retry-after", "1", OVERWRITE
        else:
            answer = external_auth_pb2.CheckResponse(status=status_pb2.Status(code=0))
            added = answer.ok_response.response_headers_to_add.add()
            added.header.key, added.header.value, added.append_action = "ratelimit", '"burst";r=7', OVERWRITE
        answer.dynamic_metadata.update(METADATA)
        return answer


class Echo(BaseHTTPRequestHandler):
    """Answers with the path and the headers it received."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        pairs = {name.lower(): value for name, value in self.headers.items()}
        body = json.dumps({"path": self.path, "headers": pairs}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815  the name is http.server's

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; of repeated header lines the last."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def upstream_saw(self) -> dict[str, Any]:
        """What the echo says it received."""
        seen: dict[str, Any] = json.loads(self.body)
        return seen


@dataclass(frozen=True, slots=True)
class Bench:
    """One Envoy between a client and an echo, with a recorder where the limiter would be."""

    port: int
    admin_port: int
    closed: Path
    log: Path
    recorder: Recorder
    limiter: grpc.Server

    def get(self, path: str, headers: dict[str, str] | None = None, *, method: str = "GET") -> Answer:
        """One request on a connection of its own, its path sent as it is written."""
        return self._ask(self.port, method, path, headers or {})

    def admin(self, method: str, path: str) -> Answer:
        """One request to Envoy's admin endpoint."""
        return self._ask(self.admin_port, method, path, {})

    def mount(self, ruleset: Ruleset) -> None:
        """Mount what Envoy refuses for this ruleset while the limiter gives no answer."""
        mount_closed(self.closed, ruleset)

    def mount_bytes(self, content: bytes) -> None:
        """Mount anything in its place."""
        swap(self.closed, {CLOSED_KEY: content})

    def is_ready(self) -> bool:
        """Whether Envoy serves."""
        with suppress(OSError):
            return self.admin("GET", "/ready").status == 200
        return False

    def stat(self, name: str) -> int:
        """A counter or gauge of Envoy's; 0 for one that does not exist (yet)."""
        text = self.admin("GET", f"/stats?filter=^{name}$").body.decode().strip()
        return int(text.rpartition(": ")[2] or 0)

    def access_log(self) -> list[dict[str, Any]]:
        """The lines that Envoy has written so far; it writes them up to ten seconds after the request."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    @staticmethod
    def _ask(port: int, method: str, path: str, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()


def mount_closed(folder: Path, ruleset: Ruleset) -> None:
    """Put into `folder` what the ConfigMap of Closed rules holds for a ruleset; Envoy does not start without it."""
    rendered = render_closed(ruleset, Gateway(ruleset.gateway, "weir-system"))
    if isinstance(rendered, RulesetTooLarge):
        raise TypeError(rendered)
    swap(folder, {name: text.encode() for name, text in rendered["data"].items()})


@contextmanager
def running(
    folder: Path,
    trusted: TrustedProxies,
    *,
    upstream_port: int | None = None,
    change: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Iterator[Bench]:
    """Start everything in `folder`, with the configuration that the operator renders for these trusted proxies.

    The upstream is the echo, or whatever listens on `upstream_port`. `change` may change the bootstrap.
    """
    echo = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=echo.serve_forever, daemon=True).start()
    socket = folder / "limiter.sock"
    recorder = Recorder()
    limiter = grpc.server(futures.ThreadPoolExecutor(4))
    external_auth_pb2_grpc.add_AuthorizationServicer_to_server(recorder, limiter)
    limiter.add_insecure_port(f"unix:{socket}")
    limiter.start()
    port, admin_port = processes.free_port(), processes.free_port()
    settings = Envoy(
        listen=Address("127.0.0.1", port),
        admin=Address("127.0.0.1", admin_port),
        limiter_socket=str(socket),
        closed_directory=str(folder / "closed"),
        timeout_ms=1000,  # the recorder is Python on a busy machine; what the timeout does is not tested here
        trusted_proxies=trusted,
        upstreams=(Upstream("echo", ("*",), "127.0.0.1", upstream_port or echo.server_port),),
    )
    config = folder / "bootstrap.yaml"
    bootstrap = yaml.safe_load(render_envoy(Gateway("edge", "weir-system", envoy=settings))["bootstrap.yaml"])
    change(bootstrap)
    config.write_text(yaml.safe_dump(bootstrap))
    bench = Bench(port, admin_port, folder / "closed", folder / "envoy.log", recorder, limiter)
    bench.mount(Ruleset("edge"))
    argv = [str(toolbox.envoy()), "-c", str(config), "--concurrency", "1", "--disable-hot-restart"]
    envoy = processes.spawn("envoy", [*argv, "--reject-unknown-dynamic-fields"], log=folder / "envoy.log")
    try:
        eventually(bench.is_ready, within_s=20, what=f"Envoy is ready ({bench.log})")
        yield bench
    finally:
        envoy.stop()
        limiter.stop(None).wait()
        echo.shutdown()
        echo.server_close()
