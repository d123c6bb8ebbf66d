# SPDX-License-Identifier: Apache-2.0
"""The operator's own HTTP endpoints."""

import aiohttp
import pytest

from weir_operator.endpoints import Address, health_routes, metrics_routes, parse_address, serve
from weir_operator.metrics import CONTENT_TYPE, Metrics


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:9100", Address("::1", 9100)),
        ("localhost:0", Address("localhost", 0)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8080", ":8080", "a:", "a:b", "a:65536", "a:-1"])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:8080"):
        parse_address(text)


async def test_probes_tell_what_is_wrong_and_metrics_are_exposed() -> None:
    """D50: liveness fails when only a restart can help."""
    wrong: list[str] = []
    metrics = Metrics()
    metrics.reconciles.labels("edge", "done").inc()
    routes = [*health_routes(lambda: wrong, lambda: ["not listed"]), *metrics_routes(metrics.expose, CONTENT_TYPE)]
    runner = await serve(Address("127.0.0.1", 0), routes)
    try:
        host, port = runner.addresses[0][:2]
        async with aiohttp.ClientSession(f"http://{host}:{port}") as session:

            async def get(path: str) -> tuple[int, str]:
                async with session.get(path) as answer:
                    return answer.status, await answer.text()

            assert await get("/healthz") == (200, "ok\n")
            wrong.append("the watch has ended")
            assert await get("/healthz") == (503, "the watch has ended\n")
            assert await get("/readyz") == (503, "not listed\n")
            assert 'weir_operator_reconciles_total{gateway="edge",outcome="done"} 1.0' in (await get("/metrics"))[1]
    finally:
        await runner.cleanup()
