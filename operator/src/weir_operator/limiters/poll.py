# SPDX-License-Identifier: Apache-2.0
"""Reads every limiter's GET /status and says what runs there.

Owns the HTTP and the parsing: strict about the members it uses, silent about those it does not know. Must not judge
what a report means for a policy: that is `reconcile.status`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime

import aiohttp

from weir_operator.limiters.rule_counts import parse_counts
from weir_operator.limiters.rules import UnusableAnswer, parse_break_glass, parse_rules
from weir_operator.reconcile.ports import AppliedRuleset, Asked, LimiterReport

STATUS_FORMAT = 1
TIMEOUT = aiohttp.ClientTimeout(total=2, sock_connect=1)  # the endpoint answers from memory, in a millisecond
BODY_MAX_BYTES = 8 << 20  # 16,000 rules at their longest names need about 6 MB
CONCURRENT = 32  # arbitrary: enough for every fleet seen, few enough for one file table
ERROR_MAX_CHARS = 200
BRIEFLY_S = 0.3  # arbitrary: a hundred times what an answer takes, and nothing beside the 2 s that an edit may take
FAILURES_BEFORE_UNREACHABLE = 2  # one lost answer must not flip the conditions of a thousand policies


class LimiterPoller:
    """The limiters of one gateway, behind `reconcile.ports.Limiters`."""

    def __init__(self, gateway: str, addresses: Sequence[str], session: aiohttp.ClientSession) -> None:
        self._gateway = gateway
        self._addresses = tuple(addresses)
        self._session = session
        self._slots = asyncio.Semaphore(CONCURRENT)
        self._last: dict[str, LimiterReport] = {}
        self._failures: dict[str, int] = {}
        self._bodies: dict[str, tuple[bytes, LimiterReport]] = {}
        self._known: dict[str, LimiterReport] = {}
        self._asking: dict[str, asyncio.Task[LimiterReport]] = {}

    async def read(self) -> tuple[LimiterReport, ...]:
        """Ask all limiters at once; a report with an error only after two failures in a row.

        Waits for a limiter that was never heard of until it has had its time, and only briefly for the others: one that
        hangs must not hold up an edit. What it answers, or that it does not, is in a later report.
        """
        for address in self._addresses:
            if address not in self._asking:
                self._asking[address] = asyncio.create_task(self._read_one(address))
        strangers = [task for address, task in self._asking.items() if address not in self._known]
        await asyncio.wait(self._asking.values(), timeout=BRIEFLY_S)
        if strangers:
            await asyncio.wait(strangers)
        for address in [address for address, task in self._asking.items() if task.done()]:
            self._known[address] = self._asking.pop(address).result()
        return tuple(self._known[address] for address in self._addresses)

    async def _read_one(self, address: str) -> LimiterReport:
        try:
            async with self._slots:
                body, now_ms = await self._fetch(address)
            report = self._parse(body, address, now_ms)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return self._failed(address, _describe(error))
        except UnusableAnswer as error:
            return self._failed(address, str(error))
        self._failures[address] = 0
        self._last[address] = report
        return report

    def _parse(self, body: bytes, address: str, now_ms: int | None) -> LimiterReport:
        """Read an answer; one that says the same as the last costs nothing, which a quiet fleet's does."""
        last_body, report = self._bodies.get(address, (b"", None))
        if report is None or body != last_body:
            report = parse_status(body, address, self._gateway)
            self._bodies[address] = body, report
        return replace(report, asked=report.asked and replace(report.asked, now_ms=now_ms))

    async def _fetch(self, address: str) -> tuple[bytes, int | None]:
        """Return the answer and the limiter's own time, by which alone its times can be judged."""
        async with self._session.get(f"{address.rstrip('/')}/status", timeout=TIMEOUT, allow_redirects=False) as answer:
            if answer.status != 200:  # noqa: PLR2004  HTTP's own number
                raise UnusableAnswer(f"GET /status answers {answer.status}")
            body = await answer.content.read(BODY_MAX_BYTES + 1)
            while len(body) <= BODY_MAX_BYTES and not answer.content.at_eof():
                body += await answer.content.read(BODY_MAX_BYTES + 1 - len(body))
        if len(body) > BODY_MAX_BYTES:
            raise UnusableAnswer(f"GET /status answers more than {BODY_MAX_BYTES} bytes")
        return body, _parse_date(answer.headers.get("Date", ""))

    def _failed(self, address: str, error: str) -> LimiterReport:
        self._failures[address] = self._failures.get(address, 0) + 1
        last = self._last.get(address)
        if last is not None and self._failures[address] < FAILURES_BEFORE_UNREACHABLE:
            return last
        self._last.pop(address, None)
        return LimiterReport(address, error=error[:ERROR_MAX_CHARS])


def _describe(error: Exception) -> str:
    """Return fixed words: they stand in conditions, which must not change with every attempt."""
    if isinstance(error, TimeoutError):
        return f"silent for {TIMEOUT.total} s"
    return "cannot connect" if isinstance(error, aiohttp.ClientConnectionError | OSError) else type(error).__name__


def _parse_date(header: str) -> int | None:
    try:
        return int(parsedate_to_datetime(header).timestamp() * 1000)
    except ValueError:
        return None


def parse_status(body: bytes, address: str, gateway: str) -> LimiterReport:
    """Return what a status document says; raise UnusableAnswer if it is none, or another gateway's."""
    try:
        document = json.loads(body)
    except ValueError as error:
        raise UnusableAnswer(f"GET /status answers no JSON: {error}") from error
    match document:
        case {"format": int(version)} if version != STATUS_FORMAT:
            raise UnusableAnswer(f"GET /status answers format {version}, and this operator reads {STATUS_FORMAT}")
        case {
            "format": int(),
            "instance": str(instance),
            "gateway": str(served),
            "ready": bool(ready),
            "rulesets": dict(rulesets),
            "store": {"state": str(state), **store},
        }:
            if served != gateway:
                raise UnusableAnswer(f"it serves gateway {served!r}, not {gateway!r}")
        case _:
            raise UnusableAnswer(
                "GET /status answers without format, instance, gateway, ready, rulesets or store.state"
            )
    applied = {name: _parse_ruleset(name, member) for name, member in rulesets.items()}
    break_glass, glass_error = parse_break_glass(document.get("breakGlass"))
    return LimiterReport(
        address,
        instance,
        rulesets=applied,
        policies=parse_rules(document.get("rules")),
        counts=parse_counts(document.get("rules")),
        break_glass=break_glass,
        break_glass_error=glass_error[:ERROR_MAX_CHARS],
        ready=ready,
        asked=_parse_asked(document),
        store_down=state == "Down",
        store_faults=_parse_preflight(store.get("preflight")),
    )


def _parse_asked(document: Mapping[str, object]) -> Asked | None:
    match document:
        case {"startedAtMs": int(started_ms), "checks": {"lastMs": int() | None as last_ms}}:
            return Asked(started_ms, last_ms)
        case _:
            return None


def _parse_preflight(checks: object) -> tuple[str, ...]:
    """Return the failed checks; a limiter that makes none, or whose form of it is unknown here, has none."""
    found = []
    for check in checks if isinstance(checks, list) else ():
        match check:
            case {"check": str(name), "ok": False, "message": str(message)}:
                found.append(f"{name}: {message}"[:ERROR_MAX_CHARS])
    return tuple(sorted(found))


def _parse_ruleset(name: str, member: object) -> AppliedRuleset:
    match member:
        case {"revision": int(revision), "digest": str(digest), "rejected": None}:
            return AppliedRuleset(revision, digest)
        case {
            "revision": int(revision),
            "digest": str(digest),
            "rejected": {"revision": int(rejected), "error": str(error)},
        }:
            return AppliedRuleset(revision, digest, rejected, error)
        case _:
            raise UnusableAnswer(f"GET /status: rulesets.{name} lacks revision, digest or rejected")
