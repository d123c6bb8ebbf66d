# SPDX-License-Identifier: Apache-2.0
"""Leaky buckets through real Envoys: requests leave evenly over all gateways, whoever goes away is not charged."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from lab.client import Answer
from lab.team import Team
from lab.waiting import eventually

PER_KEY = {"key": [{"header": "x-api-key"}]}
COUNTED = 1000  # of a limit that gives a token back each hour: what it has left tells what was charged


def even(requests: int, period: str, *, queue: int, max_delay: str) -> dict[str, object]:
    """A rule that lets requests of one key leave evenly."""
    limit = {"algorithm": "LeakyBucket", "requests": requests, "period": period, "queue": queue, "maxDelay": max_delay}
    return {"name": "even", **PER_KEY, "limit": limit}


def all_at_once(team: Team, count: int, headers: dict[str, str]) -> list[tuple[float, Answer]]:
    """The answers to `count` requests sent together, to the gateways in turn, each with its time since the start."""
    begun = time.monotonic()

    def one(number: int) -> tuple[float, Answer]:
        answer = team.send(headers=headers, gateway=number % 2)
        return time.monotonic() - begun, answer

    with ThreadPoolExecutor(count) as clients:
        return sorted(clients.map(one, range(count)), key=lambda entry: entry[0])


@pytest.mark.requirement("R10")
def test_requests_leave_evenly_over_all_gateways_and_none_is_refused(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[even(10, "1s", queue=20, max_delay="2s")]))
    answers = all_at_once(team, 15, api_key)
    assert [answer.status for _, answer in answers] == [200] * 15
    assert [(place, after) for place, (after, _) in enumerate(answers) if after < place * 0.1] == []
    assert all(answer.header("ratelimit") for _, answer in answers), "every one was decided"
    assert sum(rule["held"] for rule in team.rules()) >= 1


def test_whoever_would_wait_for_too_long_is_refused_at_once(team: Team, api_key: dict[str, str]) -> None:
    team.apply_ready(team.policy(rules=[even(1, "1s", queue=10, max_delay="2s")]))
    answers = all_at_once(team, 8, api_key)
    refused = [answer for _, answer in answers if answer.status == 429]
    assert len(answers) - len(refused) >= 3  # one at once, one after 1 s, one after 2 s
    assert refused
    assert all(1 <= int(answer.header("retry-after") or 0) <= 5 for answer in refused)


def test_a_rule_that_would_hold_for_longer_than_the_gateway_allows_is_not_accepted(team: Team) -> None:
    team.apply(team.policy(rules=[even(1, "1s", queue=10, max_delay="1m")]))
    eventually(lambda: team.condition("rlpol", "limits", "Accepted")["status"] == "False", within_s=15)
    assert "maxDelay" in team.condition("rlpol", "limits", "Accepted")["message"]


def test_a_client_that_goes_away_while_it_waits_is_not_charged(team: Team, api_key: dict[str, str]) -> None:
    """Envoy resets its question; what the request was charged is given back to the bucket and to every other limit."""
    daily = {"name": "count", **PER_KEY, "limit": {"requests": COUNTED, "period": "1000h"}}
    team.apply_ready(team.policy(rules=[even(1, "3s", queue=1, max_delay="3s"), daily]))
    first = team.send(headers=api_key)
    assert (first.status, _left(first)) == (200, COUNTED - 1)
    address = urlsplit(team.environment.urls[0])
    with socket.create_connection((address.hostname or "", address.port or 0)) as client:
        lines = ["GET / HTTP/1.1", f"host: {team.host}", *(f"{name}: {value}" for name, value in api_key.items())]
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        eventually(lambda: sum(rule["held"] for rule in team.rules()) == 1, within_s=10, what="the request is held")
    limiter = team.environment.limiters[0]
    refunded = {"reason": "client_gone", "outcome": "done"}
    eventually(lambda: limiter.metric("weir_refunds_total", **refunded) == 1, within_s=10)
    next_one = team.send(headers=api_key)
    assert (next_one.status, _left(next_one)) == (200, COUNTED - 2)


def _left(answer: Answer) -> int:
    """What the daily limit has left."""
    entry = next(part for part in (answer.header("ratelimit") or "").split(", ") if part.startswith('"count"'))
    return int(entry.split(";r=")[1].split(";")[0])
