# SPDX-License-Identifier: Apache-2.0
"""An API server that knows a few ConfigMaps: lists and watches each over plain HTTP, and can go away.

It stands in for a real one (which the e2e ring has) where a test must hold the server's own behaviour in its hands:
errors, silence, an interrupted watch. It serves only what a limiter's service account may ask: these names, one by one.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from lab.processes import free_port

NAMESPACE = "weir-system"


class ApiServer:
    """ConfigMaps by name, of which the first is meant where none is named. An async context manager; `stop` and `start`
    are outages."""

    def __init__(self, name: str, *others: str) -> None:
        self.name = name
        self.port = free_port()
        self.forbidden: list[str] = []  # questions that the service account's role would not allow
        self._version = 100
        self._objects: dict[str, dict[str, Any] | None] = dict.fromkeys((name, *others))
        self._history: list[tuple[int, str, dict[str, Any]]] = []  # version, name, event
        self._watches: dict[asyncio.Queue[dict[str, Any]], str] = {}
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Begin to answer."""
        application = web.Application()
        application.router.add_get(f"/api/v1/namespaces/{NAMESPACE}/configmaps", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        """End all connections and answer nobody."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def write(self, data: dict[str, str], name: str = "") -> None:
        """Create or change the ConfigMap."""
        kind = "ADDED" if self._objects[name or self.name] is None else "MODIFIED"
        self._objects[name or self.name] = {"data": data}
        self._publish(kind, name or self.name)

    def delete(self, name: str = "") -> None:
        """Delete the ConfigMap."""
        self._publish("DELETED", name or self.name)
        self._objects[name or self.name] = None

    def kubeconfig(self, folder: Path) -> Path:
        """A kubeconfig that leads here."""
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        user = {"name": "u", "user": {"token": "a-token"}}
        file = folder / "kubeconfig"
        content = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"}
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **content}))
        return file

    def _publish(self, kind: str, name: str) -> None:
        self._version += 1
        event = {"type": kind, "object": self._rendered(name)}
        self._history.append((self._version, name, event))
        for queue, watched in self._watches.items():
            if watched == name:
                queue.put_nowait(event)

    def _rendered(self, name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": NAMESPACE, "resourceVersion": str(self._version)}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **(self._objects[name] or {})}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        if name not in self._objects:
            self.forbidden.append(str(request.rel_url))
            return web.json_response({"kind": "Status", "code": 403, "reason": "Forbidden"}, status=403)
        if "watch" in request.query:
            return await self._watch(request, name)
        items = [] if self._objects[name] is None else [self._rendered(name)]
        metadata = {"resourceVersion": str(self._version)}
        return web.json_response({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request, name: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        since = int(request.query.get("resourceVersion", "0"))
        for version, changed, event in self._history:
            if version > since and changed == name:
                queue.put_nowait(event)
        self._watches[queue] = name
        try:
            while True:
                await response.write(json.dumps(await queue.get()).encode() + b"\n")
        finally:
            del self._watches[queue]
