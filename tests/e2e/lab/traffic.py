# SPDX-License-Identifier: Apache-2.0
"""Load with a known shape: streams of requests at a fixed pace, spread over the gateways in turn, counted per stream.

Open loop: a request is sent when its time has come, whether or not earlier ones were answered, because a client that
waits for slow answers hides them. Says what happened; judges nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp

_NO_ANSWER = 0  # counted as a status: refused, reset or timed out
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Stream:
    """What one kind of client sends. `source` is its address as the gateway sees it (any of 127.0.0.0/8)."""

    name: str
    per_s: float
    host: str
    path: str = "/"
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One whole answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


@dataclass(slots=True)
class Tally:
    """What happened to a stream. Times are of the monotonic clock, in seconds."""

    stream: Stream
    statuses: Counter[int] = field(default_factory=Counter)
    open_mode: int = 0  # answers marked `x-ratelimit-mode: open`: passed because the store was late
    latencies_s: list[float] = field(default_factory=list)
    first_refusal_at: dict[str, float] = field(default_factory=dict)  # by gateway URL
    allowed: Sample | None = None
    refused: Sample | None = None
    began: float = 0.0  # before the first request was sent
    last_sent: float = 0.0
    ended: float = 0.0  # after the last answer was read

    @property
    def sent(self) -> int:
        """All requests."""
        return self.statuses.total()

    @property
    def passed(self) -> int:
        """Answers with a status below 400."""
        return sum(count for status, count in self.statuses.items() if _NO_ANSWER < status < 400)

    @property
    def rejected(self) -> int:
        """Answers with status 429."""
        return self.statuses[429]

    @property
    def failed(self) -> int:
        """Everything else: no answer, or an error that is no refusal."""
        return self.sent - self.passed - self.rejected

    def percentile_ms(self, share: float) -> float:
        """A latency in milliseconds, as in 0.99; 0 when there was no answer."""
        ordered = sorted(self.latencies_s)
        return 1000 * ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


async def drive(
    streams: Sequence[Stream], urls: Sequence[str], seconds: float, *, stop: asyncio.Event | None = None
) -> list[Tally]:
    """Send every stream for `seconds`, or until `stop` is set; the n-th request goes to the n-th gateway in turn.

    Returns one tally per stream, in their order.
    """
    stop = stop or asyncio.Event()
    return list(await asyncio.gather(*(_drive_one(stream, urls, seconds, stop) for stream in streams)))


async def _drive_one(stream: Stream, urls: Sequence[str], seconds: float, stop: asyncio.Event) -> Tally:
    tally = Tally(stream)
    connector = aiohttp.TCPConnector(limit=0, local_addr=(stream.source, 0) if stream.source else None)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session, asyncio.TaskGroup() as group:
        tally.began = time.monotonic()
        for number in range(math.ceil(seconds * stream.per_s)):
            if stop.is_set():
                break
            due = tally.began + number / stream.per_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            tally.last_sent = time.monotonic()
            group.create_task(_send(session, stream, urls[number % len(urls)], tally))
    tally.ended = time.monotonic()
    return tally


async def _send(session: aiohttp.ClientSession, stream: Stream, url: str, tally: Tally) -> None:
    sent = time.monotonic()
    try:
        headers = {"host": stream.host, **stream.headers}
        async with session.request(stream.method, url + stream.path, headers=headers) as response:
            body = await response.text()
    except (aiohttp.ClientError, TimeoutError):
        tally.statuses[_NO_ANSWER] += 1
        return
    answered = time.monotonic()
    tally.latencies_s.append(answered - sent)
    tally.statuses[response.status] += 1
    tally.open_mode += response.headers.get("x-ratelimit-mode") == "open"
    refused = response.status == 429
    if refused:
        tally.first_refusal_at.setdefault(url, answered)
    if (tally.refused if refused else tally.allowed) is None:
        lines = tuple((name.lower(), value) for name, value in response.headers.items())
        sample = Sample(response.status, lines, body)
        if refused:
            tally.refused = sample
        else:
            tally.allowed = sample
