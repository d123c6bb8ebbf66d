# SPDX-License-Identifier: Apache-2.0
"""The gRPC side: what Envoy may send, and what it gets for everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc
import grpc.aio
import pytest
from envoy.config.core.v3 import base_pb2
from envoy.service.auth.v3 import attribute_context_pb2, external_auth_pb2

from lab.processes import free_port
from lab.store import Store
from rig.documents import HOST, limit, single
from rig.envoy import CHECK, Envoy
from rig.sidecar import Sidecar

HEALTH = "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


async def raw(envoy: Envoy, method: str, message: bytes, **options: object) -> bytes:
    return bytes(await envoy.channel.unary_unary(method)(message, timeout=10, **options))


async def test_an_unknown_method_is_unimplemented(envoy: Envoy) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await raw(envoy, "/envoy.service.auth.v2.Authorization/Check", b"")
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("message", [b"", b"\xff\xff\xff", b"\x0a\x02\x08\x01"])
async def test_a_message_that_is_no_request_is_an_error_and_no_decision(
    sidecar: Sidecar, envoy: Envoy, message: bytes
) -> None:
    sidecar.publish(single())
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await raw(envoy, CHECK, message)
    assert failed.value.code() is grpc.StatusCode.INTERNAL
    assert (await envoy.key("k")).allowed, "the connection goes on"


async def test_a_compressed_message_is_refused(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(single())
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await raw(envoy, CHECK, b"a" * 4096, compression=grpc.Compression.Gzip)
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_health_service_follows_readiness(sidecar: Sidecar, envoy: Envoy) -> None:
    assert await raw(envoy, HEALTH, b"") == NOT_SERVING
    sidecar.publish(single())
    service = b"envoy.service.auth.v3.Authorization"
    assert await raw(envoy, HEALTH, b"\x0a" + bytes([len(service)]) + service) == SERVING
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await raw(envoy, HEALTH, b"\x0a\x05other")
    assert failed.value.code() is grpc.StatusCode.NOT_FOUND


async def test_headers_that_envoy_kept_apart_are_one_value(sidecar: Sidecar, envoy: Envoy) -> None:
    """D29: `header_map` with repeated and raw values; the same lines are the same key."""
    sidecar.publish(single(limit=limit(1, period_s=3600)))

    async def ask(*values: bytes) -> bool:
        lines = [base_pb2.HeaderValue(key="x-api-key", raw_value=value) for value in values]
        http = attribute_context_pb2.AttributeContext.HttpRequest(
            method="GET", host=HOST, path="/", header_map=base_pb2.HeaderMap(headers=lines)
        )
        return (await envoy.ask(http)).allowed

    assert await ask(b"a", b"b\xff")
    assert not await ask(b"a", b"b\xff")
    assert await ask(b"b\xff", b"a")
    assert await ask(b"a")
    assert not (await envoy.key("a")).allowed, "both forms of headers build the same key"


async def test_tcp_serves_as_a_unix_socket_does(store: Store, start_sidecar: Callable[..., Sidecar]) -> None:
    port = free_port()
    sidecar = start_sidecar(store.url, flags=("--listen", f"tcp:127.0.0.1:{port}"))
    sidecar.wait_store("Up")
    sidecar.publish(single())
    async with Envoy(f"127.0.0.1:{port}") as envoy:
        assert "ratelimit" in (await envoy.key("k")).headers


async def test_calls_that_are_reset_in_bulk_end_nobody_elses_call(sidecar: Sidecar) -> None:
    """Envoy passes on what its clients cancel; a connection ended for that would let all its other calls pass."""
    sidecar.publish(single())
    reader, writer = await asyncio.open_unix_connection(str(sidecar.socket))
    writer.write(PREFACE + frame(SETTINGS))
    for stream in range(1, 2001, 2):
        writer.write(frame(HEADERS, END_HEADERS, stream, CALL_HEADERS) + frame(RST_STREAM, 0, stream, CANCEL))
    request = external_auth_pb2.CheckRequest()
    request.attributes.request.http.host = HOST
    message = request.SerializeToString()
    body = b"\0" + len(message).to_bytes(4) + message
    writer.write(frame(HEADERS, END_HEADERS, 2001, CALL_HEADERS) + frame(DATA, END_STREAM, 2001, body))
    await writer.drain()
    async with asyncio.timeout(10):
        seen = [await read_frame(reader)]
        while seen[-1] not in [(DATA, 2001), (GOAWAY, 0)]:
            seen.append(await read_frame(reader))
    writer.close()
    assert seen[-1] == (DATA, 2001)


# The few parts of RFC 9113 that the test needs: gRPC clients send no resets in bulk.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS = 1, 4
CANCEL = (8).to_bytes(4)


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, int]:
    head = await reader.readexactly(9)
    await reader.readexactly(int.from_bytes(head[:3]))
    return head[3], int.from_bytes(head[5:9])


def literal(name: bytes, value: bytes) -> bytes:
    """A field without Huffman coding and without a place in the table (RFC 7541, 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL_HEADERS = b"".join(
    literal(name, value)
    for name, value in [
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"limiter"), (b":path", CHECK.encode()),
        (b"content-type", b"application/grpc"), (b"te", b"trailers"),
    ]
)  # fmt: skip
