# SPDX-License-Identifier: Apache-2.0
"""Requests to the API server: one at a time in, JSON out.

Owns the connection, its credentials and timeouts; uses the client's transport (TLS, credentials) and none of its model
classes, because objects travel as JSON through the whole operator. Must not decide anything and must not retry, except
once after the server no longer accepts the credentials, with fresh ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration

from weir_operator.kube.credentials import NoCredentials
from weir_operator.kube.errors import Attempt, error_of_answer, error_of_connection
from weir_operator.reconcile.ports import Object, Waiting

USER_AGENT = "weir-operator"
TIMEOUT = aiohttp.ClientTimeout(total=15, sock_connect=5)  # the server itself gives up on a write after 34 s
JSON = "application/json"

Query = Sequence[tuple[str, str]]


class Transport:
    """The way to one API server. Close it with `close()`."""

    def __init__(
        self,
        load_configuration: Callable[[], Awaitable[Configuration]],
        on_answer: Callable[[str, int], None],
        user_agent: str = USER_AGENT,
    ) -> None:
        """Take how to find credentials, and whom to tell of every answer: (verb, HTTP status; 0 = no answer)."""
        self._user_agent = user_agent
        self._load_configuration = load_configuration
        self._on_answer = on_answer
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()

    async def request(
        self,
        attempt: Attempt,
        method: str,
        query: Query = (),
        *,
        body: Object | bytes | None = None,
        content_type: str = "",
        within: aiohttp.ClientTimeout = TIMEOUT,
    ) -> dict[str, Any]:
        """Ask, and return the answer's object. Raises Waiting, Stalled or Missing."""
        request = _Request(method, query, body, content_type, within)
        connection = await self._connected(attempt)
        status, headers, data = await self._send(connection, attempt, request)
        if status == HTTPStatus.UNAUTHORIZED:
            connection = await self._connected(attempt, refused=connection)
            status, headers, data = await self._send(connection, attempt, request)
        if status >= HTTPStatus.BAD_REQUEST:
            raise error_of_answer(attempt, status, data, headers.get("Retry-After"))
        document = json.loads(data)
        if not isinstance(document, dict):
            raise Waiting(f"cannot {attempt}: the answer is not an object", 1.0)
        return document

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _connected(self, attempt: Attempt, *, refused: _Connection | None = None) -> _Connection:
        """Return the connection; another one, with fresh credentials, if it is the one that was refused.

        Many requests are refused at once when a token is rotated: the first of them replaces the connection.
        """
        async with self._connecting:
            if self._connection is None or self._connection is refused:
                try:
                    self._connection = _Connection(await self._load_configuration(), self._user_agent)
                except (OSError, NoCredentials) as error:
                    raise error_of_connection(attempt, error) from error
                if refused is not None:
                    await refused.retire()
            return self._connection

    async def _send(
        self, connection: _Connection, attempt: Attempt, request: _Request
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            async with connection.in_use() as client:
                serialized = await client.param_serialize(
                    request.method,
                    _path(attempt),
                    query_params=list(request.query),
                    header_params=request.headers,
                    body=request.body,
                    auth_settings=["BearerToken"],
                )
                response = await client.call_api(*serialized, _request_timeout=request.within)
                data: bytes = await response.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._on_answer(attempt.verb, 0)
            raise error_of_connection(attempt, error) from error
        self._on_answer(attempt.verb, response.status)
        return response.status, response.headers, data


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    query: Query
    body: Object | bytes | None
    content_type: str
    within: aiohttp.ClientTimeout

    @property
    def headers(self) -> dict[str, str]:
        return {"Accept": JSON} | ({"Content-Type": self.content_type} if self.content_type else {})


class _Connection:
    """A client with one set of credentials, which outlives its replacement until its last request is answered."""

    def __init__(self, configuration: Configuration, user_agent: str) -> None:
        self._client = ApiClient(configuration)
        self._client.user_agent = user_agent
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
