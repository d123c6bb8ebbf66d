# SPDX-License-Identifier: Apache-2.0
"""Reading limiters' status documents: strict about what is used, patient once, never dragged along."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from weir_operator.limiters import poll
from weir_operator.limiters.poll import LimiterPoller, UnusableAnswer, parse_status
from weir_operator.reconcile.ports import AppliedRuleset

RULESET = {"revision": 7, "digest": "sha256:0", "source": "Watch", "appliedAtMs": 0, "rejected": None}
DOCUMENT = {
    "format": 1,
    "instance": "edge-0",
    "gateway": "edge",
    "ready": True,
    "rulesets": {"edge-rules-0": RULESET},
    "store": {"state": "Up", "error": "", "sinceMs": 0},
    "novel": [1],
}


class Endpoint:
    """A real HTTP server that answers GET /status with whatever it is told."""

    def __init__(self) -> None:
        self.answer = web.json_response
        self.body: Any = DOCUMENT
        self.status = 200
        self.released = asyncio.Event()
        self.released.set()

    async def handle(self, _: web.Request) -> web.Response:
        await self.released.wait()
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return web.Response(status=self.status, body=body, headers={"Location": "/status"})


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
async def server(endpoint: Endpoint) -> AsyncIterator[TestServer]:
    application = web.Application()
    application.add_routes([web.get("/status", endpoint.handle)])
    async with TestServer(application) as running:
        yield running


@pytest.fixture
async def poller(server: TestServer) -> AsyncIterator[LimiterPoller]:
    async with aiohttp.ClientSession() as session:
        yield LimiterPoller("edge", [f"http://127.0.0.1:{server.port}/"], session)


async def test_a_limiter_says_what_it_runs(poller: LimiterPoller) -> None:
    (report,) = await poller.read()
    assert (report.error, report.name) == ("", "edge-0")
    assert report.rulesets == {"edge-rules-0": AppliedRuleset(7, "sha256:0")}


async def test_a_limiter_says_when_it_was_asked_by_its_own_clock(endpoint: Endpoint, poller: LimiterPoller) -> None:
    endpoint.body = {**DOCUMENT, "startedAtMs": 5, "checks": {"total": 3, "lastMs": 1_796_126_400_123}}
    (before,) = await poller.read()
    endpoint.body["checks"]["lastMs"] += 1
    (after,) = await poller.read()
    assert before.asked is not None
    assert (before.asked.started_ms, before.asked.last_ms) == (5, 1_796_126_400_123)
    assert before.asked.now_ms % 1000 == 0
    assert after.asked != before.asked
    assert after == before


async def test_an_answer_that_says_the_same_is_not_read_again(
    poller: LimiterPoller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet fleet of a hundred limiters with a thousand policies each must cost next to nothing."""
    before = await poller.read()
    monkeypatch.setattr(poll, "parse_status", None)
    assert await poller.read() == before


async def test_one_lost_answer_changes_nothing_and_the_second_is_told(
    endpoint: Endpoint, poller: LimiterPoller
) -> None:
    before = await poller.read()
    endpoint.status = 500
    assert await poller.read() == before
    (report,) = await poller.read()
    assert report.error == "GET /status answers 500"
    endpoint.status = 200
    assert await poller.read() == before


async def test_a_limiter_that_never_answered_is_told_at_once(server: TestServer, poller: LimiterPoller) -> None:
    await server.close()
    (report,) = await poller.read()
    assert report.error == "cannot connect"


async def test_a_redirect_is_not_followed(endpoint: Endpoint, poller: LimiterPoller) -> None:
    endpoint.status = 302
    (report,) = await poller.read()
    assert report.error == "GET /status answers 302"


async def test_an_endless_answer_is_cut_off(
    endpoint: Endpoint, poller: LimiterPoller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "BODY_MAX_BYTES", 100)
    endpoint.body = b" " * 101
    (report,) = await poller.read()
    assert report.error == "GET /status answers more than 100 bytes"


async def test_limiters_are_told_apart_and_keep_their_order(server: TestServer) -> None:
    dead = "http://127.0.0.1:1"
    async with aiohttp.ClientSession() as session:
        reports = await LimiterPoller("edge", [dead, f"http://127.0.0.1:{server.port}"], session).read()
    assert [report.name for report in reports] == [dead, "edge-0"]


def test_a_refused_ruleset_is_reported_with_its_reason() -> None:
    rejected = {"revision": 8, "digest": "", "error": "$.policies[0]: no", "atMs": 0}
    body = json.dumps({**DOCUMENT, "rulesets": {"edge-rules-0": {**RULESET, "rejected": rejected}}}).encode()
    report = parse_status(body, "http://l", "edge")
    assert report.rulesets["edge-rules-0"] == AppliedRuleset(7, "sha256:0", 8, "$.policies[0]: no")


@pytest.mark.parametrize(("state", "down"), [("Up", False), ("Down", True), ("Unknown", False)])
def test_a_limiter_says_whether_it_decides_and_by_what(state: str, *, down: bool) -> None:
    """D52."""
    body = json.dumps({**DOCUMENT, "ready": False, "store": {"state": state}}).encode()
    report = parse_status(body, "http://l", "edge")
    assert (report.ready, report.store_down) == (False, down)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "no JSON"),
        (b"[]", "without format"),
        (json.dumps({**DOCUMENT, "format": 2}).encode(), "format 2"),
        (json.dumps({**DOCUMENT, "gateway": "other"}).encode(), "serves gateway 'other', not 'edge'"),
        (json.dumps({**DOCUMENT, "rulesets": {"r": {"revision": "7"}}}).encode(), "rulesets.r"),
        (json.dumps({**DOCUMENT, "rulesets": None}).encode(), "without format"),
        (json.dumps({**DOCUMENT, "store": None}).encode(), "without format"),
    ],
    ids=["no JSON", "no object", "another format", "another gateway", "a bad ruleset", "no rulesets", "no store"],
)
def test_an_answer_that_is_no_status_document_is_named(body: bytes, words: str) -> None:
    with pytest.raises(UnusableAnswer, match=words):
        parse_status(body, "http://l", "edge")


PREFLIGHT = [
    {"check": "eviction", "ok": False, "message": "set maxmemory-policy noeviction"},
    {"check": "role", "ok": True, "message": ""},
    {"check": "rights", "ok": False, "message": "allow EVALSHA", "novel": 1},
]


def faults(store: dict[str, Any]) -> tuple[str, ...]:
    body = json.dumps({**DOCUMENT, "store": {"state": "Up", **store}}).encode()
    return parse_status(body, "http://a", "edge").store_faults


def test_failed_checks_of_the_store_are_read_with_their_remedies() -> None:
    assert faults({"preflight": PREFLIGHT}) == ("eviction: set maxmemory-policy noeviction", "rights: allow EVALSHA")


@pytest.mark.parametrize(
    "store",
    [{}, {"preflight": None}, {"preflight": "x"}, {"preflight": [1, {}, {"check": "a", "ok": 0, "message": "b"}]}],
)
def test_a_limiter_without_such_checks_or_with_another_form_of_them_has_no_faults(store: dict[str, Any]) -> None:
    assert faults(store) == ()


def test_a_remedy_of_any_length_is_cut() -> None:
    (fault,) = faults({"preflight": [{"check": "role", "ok": False, "message": "x" * 5000}]})
    assert len(fault) == poll.ERROR_MAX_CHARS


async def test_a_limiter_that_hangs_holds_up_nobody(endpoint: Endpoint, server: TestServer) -> None:
    """An edit must not wait for a frozen limiter: what is known of it is told until it has had its time."""
    frozen = Endpoint()
    frozen.body = {**DOCUMENT, "instance": "edge-1"}
    application = web.Application()
    application.add_routes([web.get("/status", frozen.handle)])
    async with TestServer(application) as second, aiohttp.ClientSession() as session:
        poller = LimiterPoller("edge", [f"http://127.0.0.1:{each.port}" for each in (server, second)], session)
        before = await poller.read()
        frozen.released.clear()
        endpoint.body, frozen.body = ({**DOCUMENT, "instance": name} for name in ("edge-0b", "edge-1b"))
        during = await poller.read()
        frozen.released.set()
        after = await poller.read()
    names = [[report.name for report in reports] for reports in (before, during, after)]
    assert names == [["edge-0", "edge-1"], ["edge-0b", "edge-1"], ["edge-0b", "edge-1b"]]
