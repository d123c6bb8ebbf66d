# SPDX-License-Identifier: Apache-2.0
"""Faults of the limiter's own side: it dies, Envoy loses it, its clock is wrong, its disk is full."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.processes import free_port
from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, limit, override, policy, rule
from rig.envoy import Envoy
from rig.fake_clock import FakeClock
from rig.judge import judge, judge_recovery, judge_waits
from rig.modes import rules
from rig.namespaces import private_mounts, seen_by
from rig.sidecar import Sidecar
from rig.toxiproxy import Toxiproxy
from rig.traffic import Running

HOURS = 5
DAY_S = 86_400


@pytest.mark.requirement("R23", "R24")
async def test_a_limiter_that_is_killed_and_restarted(
    frail: Store, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """What was counted is in the store, so nobody starts afresh; the rules are in the mount, so nobody is unlimited."""
    sidecar = start_sidecar(frail.url)
    async with running(sidecar) as traffic:
        sidecar.part.kill()
        await traffic.begin("during")
        await traffic.unanswered(50)
        after = await traffic.begin("after")
        await asyncio.to_thread(sidecar.restart)
        await traffic.limited()
    judge_recovery(after)
    await judge(traffic, cut_off=True, since=traffic.phases.index(after))


@pytest.mark.requirement("R23", "R24")
async def test_envoys_connection_to_the_limiter_cut_again_and_again(
    frail: Store, toxiproxy: Toxiproxy, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """D37: requests under way are lost to Envoy, which has a mode for that; no later one is, and none counts twice."""
    port = free_port()
    sidecar = start_sidecar(frail.url, flags=("--listen", f"tcp:127.0.0.1:{port}"))
    proxy = toxiproxy.to(port)
    async with running(sidecar, targets=(f"127.0.0.1:{proxy.port}",)) as traffic:
        during = await traffic.begin("during")
        for _ in range(5):
            await traffic.answers(20)
            await asyncio.to_thread(proxy.cut)
        with proxy.toxic("reset_peer", timeout=0):
            await traffic.unanswered(20)
            after = await traffic.begin("after")
        await traffic.limited()
    judge_waits(during)
    judge_recovery(after)
    await judge(traffic, cut_off=True)


@pytest.mark.requirement("R04", "R24")
async def test_a_clock_that_jumps_by_hours_beside_one_that_is_right(
    tmp_path: Path, frail: Store, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """D02: two limiters, one budget. The store's clock counts, so that of a limiter cannot give anything back."""
    clock = FakeClock(tmp_path / "shift")
    clock.shift(0)
    wrong = start_sidecar(frail.url, env=clock.env)
    right = start_sidecar(frail.url)
    shifted = []
    async with running(right, wrong) as traffic:
        for hours in (HOURS, -HOURS):
            clock.shift(hours)
            during = await traffic.begin(f"{hours:+} h")
            applied = [await asyncio.to_thread(applied_at_h, sidecar) for sidecar in (right, wrong)]
            assert round(applied[1] - applied[0]) == hours, "the clock was not shifted"
            await traffic.limited()
            shifted.append(during)
    for during in shifted:
        judge_recovery(during)
    await judge(traffic)


@pytest.mark.requirement("R16", "R24")
async def test_a_clock_that_jumps_begins_no_override(
    tmp_path: Path, frail: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D02, D46: a subject that is blocked asks no store, so nobody would tell the limiter what time it is."""
    clock = FakeClock(tmp_path / "shift")
    clock.shift(0)
    sidecar = start_sidecar(frail.url, env=clock.env)
    with frail.client() as client:
        now_s, _ = client.time()
    later = override("k", action="Block", notBefore=now_s + 3600)
    sidecar.publish(document(policy(rule(limit=limit(10, period_s=3600))), overrides=[later]))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert (await envoy.key("k")).allowed
        clock.shift(HOURS)
        assert [(await envoy.key("k")).status for _ in range(3)] == [200] * 3


@pytest.mark.requirement("R11", "R24")
async def test_a_clock_that_was_always_wrong_counts_no_other_day(
    tmp_path: Path, frail: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D02: a rule of this instance asks no store, whose time is the truth all the same."""
    clock = FakeClock(tmp_path / "shift")
    clock.shift(HOURS)
    sidecar = start_sidecar(frail.url, env=clock.env)
    sidecar.wait_store("Up")
    day = {"algorithm": "FixedWindow", "requests": 10, "calendar": "Day", "timeZone": "UTC"}
    sidecar.publish(document(policy(rule(limit=day, scope="Instance"))))
    async with Envoy.beside(sidecar.socket) as envoy:
        told = (await envoy.key("k")).headers["ratelimit"]
    with frail.client() as client:
        now_s, _ = client.time()
    left_s = int(told.rpartition("t=")[2])
    apart_s = (left_s - (DAY_S - now_s % DAY_S)) % DAY_S
    assert min(apart_s, DAY_S - apart_s) < 600, f"{told}: the day of the store ends in {DAY_S - now_s % DAY_S} s"


def applied_at_h(sidecar: Sidecar) -> float:
    """Give it the same rules anew and read from its status when, by its own clock, it got them."""
    sidecar.publish(rules())
    return float(sidecar.ruleset()["appliedAtMs"]) / 3_600_000


@pytest.mark.requirement("R02", "R45")
async def test_a_disk_without_room_for_new_rules(
    tmp_path: Path, frail: Store, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """Half a document is never applied, the last good rules go on, and the next whole ones come into force."""
    disk = tmp_path / "limiter-0-rules"
    sidecar = start_sidecar(frail.url, within=private_mounts(f"mount -t tmpfs -o size=64k tmpfs {disk}"))
    async with running(sidecar) as traffic:
        filler = sidecar.mount.directory / "filler"
        filler.write_bytes(bytes(disk_left(filler.parent)))
        during = await traffic.begin("during")
        with pytest.raises(OSError, match="No space left"):
            await asyncio.to_thread(sidecar.publish, rules())
        half = max(sidecar.mount.directory.glob("..[0-9]*"), key=lambda path: path.stat().st_mtime_ns)
        (sidecar.mount.directory / "..data").unlink()
        (sidecar.mount.directory / "..data").symlink_to(half.name)
        await asyncio.to_thread(eventually, lambda: sidecar.ruleset()["rejected"], 10, what="the half one is refused")
        await traffic.limited()
        after = await traffic.begin("after")
        filler.unlink()
        await asyncio.to_thread(sidecar.publish, rules())
        await traffic.limited()
    judge_recovery(during)
    judge_recovery(after)
    await judge(traffic)


def disk_left(directory: Path) -> int:
    """Bytes that can still be written there."""
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize


@pytest.mark.requirement("R45")
async def test_a_full_disk_for_the_kept_rules_costs_nothing_but_the_copy(
    tmp_path: Path, frail: Store, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """The rules that cannot be kept are in force all the same, and what is kept next is whole."""
    disk = tmp_path / "state"
    disk.mkdir()
    full = f"mount -t tmpfs -o size=4k tmpfs {disk}; head -c 4096 /dev/zero > {disk}/filler"
    sidecar = start_sidecar(frail.url, flags=("--state-dir", str(disk)), within=private_mounts(full))
    async with running(sidecar) as traffic:
        await traffic.limited()
        kept = seen_by(sidecar.part, disk) / "edge-rules-0.ruleset"
        assert not kept.exists()
        (kept.parent / "filler").unlink()
        await traffic.begin("after")
        await asyncio.to_thread(sidecar.publish, document := rules())
        await traffic.limited()
        assert kept.read_bytes() == document
    assert "No space left" in sidecar.log()
    await judge(traffic)
