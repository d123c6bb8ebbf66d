# SPDX-License-Identifier: Apache-2.0
"""Events are bounded, told once, and never anybody's burden; that an API server takes them is shown end to end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration

from weir_operator.clock import SystemClock
from weir_operator.kube import events
from weir_operator.kube.events import BURST, NOTE_MAX_CHARS, EventRecorder
from weir_operator.kube.transport import Transport
from weir_operator.metrics import Metrics
from weir_operator.reconcile.ports import Announcement

pytestmark = pytest.mark.requirement("R42")


def target(uid: str = "uid-1") -> dict[str, Any]:
    metadata = {"namespace": "team", "name": "api", "uid": uid, "resourceVersion": "7"}
    return {"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy", "metadata": metadata}


class Server:
    """Stores Events by name, as the API server does; answers `status` instead if that is set."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.status = 0
        self.metrics = Metrics()

    async def create(self, request: web.Request) -> web.Response:
        event = await request.json()
        name = event["metadata"]["name"]
        if self.status or name in self.stored:
            return web.json_response({"message": "no"}, status=self.status or 409)
        self.stored[name] = event
        return web.json_response(event, status=201)

    def counted(self, outcome: str) -> float:
        return self.metrics.registry.get_sample_value("weir_operator_events_total", {"outcome": outcome}) or 0.0

    async def heard(self, outcome: str, count: int) -> None:
        """Wait until so many Events have ended in that way."""
        async with asyncio.timeout(10):
            while self.counted(outcome) < count:  # noqa: ASYNC110  a counter tells nobody
                await asyncio.sleep(0.01)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def recorder(server: Server) -> AsyncIterator[EventRecorder]:
    application = web.Application()
    application.add_routes([web.post("/apis/events.k8s.io/v1/namespaces/team/events", server.create)])
    async with TestServer(application) as running:

        async def configuration() -> Configuration:
            return Configuration(host=f"http://127.0.0.1:{running.port}")

        transport = Transport(configuration, lambda _verb, _status: None)
        recorder = EventRecorder(transport, "operator-1", SystemClock(), server.metrics)
        task = asyncio.create_task(recorder.run())
        yield recorder
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()


async def test_an_event_says_what_about_which_object_and_who_reports_it(
    server: Server, recorder: EventRecorder
) -> None:
    recorder.announce(Announcement(target(), "KillSwitchSet", "Intervene", "x" * 2000, warning=True))
    await server.heard("written", 1)
    (event,) = server.stored.values()
    assert event["regarding"]["uid"] == "uid-1"
    assert (event["type"], event["reason"], len(event["note"])) == ("Warning", "KillSwitchSet", NOTE_MAX_CHARS)
    assert (event["reportingController"], event["reportingInstance"]) == ("weir.dev/operator", "operator-1")


async def test_what_was_told_before_is_not_told_again(server: Server, recorder: EventRecorder) -> None:
    for key in ("one", "one", "two"):
        recorder.announce(Announcement(target(), "KillSwitchSet", "Intervene", "note", key=key))
    await server.heard("written", 2)
    assert (len(server.stored), server.counted("known")) == (2, 1)


async def test_one_objects_flood_is_bounded_and_takes_nothing_from_another(
    server: Server, recorder: EventRecorder
) -> None:
    for number in range(3 * BURST):
        recorder.announce(Announcement(target(), "KillSwitchSet", "Intervene", f"note {number}"))
    recorder.announce(Announcement(target("uid-2"), "KillSwitchSet", "Intervene", "note"))
    await server.heard("written", BURST + 1)
    assert (len(server.stored), server.counted("dropped")) == (BURST + 1, 2 * BURST)


@pytest.mark.parametrize(("status", "outcome"), [(403, "refused"), (503, "dropped")])
async def test_an_api_server_that_will_not_take_it_costs_the_event_and_nothing_else(
    server: Server, recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch, status: int, outcome: str
) -> None:
    monkeypatch.setattr(events, "ATTEMPTS", 1)
    server.status = status
    recorder.announce(Announcement(target(), "KillSwitchSet", "Intervene", "lost"))
    await server.heard(outcome, 1)
    server.status = 0
    recorder.announce(Announcement(target(), "KillSwitchSet", "Intervene", "kept"))
    await server.heard("written", 1)
    assert [event["note"] for event in server.stored.values()] == ["kept"]
