# SPDX-License-Identifier: Apache-2.0
"""Credentials that are rotated under many requests at once cost each of them one more try, and nothing else."""

import asyncio
from collections import Counter

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration

from weir_operator.kube.cluster import ApiCluster
from weir_operator.kube.transport import Transport
from weir_operator.reconcile.ports import POLICIES, Listing, Waiting

CONCURRENT = 10


class RotatingServer:
    """Lists policies for whoever has the token of the day; the answers come one after the other."""

    def __init__(self) -> None:
        self.token = "first"
        self.port = 0
        self.loads = 0
        self.answers: Counter[int] = Counter()
        self.broken = False

    async def handle(self, request: web.Request) -> web.Response:
        authorized = request.headers.get("Authorization") == f"Bearer {self.token}"
        await asyncio.sleep(0.003 * int(request.query.get("labelSelector", "0")))
        if not authorized:
            return web.json_response({"message": "Unauthorized"}, status=401)
        return web.json_response({"metadata": {"resourceVersion": "7"}, "items": []})

    async def load_configuration(self) -> Configuration:
        self.loads += 1
        await asyncio.sleep(0.01)
        configuration = Configuration(host=f"http://127.0.0.1:{self.port}")
        configuration.api_key = {"BearerToken": "stale" if self.broken else self.token}
        configuration.api_key_prefix = {"BearerToken": "Bearer"}
        return configuration

    def on_answer(self, _: str, status: int) -> None:
        self.answers[status] += 1


async def list_at_once(cluster: ApiCluster) -> list[Listing | BaseException]:
    lists = (cluster.list(POLICIES, label_selector=str(number)) for number in range(CONCURRENT))
    return await asyncio.gather(*lists, return_exceptions=True)


async def test_a_rotated_token_costs_no_request_its_answer() -> None:
    server = RotatingServer()
    application = web.Application()
    application.add_routes([web.get("/apis/weir.dev/v1alpha1/ratelimitpolicies", server.handle)])
    async with TestServer(application) as running:
        server.port = running.port or 0
        cluster = ApiCluster(transport := Transport(server.load_configuration, server.on_answer))
        expected = [Listing((), 7)] * CONCURRENT
        assert await list_at_once(cluster) == expected
        assert server.loads == 1
        for day in ("second", "third"):
            server.token = day
            assert await list_at_once(cluster) == expected
        assert server.loads == 3
        assert server.answers == {200: 3 * CONCURRENT, 401: 2 * CONCURRENT}
        await transport.close()


async def test_credentials_that_stay_refused_are_waited_for() -> None:
    server = RotatingServer()
    server.broken = True
    application = web.Application()
    application.add_routes([web.get("/apis/weir.dev/v1alpha1/ratelimitpolicies", server.handle)])
    async with TestServer(application) as running:
        server.port = running.port or 0
        cluster = ApiCluster(transport := Transport(server.load_configuration, server.on_answer))
        with pytest.raises(Waiting, match="does not accept the operator's credentials"):
            await cluster.list(POLICIES)
        assert server.loads == 2
        await transport.close()
