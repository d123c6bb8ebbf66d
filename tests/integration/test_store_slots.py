# SPDX-License-Identifier: Apache-2.0
"""Requests whose rules count in different slots of a cluster: all or nothing, by giving back what was charged."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pytest

from lab.store import Store, StoreCluster
from lab.waiting import eventually
from rig.documents import document, leaky, limit, policy, rule
from rig.envoy import Answer, Envoy
from rig.load import load
from rig.sidecar import Sidecar

DAY = 86_400
_RECORD = struct.Struct(">8sBdddd")  # id, kind, at, debt, p, l
_TOKEN_BUCKET, _LEAKY_BUCKET = 1, 2


def two_subjects(*, keys: int = 5, tenants: int = 2, **members: Any) -> bytes:
    """A rule for each x-api-key and one for each x-tenant, in tokens a day; `members` are those of both."""
    return document(
        policy(
            rule("keys", limit=limit(keys, period_s=DAY), **members),
            rule("tenants", key=[{"header": "x-tenant"}], limit=limit(tenants, period_s=DAY), **members),
        )
    )


def used(cluster: StoreCluster) -> list[int]:
    """The tokens that each bucket of the cluster is owed, in ascending order; those of a day drain slowly."""
    values = [node.run("GET", key) for node in cluster.primaries() for key in node.run("KEYS", "weir:*")]
    records = [_RECORD.unpack(value[at : at + _RECORD.size]) for value in values for at in range(0, len(value), 41)]
    assert all(kind in {_TOKEN_BUCKET, _LEAKY_BUCKET} for _, kind, *_ in records)
    return sorted(round(debt / p) for _, _, _, debt, p, _ in records)


def refunds(sidecars: list[Sidecar], outcome: str = "done", *, reason: str = "partial") -> float:
    return sum(sidecar.metric("weir_refunds_total", reason=reason, outcome=outcome) for sidecar in sidecars)


async def ask(envoy: Envoy, key: str, tenant: str) -> Answer:
    return await envoy.key(key, x_tenant=tenant)


@pytest.mark.requirement("R11")
async def test_a_refusal_in_one_slot_charges_nothing_in_another(cluster: StoreCluster, pair: list[Sidecar]) -> None:
    """D33: proven by what the store holds afterwards."""
    sidecar = pair[0]
    sidecar.publish(two_subjects())
    async with Envoy.beside(sidecar.socket) as envoy:
        answers = [await ask(envoy, "k", "t") for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429]
        assert answers[3].problem["violated-policies"] == ["tenants"]
        await asyncio.to_thread(eventually, lambda: refunds([sidecar]) == 2, 10)
        assert used(cluster) == [2, 2]
        answers = [await ask(envoy, "k", "another") for _ in range(2)]
        assert [answer.status for answer in answers] == [200, 200]
        assert [(await ask(envoy, "k", f"tenant-{number}")).status for number in range(2)] == [200, 429]


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("tenants", [2, 9], ids=["refused", "passing"])
async def test_a_request_that_goes_away_while_two_slots_are_asked_charges_nothing(
    cluster: StoreCluster, pair: list[Sidecar], tenants: int
) -> None:
    """Whether its other slot would have refused it or not."""
    sidecar = pair[0]
    rules = [
        rule("keys", limit=limit(5, period_s=DAY)),
        rule("tenants", key=[{"header": "x-tenant"}], limit=limit(tenants, period_s=DAY)),
        rule("own", scope="Instance", limit=limit(5, period_s=DAY)),
    ]
    sidecar.publish(document(policy(*rules)))
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await ask(envoy, "k", "t")).status for _ in range(2)] == [200, 200]
        cluster.pause()
        gone = [asyncio.ensure_future(ask(envoy, "k", "t")) for _ in range(3)]
        await asyncio.sleep(0)
        refused = await ask(envoy, "k", "t")
        assert refused.problem["rule"] == "own", "the three before it were charged in memory and wait for the store"
        for task in gone:
            task.cancel()
        # Memory's charge comes back at once.
        await asyncio.to_thread(eventually, lambda: refunds([sidecar], reason="client_gone") == 3, 10)
        cluster.resume()
        await asyncio.to_thread(eventually, lambda: refunds([sidecar], reason="client_gone") == 6, 10)
        assert used(cluster) == [2, 2]
        assert [(await ask(envoy, "k", f"tenant-{number}")).status for number in range(4)] == [200] * 3 + [429]


@pytest.mark.requirement("R11", "R12")
async def test_a_shadow_rule_in_another_slot_neither_refuses_nor_keeps_the_charge_of_a_refusal(
    cluster: StoreCluster, pair: list[Sidecar]
) -> None:
    sidecar = pair[0]
    sidecar.publish(
        document(
            policy(
                rule("keys", limit=limit(5, period_s=DAY), mode="Shadow"),
                rule("tenants", key=[{"header": "x-tenant"}], limit=limit(2, period_s=DAY)),
            )
        )
    )
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await ask(envoy, "k", "t")).status for _ in range(4)] == [200, 200, 429, 429]
        await asyncio.to_thread(eventually, lambda: refunds([sidecar]) == 2, 10)
        assert used(cluster) == [2, 2]
        statuses = [(await ask(envoy, "k", f"tenant-{number}")).status for number in range(5)]
        assert statuses == [200] * 5, "beyond its limit a shadow rule refuses nobody"
    assert sidecar.rule("keys")["wouldReject"] == 2


@pytest.mark.requirement("R07", "R11")
async def test_contention_over_two_slots_admits_no_request_above_either_limit(
    cluster: StoreCluster, pair: list[Sidecar]
) -> None:
    """Keys share tenants crosswise, over two sidecars: some may be refused too early, and nobody passes too much."""
    for sidecar in pair:
        sidecar.publish(two_subjects(keys=40, tenants=60))
    envoys = [Envoy.beside(sidecar.socket) for sidecar in pair]
    pairs = [(f"k{number % 4}", f"t{number % 3}") for number in range(960)]
    passed: dict[str, int] = {}
    for at in range(0, len(pairs), 96):
        group = pairs[at : at + 96]
        answers = await asyncio.gather(*(ask(envoy, *pair) for pair, envoy in zip(group, cycle(envoys), strict=False)))
        assert all("x-ratelimit-mode" not in answer.headers for answer in answers)
        for pair_of, answer in zip(group, answers, strict=True):
            for subject in pair_of:
                passed[subject] = passed.get(subject, 0) + answer.allowed
    keys = [passed[f"k{number}"] for number in range(4)]
    tenants = [passed[f"t{number}"] for number in range(3)]
    assert max(keys) <= 40
    assert max(tenants) <= 60
    # A charge comes back without what has drained since, so the last token may take some seconds longer.
    assert min(keys) >= 39, "what was given back was there for the next"
    due = refunds(pair)
    assert due > 0
    await asyncio.to_thread(eventually, lambda: used(cluster) == sorted(keys + tenants), 10)
    assert refunds(pair, "failed") + refunds(pair, "dropped") == 0
    for envoy in envoys:
        await envoy.channel.close()


@pytest.mark.requirement("R10")
@pytest.mark.parametrize("batch", [1, 10])
async def test_a_request_with_two_keys_in_a_slot_that_moves_is_decided_throughout(
    cluster: StoreCluster, pair: list[Sidecar], batch: int
) -> None:
    """TRYAGAIN: one key is here and the other there, or neither exists yet, so no node may decide both together."""
    text = document(
        policy(rule("few", limit=limit(1500, period_s=DAY), onStoreFailure="Closed"), id="a/few"),
        policy(rule("many", limit=limit(10**6, period_s=DAY), onStoreFailure="Closed"), id="b/many"),
    )
    for sidecar in pair:
        sidecar.publish(text)
    async with load(pair, "k") as counts:
        await counts.decisions(20)
        ours = [key for node in cluster.primaries() for key in node.run("KEYS", "weir:*")]
        (slot,) = {int(cluster.nodes[0].run("CLUSTER KEYSLOT", key)) for key in ours}
        home = cluster.primary_of(slot)
        away = next(node for node in cluster.primaries() if node is not home)
        for target in (away, home):
            for _step in cluster.moving_slot(slot, target, batch=batch):
                await counts.decisions(100)
        await counts.until_spent()
    assert counts.admitted == 1500
    assert counts.undecided == 0
    for sidecar in pair:
        assert sidecar.metric("weir_store_failures_total", reason="migrating") == 0


@pytest.mark.requirement("R11")
async def test_a_charge_of_two_keys_in_a_slot_that_moves_is_given_back(
    cluster: StoreCluster, pair: list[Sidecar]
) -> None:
    """TRYAGAIN for a refund: one key is here and the other there."""
    sidecar = pair[0]
    even = rule("even", limit=leaky(1, 600, queue=9, max_delay_s=9000))
    sidecar.publish(
        document(policy(even, id="a/even"), policy(rule("many", limit=limit(9, period_s=DAY)), id="b/many"))
    )
    async with Envoy.beside(sidecar.socket, within_s=10_000) as envoy:
        assert (await envoy.key("k")).allowed
        ours = [key for node in cluster.primaries() for key in node.run("KEYS", "weir:*")]
        (slot,) = {int(cluster.nodes[0].run("CLUSTER KEYSLOT", key)) for key in ours}
        home = cluster.primary_of(slot)
        away = next(node for node in cluster.primaries() if node is not home)
        held = asyncio.ensure_future(envoy.key("k"))
        await asyncio.to_thread(eventually, lambda: sidecar.metric("weir_held_requests") == 1, 10)
        steps = cluster.moving_slot(slot, away, batch=1)
        assert [next(steps), next(steps)] == ["opened", "moved"]
        held.cancel()
        await asyncio.to_thread(eventually, lambda: refunds([sidecar], reason="client_gone") == 1, 10)
        assert list(steps)[-1] == "closed"
        assert used(cluster) == [1, 1], "the one that passed is all that both keys know of"


@pytest.fixture
def half_dead(cluster: StoreCluster) -> Iterator[Callable[[Store], None]]:
    """Ends a primary and its replica, and lets the others serve on."""
    for node in cluster.nodes:
        node.run("CONFIG SET", "cluster-require-full-coverage", "no")

    def end(primary: Store) -> None:
        cluster.replica_of(primary).kill()
        primary.kill()

    yield end
    cluster.restart()  # a restarted node has its own configuration again
    for node in cluster.nodes:
        node.run("CONFIG SET", "cluster-require-full-coverage", "yes")


@pytest.mark.requirement("R22", "R24")
@pytest.mark.parametrize("mode", ["Open", "Closed"])
async def test_a_group_whose_node_is_away_follows_its_own_rules_and_the_others_keep_theirs(
    cluster: StoreCluster,
    start_sidecar: Callable[..., Sidecar],
    half_dead: Callable[[Store], None],
    mode: str,
) -> None:
    """The failed group's mode decides for it; a refusal elsewhere still refuses, and a closed one gives back."""
    sidecar = start_sidecar(cluster.url)
    sidecar.wait_store("Up")
    sidecar.publish(two_subjects(keys=3, tenants=1000, onStoreFailure=mode))
    async with Envoy.beside(sidecar.socket) as envoy:
        dead, alive = cluster.primaries()[:2]
        tenant = await subject_on(dead, lambda name: envoy.get(headers={"x-tenant": name}), "t")
        key = await subject_on(alive, envoy.key, "k")  # which costs that key one of its three
        half_dead(dead)
        await asyncio.to_thread(sidecar.wait_store, "Down")
        statuses = [(await ask(envoy, key, tenant)).status for _ in range(3)]
        if mode == "Open":
            assert statuses == [200, 200, 429], "the key's limit holds, whatever became of the tenant's"
            assert refunds([sidecar]) == 0
        else:
            assert statuses == [503, 503, 503]
            await asyncio.to_thread(eventually, lambda: refunds([sidecar]) == 3, 10)
            assert [(await envoy.key(key)).status for _ in range(3)] == [200, 200, 429], "nothing was charged"


async def subject_on(node: Store, ask_with: Callable[[str], Any], prefix: str) -> str:
    """A subject whose bucket is on `node`; asks once for each candidate."""
    for number in range(100):
        before = node.run("DBSIZE")
        await ask_with(f"{prefix}{number}")
        if node.run("DBSIZE") > before:
            return f"{prefix}{number}"
    raise AssertionError("no subject of a hundred is there")
