# SPDX-License-Identifier: Apache-2.0
"""`make demo`: Weir's main job on real parts, from `kubectl apply` to 429, with a verdict computed from the figures.

Three acts: a policy in shadow, the same policy switched to Enforce under load, the enforced limits. It tells a story
and compares figures (`lab.verdict`); bringing the parts up and down is `lab.environment`'s.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.environment import Environment
from lab.layout import PRODUCTION, SHARED_MACHINE, Layout
from lab.progress import say
from lab.traffic import Sample, Stream, Tally, drive
from lab.verdict import Judgement, Limit, admitted, untouched, would_be_refused
from lab.workspace import ROOT

_EXAMPLES = ROOT / "examples"
_PER_S = 200.0  # twice the limit of a key, and what two cores carry together with everything else
_ACT_S = 4.0
_SWITCH_AFTER_S = 2.5  # by then the probing client has emptied its bucket, so that the first enforced decision refuses
_LONGEST_SWITCH_S = 30.0
_SWITCH_LIMIT_MS = 2000

_PER_KEY = Limit(100, 200)  # examples/01 and 02
_PARTNER = Limit(500, 1000)  # examples/04
_LOGIN = Limit(5 / 60, 5)  # examples/03
_SHOWN_HEADERS = ("ratelimit-policy", "ratelimit", "retry-after", "content-type")


@dataclass(slots=True)
class _Show:
    environment: Environment
    judgements: list[Judgement] = field(default_factory=list)

    async def play(self) -> None:
        self._apply("00-namespaces", "01-orders-shadow", "03-login", "04-override")
        self._wait_ready()
        await self._shadow()
        await self._switch()
        await self._enforce()

    async def _shadow(self) -> None:
        _title("Shadow: everything passes, and the limiters count whom they would refuse")
        self._get()
        counted = self._would_reject()
        shop, partner = await self._drive([_orders("shop-1", "shop-1-key"), _orders("partner", "partner-import-key")])
        would_be = self._would_reject() - counted
        _table([shop, partner], {"all": would_be})
        self.judgements += [untouched(shop), untouched(partner), would_be_refused(shop, _PER_KEY, would_be)]

    async def _switch(self) -> None:
        _title("kubectl apply of the same policy with mode: Enforce, under load")
        stop = asyncio.Event()
        probe = [_orders("switch", "switch-key")]
        traffic = asyncio.create_task(drive(probe, self.environment.urls, _LONGEST_SWITCH_S, stop=stop))
        await asyncio.sleep(_SWITCH_AFTER_S)
        begun = time.monotonic()
        await asyncio.to_thread(self._apply, "02-orders-enforce")
        done = time.monotonic()
        await asyncio.sleep(_SWITCH_LIMIT_MS / 1000)
        stop.set()
        (tally,) = await traffic
        say(f"  kubectl itself took {_ms(done - begun)} ms")
        for number, url in enumerate(self.environment.urls):
            first = tally.first_refusal_at.get(url, math.inf)
            say(f"  first 429 on Envoy {number}: {_ms(first - begun)} ms after kubectl apply was started")
            late = max(0, _ms(first - done))
            what = f"ms from the end of kubectl apply to the first 429 on Envoy {number}"
            self.judgements.append(Judgement(what, late, 0, _SWITCH_LIMIT_MS))
        self._wait_ready()

    async def _enforce(self) -> None:
        _title("Enforce: per key, over both Envoys together")
        self._get()
        streams = [
            _orders("shop-2", "shop-2-key"),
            _orders("partner", "partner-import-key"),
            _login("login .101", "127.0.0.101"),
            _login("login .102", "127.0.0.102"),
        ]
        shop, partner, *logins = await self._drive(streams)
        _table([shop, partner, *logins], {})
        _samples(shop, logins[0])
        self.judgements += [admitted(shop, _PER_KEY), admitted(partner, _PARTNER)]
        self.judgements += [admitted(login, _LOGIN) for login in logins]
        answered = [shop, partner, *logins]
        failed = sum(tally.failed + tally.open_mode for tally in answered)
        self.judgements.append(Judgement("errors, and answers without a decision of the store", failed, 0, 0))

    async def _drive(self, streams: Sequence[Stream], seconds: float = _ACT_S) -> list[Tally]:
        say(f"  sending {sum(stream.per_s for stream in streams):.0f} requests/s for {seconds:.0f} s …")
        return await drive(streams, self.environment.urls, seconds)

    def _apply(self, *examples: str) -> None:
        for name in examples:
            path = _EXAMPLES / f"{name}.yaml"
            say(f"$ kubectl apply -f examples/{name}.yaml")
            say(_indent(self.environment.cluster.kubectl("apply", "-f", str(path))))

    def _wait_ready(self) -> None:
        wait = ("wait", "--for=condition=Ready", "rlpol,rlovr", "--all", "-A", "--timeout=30s")
        say(f"$ kubectl {' '.join(wait)}")
        say(_indent(self.environment.cluster.kubectl(*wait)))

    def _get(self) -> None:
        say("$ kubectl get rlpol,rlovr -A")
        say(_indent(self.environment.cluster.kubectl("get", "rlpol,rlovr", "-A")))

    def _would_reject(self) -> int:
        rows: list[Any] = [row for limiter in self.environment.limiters for row in limiter.status()["rules"]]
        return sum(int(row["wouldReject"]) for row in rows if row["policy"] == "team-orders/orders-api")


def run() -> int:
    """Bring everything up, play, judge, take everything down. 0 only if every figure is what the policies say."""
    environment = Environment("demo", Layout(patience=SHARED_MACHINE))
    here, there = SHARED_MACHINE, PRODUCTION
    say(
        f"All share this machine with the load generator, so a limiter waits {here.store_ms} ms for the store and "
        f"Envoy {here.limiter_ms} ms for the limiter; in production, and with `make up`, {there.store_ms} ms "
        f"and {there.limiter_ms} ms."
    )
    environment.start()
    try:
        show = _Show(environment)
        asyncio.run(show.play())
    finally:
        say("\n· Take everything down")
        environment.stop()
    _title("Verdict")
    for judgement in show.judgements:
        say(f"  {judgement}")
    good = all(judgement.holds for judgement in show.judgements)
    say(f"\n{'The limits hold.' if good else 'The limits do NOT hold. Logs: .weir/logs/demo'}")
    return 0 if good else 1


def _orders(name: str, key: str) -> Stream:
    return Stream(name, _PER_S, "api.example.com", "/v1/orders", headers={"x-api-key": key})


def _login(name: str, address: str) -> Stream:
    return Stream(name, 5, "login.example.com", "/login", method="POST", source=address)


def _ms(seconds: float) -> int:
    return round(1000 * min(seconds, _LONGEST_SWITCH_S))


def _title(text: str) -> None:
    say(f"\n── {text} {'─' * max(0, 112 - len(text))}")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip().splitlines())


def _table(tallies: Sequence[Tally], would_be: dict[str, int]) -> None:
    say(f"  {'client':<12}{'sent':>7}{'passed':>8}{'429':>7}{'would-be 429':>14}{'open':>6}{'p50 ms':>8}{'p99 ms':>8}")
    for tally in tallies:
        say(
            f"  {tally.stream.name:<12}{tally.sent:>7}{tally.passed:>8}{tally.rejected:>7}{'':>14}{tally.open_mode:>6}"
            f"{tally.percentile_ms(0.5):>8.1f}{tally.percentile_ms(0.99):>8.1f}"
        )
    for name, count in would_be.items():
        say(f"  {name:<12}{'':>7}{'':>8}{'':>7}{count:>14}")


def _samples(api: Tally, login: Tally) -> None:
    _sample("an allowed answer", api.allowed)
    _sample("a refused answer", api.refused)
    _sample("a refused login (a Silent rule)", login.refused)


def _sample(what: str, sample: Sample | None) -> None:
    if sample is None:
        return
    say(f"\n  {what}: {sample.status}")
    for name, value in sample.headers:
        if name in _SHOWN_HEADERS:
            say(f"    {name}: {value}")
    if sample.status == 429:
        say(f"    {sample.body}")
