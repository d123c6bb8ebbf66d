# SPDX-License-Identifier: Apache-2.0
"""Which mode holds for whom and when: stages, switches that end by themselves, two versions beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, limit, policy, rule, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar

HOUR_S = 3600
LAG_MS = 5_000  # how far a limiter's idea of the store's clock may be off when the machine is busy
SUBJECTS = [f"k{number}" for number in range(40)]


def stage(mode: str, *plans: str, percent: int = 0) -> dict[str, Any]:
    return {"mode": mode, "plans": list(plans), "percent": percent}


def plans(requests: int) -> dict[str, Any]:
    return {"from": {"header": "x-plan"}, "limits": {"internal": limit(requests, HOUR_S)}}


def now_ms(store: Store) -> int:
    """The time by which limiters judge."""
    with store.client() as client:
        seconds, microseconds = client.time()
    return int(seconds * 1000 + microseconds // 1000)


async def passed(envoy: Envoy, key: str, calls: int, **headers: str) -> int:
    """How many of so many requests passed."""
    return sum([(await envoy.key(key, **headers)).allowed for _ in range(calls)])


def evidence(sidecar: Sidecar, slot: str | None = None) -> dict[str, Any]:
    return next(entry for entry in sidecar.status()["rules"] if entry["slot"] == slot)


@pytest.mark.requirement("R42")
async def test_a_switch_holds_until_its_second_and_needs_nobody_to_end(
    store: Store, sidecar: Sidecar, envoy: Envoy
) -> None:
    """D57: nothing but the clock ends it, and that is the store's."""
    end_s = now_ms(store) // 1000 + 5
    switches = [{"mode": "Disabled", "notAfter": end_s}, {"mode": "Shadow", "notAfter": 1}]
    sidecar.publish(single(limit=limit(2, HOUR_S), switches=switches))
    assert (sidecar.rule()["mode"], sidecar.rule()["effectiveMode"]) == ("Enforce", "Disabled")
    assert "ratelimit" not in (await envoy.key("k")).headers
    assert sidecar.rule()["requests"] == 0, "a rule that is off counts nothing"
    await asyncio.to_thread(eventually, lambda: sidecar.rule()["effectiveMode"] == "Enforce", 30)
    assert now_ms(store) >= end_s * 1000
    assert await passed(envoy, "k", 5) == 2


@pytest.mark.requirement("R42")
async def test_a_switch_to_shadow_counts_and_lets_pass(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(single(limit=limit(2, HOUR_S), switches=[{"mode": "Shadow"}]))
    assert await passed(envoy, "k", 5) == 5
    found = sidecar.rule()
    assert (found["effectiveMode"], found["requests"], found["wouldReject"], found["rejected"]) == ("Shadow", 5, 3, 0)


@pytest.mark.requirement("R43")
async def test_a_stage_by_plan_enforces_for_that_plan_alone(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(single(mode="Shadow", limit=limit(2, HOUR_S), plans=plans(3), stage=stage("Enforce", "internal")))
    assert await passed(envoy, "a", 5, x_plan="internal") == 3
    assert await passed(envoy, "b", 5, x_plan="other") == 5
    assert await passed(envoy, "c", 5) == 5
    found = sidecar.rule()
    assert found["byPlan"] == {
        "": {"requests": 10, "wouldReject": 6, "rejected": 0},
        "internal": {"requests": 5, "wouldReject": 0, "rejected": 2},
    }
    assert (found["unknownPlan"], found["requests"], found["enforced"]) == (5, 15, 5)


@pytest.mark.requirement("R43")
async def test_a_stage_by_percent_takes_the_same_subjects_on_every_limiter_and_only_grows(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D52: a subject never flips back and forth, whoever decides and however the rule is edited."""
    sidecars = [start_sidecar(store.url), start_sidecar(store.url)]
    taken: list[set[str]] = []
    for percent, members in ((20, {}), (60, {"slot": "b", "version": "0123456789ab"}), (100, {"slot": "b"})):
        text = single(mode="Shadow", limit=limit(1, HOUR_S), stage=stage("Enforce", percent=percent), **members)
        for sidecar in sidecars:
            sidecar.publish(text)
            sidecar.wait_store("Up")
            async with Envoy.beside(sidecar.socket) as envoy:
                refused = {key for key in SUBJECTS if await passed(envoy, key, 2) < 2}
            taken.append(refused)
    first, second, third = taken[0], taken[2], taken[4]
    assert [taken[1], taken[3], taken[5]] == [first, second, third], "both limiters take the same"
    assert first < second < third == set(SUBJECTS)


@pytest.mark.requirement("R43")
async def test_two_versions_beside_each_other_count_apart_and_each_subject_is_held_to_one(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D52: the old limit of 4 is enforced for whom the stage of the new one, 2, has not reached.

    Without the deny cache, which does not ask rules in shadow about what it refuses.
    """
    old = rule(limit=limit(4, HOUR_S), stage=stage("Shadow", percent=50), version="a" * 12)
    new = rule(limit=limit(2, HOUR_S), mode="Shadow", stage=stage("Enforce", percent=50), version="b" * 12, slot="b")
    sidecar = start_sidecar(store.url, flags=("--deny-cache", "0"))
    sidecar.publish(document(policy(old, new)))
    sidecar.wait_store("Up")
    held_to: dict[int, int] = {2: 0, 4: 0}
    async with Envoy.beside(sidecar.socket) as envoy:
        for key in SUBJECTS:
            told = (await envoy.key(key)).headers["ratelimit-policy"]
            count = 1 + await passed(envoy, key, 6)
            held_to[count] += 1
            assert told == f'"burst";q={count};w={HOUR_S}', "the client is told of the one that holds"
    assert all(held_to.values())
    old_found, new_found = evidence(sidecar), evidence(sidecar, "b")
    assert (old_found["version"], new_found["version"]) == ("a" * 12, "b" * 12)
    # What the new one refuses is charged nowhere, so the old one never comes to its limit there.
    assert (old_found["rejected"], old_found["wouldReject"]) == (3 * held_to[4], 0)
    assert (new_found["rejected"], new_found["wouldReject"]) == (5 * held_to[2], 5 * held_to[4])


@pytest.mark.requirement("R43")
async def test_evidence_belongs_to_a_version_and_survives_all_other_edits(sidecar: Sidecar, envoy: Envoy) -> None:
    def publish(version: str, **members: Any) -> None:
        sidecar.publish(document(policy(rule(limit=limit(2, HOUR_S), version=version, **members), generation=9)))

    publish("aaaaaaaaaaaa", mode="Shadow")
    await passed(envoy, "k", 5)
    before = sidecar.rule()
    assert (before["requests"], before["wouldReject"], before["subjects"]) == (5, 3, {"limited": 1})
    (most,) = before["top"]
    assert (most["count"], len(most["subject"])) == (3, 22)
    publish("aaaaaaaaaaaa", mode="Enforce", code="slow_down")
    await passed(envoy, "k", 1)
    after = sidecar.rule()
    assert (after["requests"], after["rejected"], after["sinceMs"]) == (6, 1, before["sinceMs"])
    publish("bbbbbbbbbbbb")
    assert (sidecar.rule()["requests"], sidecar.rule()["top"]) == (0, [])


@pytest.mark.requirement("R46")
async def test_the_most_limited_are_named_unless_their_key_may_be_a_secret(sidecar: Sidecar, envoy: Envoy) -> None:
    """D44: a client's address helps to find it; an API key never leaves the limiter."""
    network = [{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}]
    sidecar.publish(
        document(
            policy(
                rule(limit=limit(1, HOUR_S), key=network, mode="Shadow"),
                rule("secret", limit=limit(1, HOUR_S), mode="Shadow"),
            )
        )
    )
    for address, calls in (("192.0.2.1", 4), ("192.0.2.2", 6)):
        await passed(envoy, "a-secret-key", calls, x_weir_client_ip=address)
    names = [(entry["subject"], entry["count"]) for entry in sidecar.rule()["top"]]
    assert names == [("clientIP=192.0.2.2", 5), ("clientIP=192.0.2.1", 3)]
    assert sidecar.rule("secret")["wouldReject"] == 9
    assert "a-secret-key" not in sidecar.get("/status")[1]


@pytest.mark.requirement("R40")
async def test_calls_and_matches_are_told_with_their_time(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """D56: a gateway that asks nobody, and a policy that nobody's request matches, can be told from quiet ones."""
    assert sidecar.status()["checks"] == {"total": 0, "lastMs": None}
    sidecar.publish(single())
    assert sidecar.rule()["lastRequestMs"] is None
    begun = now_ms(store)
    await envoy.key("k")
    await envoy.get(host="other.example.com")
    checks, last = sidecar.status()["checks"], sidecar.rule()["lastRequestMs"]
    assert checks["total"] == 2
    assert begun - LAG_MS <= last <= checks["lastMs"] <= now_ms(store) + LAG_MS
