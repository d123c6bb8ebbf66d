# SPDX-License-Identifier: Apache-2.0
"""Rollouts through whole turns: what the limiters are told, what the status keeps, and what a restart changes."""

from __future__ import annotations

from typing import Any

import pytest

from weir_operator.domain.evidence import RuleCounts, RuleKey
from weir_operator.domain.ruleset import Rule
from weir_operator.reconcile.ports import Waiting

KEY = [{"header": "x-api-key"}]
TIGHT = [{"name": "burst", "key": KEY, "limit": {"requests": 1, "period": "1s"}}]
WIDE = [{"name": "burst", "key": KEY, "limit": {"requests": 9, "period": "1s"}}]
MANUAL = {"onChange": "Shadow"}
AUTOMATIC = {
    "promote": "Automatic",
    "after": "60s",
    "minRequests": 100,
    "maxWouldReject": "1%",
    "stages": [{"percent": 10, "hold": "30s"}],
    "rollbackWhen": {"rejected": "5%", "for": "10s"},
}


def entries(world: Any) -> list[tuple[int, str, str | None]]:
    """Each entry of the rule: its limit, the mode outside and the mode inside its stage."""
    ruleset = world.live().ruleset
    return [
        (rule.limit.requests, str(rule.mode), rule.stage and f"{rule.stage.mode} {rule.stage.percent}")
        for policy in ruleset.policies
        for rule in policy.rules
    ]


def newest(world: Any) -> Rule:
    return world.live().ruleset.policies[0].rules[-1]  # type: ignore[no-any-return]


def count(world: Any, **counts: int) -> None:
    """What the limiters say of the newest version, from their start on."""
    rule = newest(world)
    key = RuleKey("team/api", "burst", None if rule.slot is None else str(rule.slot), rule.version or "")
    since_ms = int(world.clock.time.timestamp() * 1000)
    since_ms = world.limiters.counts.get(key, RuleCounts(since_ms)).since_ms
    world.limiters.counts = {key: RuleCounts(since_ms, **counts)}


def approve(world: Any, generation: int, at: str = "2026-12-01T12:00:00Z") -> None:
    world.cluster.patch_status("api", approvals={"burst": {"generation": generation, "by": "alice", "at": at}})


def rule_status(world: Any) -> dict[str, Any]:
    (rule,) = world.status()["rules"]
    return rule  # type: ignore[no-any-return]


async def pass_time(world: Any, seconds: int) -> None:
    for _ in range(seconds):
        world.clock.forward(1)
        await world.turn.take(news=False)
    await world.settle()


@pytest.mark.requirement("R43")
async def test_a_policy_without_a_rollout_says_since_when_it_is_enforced(world: Any) -> None:
    """D45."""
    world.policy()
    await world.settle()
    assert entries(world) == [(1, "Enforce", None)]
    said = rule_status(world)
    assert (said["stage"], said["effectiveMode"]) == ("Enforced", "Enforce")
    assert said["why"] == "enforced for everybody since generation 1"
    assert "rule" not in said["active"]


@pytest.mark.requirement("R43", "R40")
@pytest.mark.parametrize("restarts", [False, True], ids=["one-process", "a-new-process-each-time"])
async def test_a_changed_limit_waits_for_a_person_beside_the_enforced_one(world: Any, restarts: bool) -> None:
    """D45, D53: also when the rollout comes with the very edit that changes the limit."""

    async def settle() -> None:
        if restarts:
            world.start_operator()
        await world.settle()

    world.policy(rules=WIDE)
    await settle()
    world.policy(rules=TIGHT, rollout=MANUAL)
    await settle()
    assert entries(world) == [(9, "Enforce", None), (1, "Shadow", None)]
    assert rule_status(world)["stage"] == "Shadow"
    await settle()
    approve(world, 1)
    await settle()
    assert entries(world) == [(9, "Enforce", None), (1, "Shadow", None)]
    approve(world, 2)
    await settle()
    assert entries(world) == [(1, "Enforce", None)]
    await settle()
    assert newest(world).slot == "b"
    assert rule_status(world)["stage"] == "Enforced"


@pytest.mark.requirement("R43")
async def test_evidence_promotes_through_a_stage_and_harm_rolls_back(world: Any) -> None:
    """D45: with the numbers of one limiter, over time."""
    world.policy(rules=WIDE)
    await world.settle()
    world.policy(rules=TIGHT, rollout=AUTOMATIC)
    await world.settle()
    count(world, requests=1000, would_reject=5)
    await pass_time(world, 59)
    assert entries(world) == [(9, "Enforce", None), (1, "Shadow", None)]
    assert rule_status(world)["evidence"]["share"] == "0.5%"
    await pass_time(world, 2)
    assert entries(world) == [(9, "Enforce", "Shadow 10"), (1, "Shadow", "Enforce 10")]
    assert rule_status(world)["stage"] == "1/2"
    count(world, requests=2000, would_reject=5, enforced=100, rejected=50)
    await pass_time(world, 10)
    assert entries(world) == [(9, "Enforce", None), (1, "Shadow", None)]
    said = rule_status(world)
    assert (said["stage"], said["candidate"]["rolledBack"]["rejected"]) == ("RolledBack", "50%")
    await pass_time(world, 200)
    assert rule_status(world)["stage"] == "RolledBack"


@pytest.mark.requirement("R43")
async def test_a_deleted_status_falls_back_to_shadow(world: Any) -> None:
    """D45: whatever the live rules say."""
    world.policy(rules=WIDE, rollout=MANUAL)
    await world.settle()
    approve(world, 1)
    await world.settle()
    assert entries(world) == [(9, "Enforce", None)]
    world.cluster.drop_status("api")
    await world.settle()
    assert entries(world) == [(9, "Shadow", None)]


@pytest.mark.requirement("R43")
async def test_a_status_that_cannot_be_written_loses_no_decision(world: Any) -> None:
    """D45: what was decided holds until the status has said it."""
    world.policy(rules=WIDE, rollout=MANUAL)
    await world.settle()
    approve(world, 1)
    apply_status, world.cluster.apply_status = world.cluster.apply_status, _away
    await world.list()
    await world.turn.take(news=True)
    assert entries(world) == [(9, "Enforce", None)]
    await world.turn.take(news=True)
    assert entries(world) == [(9, "Enforce", None)]
    world.cluster.apply_status = apply_status
    await world.settle()
    assert rule_status(world)["stage"] == "Enforced"


async def _away(*_: object) -> None:
    raise Waiting("away", 1.0)


@pytest.mark.requirement("R43")
async def test_a_refused_edit_keeps_the_rollout_as_it_is(world: Any) -> None:
    """D45, D50: in the rules and in the status, also for a new process."""
    world.policy(rules=WIDE)
    await world.settle()
    world.policy(rules=TIGHT, rollout=MANUAL)
    await world.settle()
    world.override(permanent=True)
    await world.settle()
    before, said = entries(world), rule_status(world)
    world.policy(rules=[{"name": "burst", "limit": {"requests": 0, "period": "1s"}}], rollout=MANUAL)
    await world.settle()
    world.start_operator()
    await world.settle()
    assert entries(world) == before
    assert rule_status(world) == said
    (override,) = world.live().ruleset.overrides
    assert override.rules == ("burst",)


@pytest.mark.requirement("R43", "R42")
async def test_an_idle_cluster_is_not_written_to_and_counts_show_rarely(world: Any) -> None:
    """D51."""
    world.policy(rules=WIDE, rollout=AUTOMATIC)
    await world.settle()
    writes = world.cluster.writes
    await pass_time(world, 40)
    assert world.cluster.writes == writes
    count(world, requests=1000, would_reject=900)
    await pass_time(world, 20)
    writes = world.cluster.writes
    count(world, requests=1009, would_reject=909)  # nobody would see the difference
    await pass_time(world, 20)
    assert world.cluster.writes == writes


@pytest.mark.requirement("R43")
async def test_evidence_goes_on_after_a_restart_of_the_operator(world: Any) -> None:
    """D45: what the old process had written, and what the new one hears."""
    world.policy(rules=WIDE, rollout=AUTOMATIC)
    await world.settle()
    count(world, requests=1000, would_reject=900)
    await pass_time(world, 20)
    world.clock.forward(60)
    world.start_operator()
    await world.settle()
    count(world, requests=3000, would_reject=900)
    await pass_time(world, 20)
    assert rule_status(world)["evidence"]["requests"] == 3000
