# SPDX-License-Identifier: Apache-2.0
"""The API server behind `reconcile.ports.Cluster`: list, server-side apply, status, delete.

Owns requests and their timeouts; uses the client's transport (TLS, credentials) and none of its model classes, because
objects travel as JSON through the whole operator. Must not decide anything and must not retry, except once after the
server no longer accepts the credentials, with fresh ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration

from weir_operator.kube.errors import Attempt, error_of_answer, error_of_connection
from weir_operator.reconcile.ports import (
    CONFIG_MAPS,
    OVERRIDES,
    POLICIES,
    Listing,
    Missing,
    Object,
    Ref,
    Resource,
    Waiting,
)

FIELD_MANAGER = "weir-operator"
TIMEOUT = aiohttp.ClientTimeout(total=15, sock_connect=5)  # the server itself gives up on a write after 34 s
PAGE_SIZE = 500
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
FORCED = [("fieldManager", FIELD_MANAGER), ("force", "true")]
KINDS = {resource.kind: resource for resource in (POLICIES, OVERRIDES, CONFIG_MAPS)}

Query = Sequence[tuple[str, str]]


class ApiCluster:
    """One API server. Close it with `close()`."""

    def __init__(
        self,
        load_configuration: Callable[[], Awaitable[Configuration]],
        on_answer: Callable[[str, int], None],
    ) -> None:
        """Take how to find credentials, and whom to tell of every answer: (verb, HTTP status; 0 = no answer)."""
        self._load_configuration = load_configuration
        self._on_answer = on_answer
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()

    async def list(self, resource: Resource, *, namespace: str | None = None, label_selector: str = "") -> Listing:
        """Return all objects of a resource, page by page at one resource version."""
        attempt = Attempt("list", resource, namespace=namespace)
        objects: list[Object] = []
        query = [("limit", str(PAGE_SIZE))] + ([("labelSelector", label_selector)] if label_selector else [])
        following: Query = ()
        while True:
            page = await self._request(attempt, "GET", [*query, *following])
            # Items of a list carry neither kind nor version.
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            objects.extend(head | item for item in page["items"])
            token = page["metadata"].get("continue")
            if not token:
                return Listing(tuple(objects), int(page["metadata"]["resourceVersion"]))
            following = [("continue", token)]

    async def apply(self, manifest: Object) -> Object:
        """Server-side apply with force: what the manifest names is ours."""
        ref = _ref(manifest)
        attempt = Attempt("patch", ref.resource, namespace=ref.namespace, name=ref.name)
        return await self._request(attempt, "PATCH", FORCED, body=manifest, content_type=APPLY)

    async def drop_data(self, ref: Ref, keys: Mapping[str, Sequence[str]]) -> None:
        """Remove entries that other hands put there: an apply only removes what it once set itself."""
        attempt = Attempt("patch", ref.resource, namespace=ref.namespace, name=ref.name)
        body = {member: dict.fromkeys(names) for member, names in keys.items()}
        await self._request(attempt, "PATCH", FORCED[:1], body=body, content_type=MERGE)

    async def delete(self, ref: Ref) -> None:
        """Delete an object; one that is gone is fine."""
        attempt = Attempt("delete", ref.resource, namespace=ref.namespace, name=ref.name)
        try:
            await self._request(attempt, "DELETE", ())
        except Missing:
            return

    async def apply_status(self, target: Object, status: Object) -> Object:
        """Server-side apply of the status subresource alone; the uid keeps it off a namesake."""
        ref = _ref(target)
        attempt = Attempt("patch", ref.resource, subresource="status", namespace=ref.namespace, name=ref.name)
        body = {
            "apiVersion": ref.resource.api_version,
            "kind": ref.resource.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": target["metadata"]["uid"]},
            "status": status,
        }
        return await self._request(attempt, "PATCH", FORCED, body=body, content_type=APPLY)

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _request(
        self,
        attempt: Attempt,
        method: str,
        query: Query,
        body: Object | None = None,
        content_type: str = "",
    ) -> dict[str, Any]:
        connection = await self._connected(attempt)
        status, headers, data = await self._send(connection, attempt, method, query, body, content_type)
        if status == HTTPStatus.UNAUTHORIZED:
            connection = await self._connected(attempt, refused=connection)
            status, headers, data = await self._send(connection, attempt, method, query, body, content_type)
        if status >= HTTPStatus.BAD_REQUEST:
            raise error_of_answer(attempt, status, data, headers.get("Retry-After"))
        document = json.loads(data)
        if not isinstance(document, dict):
            raise Waiting(f"cannot {attempt}: the answer is not an object", 1.0)
        return document

    async def _connected(self, attempt: Attempt, *, refused: _Connection | None = None) -> _Connection:
        """Return the connection; another one, with fresh credentials, if it is the one that was refused.

        Many requests are refused at once when a token is rotated: the first of them replaces the connection.
        """
        async with self._connecting:
            if self._connection is None or self._connection is refused:
                try:
                    self._connection = _Connection(await self._load_configuration())
                except OSError as error:
                    raise error_of_connection(attempt, error) from error
                if refused is not None:
                    await refused.retire()
            return self._connection

    async def _send(
        self,
        connection: _Connection,
        attempt: Attempt,
        method: str,
        query: Query,
        body: Object | None,
        content_type: str,
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if content_type else {})
        try:
            async with connection.in_use() as client:
                request = await client.param_serialize(
                    method,
                    _path(attempt),
                    query_params=list(query),
                    header_params=headers,
                    body=body,
                    auth_settings=["BearerToken"],
                )
                response = await client.call_api(*request, _request_timeout=TIMEOUT)
                data: bytes = await response.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._on_answer(attempt.verb, 0)
            raise error_of_connection(attempt, error) from error
        self._on_answer(attempt.verb, response.status)
        return response.status, response.headers, data


class _Connection:
    """A client with one set of credentials, which outlives its replacement until its last request is answered."""

    def __init__(self, configuration: Configuration) -> None:
        self._client = ApiClient(configuration)
        self._client.user_agent = FIELD_MANAGER
        self._requests = 0
        self._retired = False

    @contextlib.asynccontextmanager
    async def in_use(self) -> AsyncIterator[ApiClient]:
        """Lend the client for one request."""
        self._requests += 1
        try:
            yield self._client
        finally:
            self._requests -= 1
            if self._retired:
                await self.retire()

    async def retire(self) -> None:
        """Close after the last request."""
        self._retired = True
        if not self._requests:
            await self.close()

    async def close(self) -> None:
        """Close now."""
        await self._client.close()  # type: ignore[no-untyped-call]


def _ref(manifest: Object) -> Ref:
    metadata = manifest["metadata"]
    return Ref(KINDS[manifest["kind"]], metadata["namespace"], metadata["name"])


def _path(attempt: Attempt) -> str:
    resource = attempt.resource
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    parts = [
        root,
        *(("namespaces", attempt.namespace) if attempt.namespace else ()),
        resource.plural,
        *((attempt.name,) if attempt.name else ()),
        *((attempt.subresource,) if attempt.subresource else ()),
    ]
    return "/".join(parts)
