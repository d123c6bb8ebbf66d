# SPDX-License-Identifier: Apache-2.0
"""The break-glass map: rules are switched off with nobody but the API server, or not even that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lab.kubelet import swap
from lab.store import Store
from lab.waiting import eventually
from rig.apiserver import NAMESPACE, ApiServer
from rig.documents import POLICY, document, limit, policy, revision_of, rule
from rig.envoy import Envoy
from rig.sidecar import GLASS, NAME, Sidecar

EVERYTHING = '{"*": "Disabled"}'  # as it is written

WITHIN_S = 20
HOUR_S = 3600


def rules() -> bytes:
    """Two rules that refuse the second request of each subject."""
    return document(policy(rule(limit=limit(1, HOUR_S)), rule("daily", limit=limit(1, HOUR_S), code="daily_quota")))


@pytest_asyncio.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer(NAME, GLASS) as api:
        yield api


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """Where the map is mounted."""
    return tmp_path / "glass"


@pytest.fixture
def start_watching(
    start_sidecar: Callable[..., Sidecar], store: Store, api: ApiServer, mounted: Path, tmp_path: Path
) -> Any:
    """Starts a sidecar with rules that watches `api`, in a thread, because this event loop is the API server's."""
    flags = ("--rules-configmap", f"{NAMESPACE}/{NAME}", "--breakglass-dir", str(mounted))
    env = {"KUBECONFIG": str(api.kubeconfig(tmp_path))}

    async def start() -> Sidecar:
        sidecar = await asyncio.to_thread(start_sidecar, store.url, flags=flags, env=env)
        await asyncio.to_thread(sidecar.publish, rules())
        return sidecar

    return start


async def wait_glass(sidecar: Sidecar, modes: dict[str, str], error: str | None = None) -> dict[str, Any]:
    """Return the report once this map is in force, with this error beside it."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            glass = dict((await asyncio.to_thread(sidecar.status))["breakGlass"])
            told = glass["error"] is None if error is None else error in (glass["error"] or "")
            if glass["modes"] == modes and told:
                return glass


async def wait_watch(sidecar: Sidecar, state: str) -> None:
    """Return once the watch on the map is in this state."""
    await asyncio.to_thread(eventually, lambda: sidecar.status()["breakGlass"]["watch"]["state"] == state, WITHIN_S)


async def refusing(sidecar: Sidecar, key: str) -> list[str]:
    """Which rules refuse the second request of a new subject."""
    async with Envoy.beside(sidecar.socket) as envoy:
        await envoy.key(key)
        answer = await envoy.key(key)
        return [] if answer.allowed else sorted(answer.problem["violated-policies"])


def effective(sidecar: Sidecar) -> list[str]:
    return [entry["effectiveMode"] for entry in sidecar.status()["rules"]]


@pytest.mark.requirement("R42", "R44")
async def test_a_configmap_of_people_switches_rules_off_and_its_end_on_again(
    api: ApiServer, start_watching: Any
) -> None:
    """D58: the operator has no part in it."""
    sidecar = await start_watching()
    assert await refusing(sidecar, "a") == ["burst", "daily"]
    api.write({"modes": f"# INC-42\n{POLICY}/burst: Disabled\n"}, GLASS)
    glass = await wait_glass(sidecar, {f"{POLICY}/burst": "Disabled"})
    assert glass["resourceVersion"] is not None
    assert (await refusing(sidecar, "b"), effective(sidecar)) == (["daily"], ["Disabled", "Enforce"])
    assert sidecar.metric("weir_break_glass_entries") == 1
    api.write({"modes": '{"*": "Shadow"}'}, GLASS)
    await wait_glass(sidecar, {"*": "Shadow"})
    assert (await refusing(sidecar, "c"), effective(sidecar)) == ([], ["Shadow", "Shadow"])
    text = rules()
    await asyncio.to_thread(sidecar.publish, text)
    assert (await refusing(sidecar, "d"), sidecar.ruleset()["revision"]) == ([], revision_of(text)), "new rules too"
    api.delete(GLASS)
    await wait_glass(sidecar, {})
    assert (await refusing(sidecar, "e"), sidecar.metric("weir_break_glass_entries")) == (["burst", "daily"], 0)
    assert "the glass is broken" in sidecar.log()
    assert "break glass ended" in sidecar.log()
    assert api.forbidden == []


@pytest.mark.requirement("R42", "R45")
@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"modes": f"{POLICY}: Disabled\nother/policy: Off\n"}, "must be Shadow or Disabled"),
        ({"modes": "team: Disabled\n"}, "namespace/policy"),
        ({"modes": "*: Disabled\n"}, "line"),
        ({"modes": f"{POLICY}: Disabled\n{POLICY}: Shadow\n"}, "duplicate"),
        ({"mode": f"{POLICY}: Disabled\n"}, "no key modes"),
    ],
    ids=["mode", "name", "unquoted star", "twice", "key"],
)
async def test_a_map_that_cannot_be_read_keeps_the_last_good_one_and_says_so(
    api: ApiServer, start_watching: Any, data: dict[str, str], says: str
) -> None:
    sidecar = await start_watching()
    good = {f"{POLICY}/daily": "Disabled"}
    api.write({"modes": f"{POLICY}/daily: Disabled"}, GLASS)
    await wait_glass(sidecar, good)
    api.write(data, GLASS)
    await wait_glass(sidecar, good, says)
    assert (await refusing(sidecar, "a"), sidecar.metric("weir_break_glass_unreadable")) == (["burst"], 1)
    api.write({"modes": ""}, GLASS)
    await wait_glass(sidecar, {})
    assert (await refusing(sidecar, "b"), sidecar.metric("weir_break_glass_unreadable")) == (["burst", "daily"], 0)


@pytest.mark.requirement("R42", "R44")
async def test_an_absent_api_server_keeps_what_is_known_and_a_mounted_copy_speaks_for_it(
    api: ApiServer, start_watching: Any, mounted: Path
) -> None:
    """D58: while the watch stands the copy has no say, and what it says late never."""
    sidecar = await start_watching()
    await wait_watch(sidecar, "Connected")
    api.write({"modes": EVERYTHING}, GLASS)
    await wait_glass(sidecar, {"*": "Disabled"})
    api.write({"modes": f"{POLICY}/burst: Disabled"}, GLASS)
    await wait_glass(sidecar, {f"{POLICY}/burst": "Disabled"})
    swap(mounted, {"modes": EVERYTHING.encode()})
    await api.stop()
    await wait_watch(sidecar, "Disconnected")
    await asyncio.sleep(1)  # several looks at the copy
    assert await refusing(sidecar, "a") == ["daily"]
    swap(mounted, {"modes": b'{"*": "Shadow"}'})
    await wait_glass(sidecar, {"*": "Shadow"})
    assert await refusing(sidecar, "b") == []
    await api.start()
    await wait_glass(sidecar, {f"{POLICY}/burst": "Disabled"})


@pytest.mark.requirement("R42", "R44")
async def test_what_the_copy_said_before_the_watch_was_known_to_be_down_is_not_forgotten(
    api: ApiServer, start_watching: Any, mounted: Path
) -> None:
    sidecar = await start_watching()
    await wait_watch(sidecar, "Connected")
    swap(mounted, {"modes": EVERYTHING.encode()})
    await asyncio.sleep(1)  # it is looked at while nobody believes it
    assert await refusing(sidecar, "a") == ["burst", "daily"]
    await api.stop()
    await wait_glass(sidecar, {"*": "Disabled"})
    assert await refusing(sidecar, "b") == []


@pytest.mark.requirement("R42", "R44")
async def test_a_limiter_that_starts_without_an_api_server_goes_by_the_mounted_copy(
    api: ApiServer, start_watching: Any, mounted: Path
) -> None:
    await api.stop()
    swap(mounted, {"modes": f"{POLICY}: Disabled".encode()})
    sidecar = await start_watching()
    await wait_glass(sidecar, {POLICY: "Disabled"})
    assert await refusing(sidecar, "a") == []
    swap(mounted, {})
    await wait_glass(sidecar, {})
    assert await refusing(sidecar, "b") == ["burst", "daily"]
