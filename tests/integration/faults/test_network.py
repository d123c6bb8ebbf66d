# SPDX-License-Identifier: Apache-2.0
"""Faults between the limiter and its store that no proxy can play: packets that vanish, names that nobody knows."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.store import start_store
from lab.waiting import eventually
from rig.judge import judge, judge_recovery, judge_waits
from rig.modes import Outcome
from rig.namespaces import private_mounts, segment
from rig.sidecar import Sidecar
from rig.toxiproxy import Proxy
from rig.traffic import Running

NAME = "store.weir.test"
NAME_SERVER, NOBODY = "127.53.0.1", "127.53.0.2"


@pytest.mark.requirement("R21", "R23", "R24")
async def test_packets_that_vanish_on_the_way_to_the_store(
    tmp_path: Path, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """D31: nobody says no; a connection that stood is half open, and a new one gets no answer to its first packet."""
    with segment(tmp_path) as cable:
        store = start_store(tmp_path, name="far", password="pass", host=cable.far, within=cable.within)
        try:
            sidecar = start_sidecar(store.url)
            async with running(sidecar) as traffic:
                with cable.dropping():
                    during = await traffic.begin("during")
                    await traffic.undecided(each=60)
                    await asyncio.to_thread(eventually, lambda: "no answer" in sidecar.status()["store"]["error"], 20)
                    after = await traffic.begin("after")
                await traffic.limited()
        finally:
            store.stop()
    assert during.count(Outcome.ALLOWED) == 0
    judge_waits(during)
    judge_recovery(after)
    await judge(traffic)


@pytest.fixture
def mute_name_server() -> Iterator[None]:
    """A name server that hears every question and answers none. The test is skipped where port 53 is not allowed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        try:
            server.bind((NAME_SERVER, 53))
        except PermissionError:
            pytest.skip("this machine does not allow to listen on port 53")
        yield


@pytest.mark.usefixtures("mute_name_server")
@pytest.mark.parametrize(
    "server", ["127.53.0.2", NAME_SERVER], ids=["the name server is gone", "the name server is mute"]
)
@pytest.mark.requirement("R21", "R23", "R24")
async def test_a_store_whose_name_is_lost(
    server: str, tmp_path: Path, proxy: Proxy, start_sidecar: Callable[..., Sidecar], running: Running
) -> None:
    """D30: a connection that stands needs no name; once it is lost nobody waits for one."""
    hosts, resolver = tmp_path / "hosts", tmp_path / "resolv.conf"
    hosts.write_text(f"127.0.0.1 {NAME}\n")
    resolver.write_text(f"nameserver {server}\n")
    mounts = private_mounts(f"mount --bind {hosts} /etc/hosts", f"mount --bind {resolver} /etc/resolv.conf")
    sidecar = start_sidecar(proxy.url.replace("127.0.0.1", NAME), within=mounts)
    async with running(sidecar) as traffic:
        hosts.write_text("")
        await traffic.begin("nameless")
        await traffic.limited()
        proxy.cut()
        during = await traffic.begin("during")
        await traffic.undecided(each=60)
        after = await traffic.begin("after")
        hosts.write_text(f"127.0.0.1 {NAME}\n")
        await traffic.limited()
    assert during.count(Outcome.ALLOWED) == 0
    judge_waits(during)
    judge_recovery(after)
    await judge(traffic)
