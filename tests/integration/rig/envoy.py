# SPDX-License-Identifier: Apache-2.0
"""Asks a sidecar as Envoy does, with Envoy's own published messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import grpc.aio
from envoy.config.core.v3 import base_pb2
from envoy.service.auth.v3 import attribute_context_pb2, external_auth_pb2
from google.protobuf import json_format

from rig.documents import HOST

CHECK = "/envoy.service.auth.v3.Authorization/Check"
_OVERWRITE = base_pb2.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
_WITHIN_S = 10.0  # never the measure of a test; only so that a hang ends


@dataclass(frozen=True, slots=True)
class Answer:
    """What Envoy would do: let it pass, or answer `status` with `body`; `headers` are for the client in both cases."""

    allowed: bool
    status: int
    headers: Mapping[str, str]
    body: str
    metadata: Mapping[str, str]

    @property
    def problem(self) -> dict[str, Any]:
        """The body as JSON."""
        return dict(json.loads(self.body))


@dataclass(frozen=True, slots=True)
class Peer:
    """What Envoy has verified of a client: the principal of its certificate, and metadata by namespace."""

    principal: str = ""
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def with_claims(cls, **claims: Any) -> Self:
        """Who has shown a token with this payload to Envoy's JWT filter."""
        return cls(metadata={"envoy.filters.http.jwt_authn": {"jwt_payload": claims}})


NOBODY = Peer()


class Envoy:
    """One connection to a sidecar's socket (`unix:PATH` or `ADDRESS:PORT`); a call gives up after `within_s`."""

    def __init__(self, target: str, *, within_s: float = _WITHIN_S) -> None:
        self._within_s = within_s
        # Envoy sends its cluster's name as the authority; gRPC would send the escaped path, which no server accepts.
        options = [
            ("grpc.default_authority", "limiter"), ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100),
        ]  # fmt: skip
        self.channel = grpc.aio.insecure_channel(target, options=options)
        self._check = self.channel.unary_unary(
            CHECK,
            request_serializer=external_auth_pb2.CheckRequest.SerializeToString,
            response_deserializer=external_auth_pb2.CheckResponse.FromString,
        )

    @classmethod
    def beside(cls, socket: Path, *, within_s: float = _WITHIN_S) -> Self:
        """Ask the sidecar that listens on a Unix socket."""
        return cls(f"unix:{socket}", within_s=within_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()

    async def get(
        self,
        path: str = "/v1/orders",
        headers: Mapping[str, str] | None = None,
        *,
        peer: Peer = NOBODY,
        **members: Any,
    ) -> Answer:
        """Ask about one request; `members` are method, host, and so on. Raises grpc.aio.AioRpcError."""
        http = attribute_context_pb2.AttributeContext.HttpRequest(
            **{"method": "GET", "host": HOST, "path": path, "headers": headers or {}, **members}
        )
        return await self.ask(http, peer)

    async def ask(self, http: attribute_context_pb2.AttributeContext.HttpRequest, peer: Peer = NOBODY) -> Answer:
        """Ask about a request that the caller has put together."""
        request = external_auth_pb2.CheckRequest()
        request.attributes.request.http.CopyFrom(http)
        request.attributes.source.principal = peer.principal
        for namespace, content in peer.metadata.items():
            request.attributes.metadata_context.filter_metadata[namespace].update(content)
        return _answer(await self._check(request, timeout=self._within_s))

    async def key(self, key: str, path: str = "/v1/orders", **headers: str) -> Answer:
        """Ask about a request with this API key."""
        others = {name.replace("_", "-"): text for name, text in headers.items()}
        return await self.get(path, {"x-api-key": key, **others})


def _answer(response: external_auth_pb2.CheckResponse) -> Answer:
    allowed = response.status.code == 0
    assert response.WhichOneof("http_response") == ("ok_response" if allowed else "denied_response")
    if allowed:
        status, body, sent = 200, "", response.ok_response.response_headers_to_add
    else:
        denied = response.denied_response
        status, body, sent = denied.status.code, denied.body, denied.headers
    assert all(option.append_action == _OVERWRITE for option in sent), "a header would be appended to the origin's"
    headers = {option.header.key: option.header.value for option in sent}
    assert len(headers) == len(sent), "a header is sent twice"
    return Answer(allowed, status, headers, body, json_format.MessageToDict(response.dynamic_metadata))
