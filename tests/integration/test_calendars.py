# SPDX-License-Identifier: Apache-2.0
"""Quotas per day, week and month through a running limiter; the arithmetic itself is the conformance tests' subject."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.store import Store
from rig.documents import document, policy, rule
from rig.envoy import Envoy
from rig.sidecar import Sidecar

RECORD = ">8sBdddd"  # id, kind, at, count, end of the window, unused


def per(calendar: str, zone: str = "UTC", requests: int = 3) -> dict[str, Any]:
    """A rule of so many requests in each window of a calendar."""
    members = {"algorithm": "FixedWindow", "requests": requests, "calendar": calendar, "timeZone": zone}
    return rule("quota", limit=members)


async def admitted(envoy: Envoy, key: str, requests: int) -> int:
    return sum([(await envoy.key(key)).allowed for _ in range(requests)])


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Kiritimati"])
async def test_a_quota_holds_until_the_calendar_says_so(sidecar: Sidecar, envoy: Envoy, zone: str) -> None:
    sidecar.publish(document(policy(per("Month", zone))))
    assert await admitted(envoy, "k", 5) == 3
    refused = await envoy.key("k")
    assert refused.problem["detail"].startswith(f'Limit "quota" allows 3 requests per month in {zone}; retry in ')
    assert 0 < int(refused.headers["retry-after"]) <= 31 * 86_400 + 3_600


async def test_the_window_is_as_long_as_the_present_month(sidecar: Sidecar, envoy: Envoy, store: Store) -> None:
    sidecar.publish(document(policy(per("Month"))))
    with store.client() as client:
        now = datetime.fromtimestamp(client.time()[0], UTC)
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    days = ((first + timedelta(days=32)).replace(day=1) - first).days
    assert (await envoy.key("k")).headers["ratelimit-policy"] == f'"quota";q=3;w={days * 86_400}'


async def test_a_store_whose_clock_was_set_back_by_days_is_asked_again(
    sidecar: Sidecar, envoy: Envoy, store: Store
) -> None:
    """D02: the record is days ahead of the limiter's calendar; the count stays and nothing fails open."""
    sidecar.publish(document(policy(per("Day"))))
    assert await admitted(envoy, "k", 1) == 1
    with store.client() as client:
        (key,) = client.keys("weir:2:*")
        identity, kind, at, count, end, unused = struct.unpack(RECORD, client.get(key))
        ahead_us = 5 * 86_400e6
        client.set(key, struct.pack(RECORD, identity, kind, at + ahead_us, count, end + ahead_us, unused))
    assert await admitted(envoy, "k", 5) == 2
    assert sidecar.metric("weir_store_failures_total") == 0
