# SPDX-License-Identifier: Apache-2.0
"""Kill switches through whole turns: what reaches the limiters, what is told, what is tidied up, what is left alone."""

from typing import Any

import pytest

from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import Switch
from weir_operator.reconcile.ports import POLICIES, Stalled

pytestmark = pytest.mark.requirement("R42")

NOON = 1_796_126_400  # the world's clock: 2026-12-01T12:00:00Z
OFF = {"mode": "Disabled", "reason": "INC-42", "by": "alice", "expiresAt": "2026-12-01T14:00:00Z"}


def switches(world: Any) -> list[tuple[Switch, ...] | None]:
    ruleset = world.live().ruleset
    assert ruleset is not None
    return [rule.switches for policy in ruleset.policies for rule in policy.rules]


def told(world: Any) -> list[tuple[str, str]]:
    return [(said.reason, said.note) for said in world.events.announced]


def counted(world: Any, change: str) -> float | None:
    return world.metrics.registry.get_sample_value(
        "weir_operator_interventions_total", {"gateway": "edge", "change": change}
    )


async def killed(world: Any, **entries: Any) -> None:
    """A policy that somebody switches off after it was settled."""
    world.policy()
    await world.settle()
    world.cluster.patch_status("api", killSwitches=entries)
    assert await world.list() >= {"edge"}, "a switch is news though no generation has changed"
    await world.settle()


async def test_a_switch_reaches_the_limiters_with_its_end_and_the_status_says_what_was_judged(world: Any) -> None:
    await killed(world, burst=OFF)
    assert switches(world) == [(Switch(Mode.DISABLED, NOON + 7200),)]
    assert world.conditions()["Programmed"] == ("True", "Programmed")
    assert len(world.status()["observedInterventions"]) == 12
    assert world.status()["killSwitches"] == {"burst": OFF}


async def test_our_own_writes_of_status_are_no_news_and_nothing_is_written_twice(world: Any) -> None:
    """D49."""
    await killed(world, burst=OFF)
    assert await world.list() == set()
    writes = world.cluster.writes
    await world.settle()
    assert world.cluster.writes == writes


async def test_the_end_of_a_switch_is_a_turn_of_its_own(world: Any) -> None:
    await killed(world, burst=OFF)
    assert await world.turn.take(news=False) == 2.0
    world.clock.forward(7199)
    assert await world.turn.take(news=False) == 1.0
    world.clock.forward(1)
    await world.turn.take(news=False)
    assert switches(world) == [None]
    assert [reason for reason, _ in told(world)] == ["KillSwitchSet", "KillSwitchExpired"]
    assert world.status()["killSwitches"] == {"burst": OFF}, "it stays listed"


async def test_an_edit_of_the_spec_does_not_end_a_switch(world: Any) -> None:
    await killed(world, burst=OFF)
    world.policy(rules=[{"name": "burst", "limit": {"requests": 9, "period": "1s"}}])
    await world.settle()
    assert switches(world) == [(Switch(Mode.DISABLED, NOON + 7200),)]


async def test_a_broken_edit_keeps_the_last_version_and_takes_its_switches_from_the_status(world: Any) -> None:
    """D44: the kept version is read back from what was published, which may hold switches that have been ended."""
    await killed(world, burst=OFF)
    world.policy(rules=[{"name": "burst", "limit": {"requests": 9}}])
    await world.settle()
    assert switches(world) == [(Switch(Mode.DISABLED, NOON + 7200),)]
    world.cluster.patch_status("api", killSwitches={"burst": None})
    await world.settle()
    assert switches(world) == [None]


async def test_a_new_object_of_the_same_name_has_no_switches(world: Any) -> None:
    await killed(world, burst=OFF)
    world.cluster.remove(POLICIES, "team", "api")
    world.policy()
    await world.settle()
    assert switches(world) == [None]
    assert "observedInterventions" not in world.status()


async def test_a_restarted_operator_keeps_a_switch_and_tells_nothing_again(world: Any) -> None:
    """D47: and writes nothing."""
    await killed(world, burst=OFF)
    writes = world.cluster.writes
    world.start_operator()
    await world.settle()
    assert switches(world) == [(Switch(Mode.DISABLED, NOON + 7200),)]
    assert (world.cluster.writes, told(world)) == (writes, [])


async def test_entries_that_mean_nothing_are_told_and_do_nothing(world: Any) -> None:
    await killed(world, brust=OFF, burst={"mode": "Sideways"})
    assert switches(world) == [None]
    conditions = {c["type"]: c for c in world.status()["conditions"]}
    assert conditions["Accepted"]["status"] == "True"
    message = conditions["Accepted"]["message"]
    assert 'status.killSwitches["brust"] is ignored: there is no such rule, only burst' in message
    assert 'status.killSwitches["burst"] is ignored: mode: ' in message
    assert told(world) == [], "nothing was switched off"


async def test_who_why_and_until_when_is_told_when_it_is_set_changed_and_ended(world: Any) -> None:
    await killed(world, burst=OFF)
    world.cluster.patch_status("api", killSwitches={"burst": {"mode": "Shadow", "by": "bob"}})
    await world.settle()
    world.cluster.patch_status("api", killSwitches={"burst": None})
    await world.settle()
    assert told(world) == [
        ("KillSwitchSet", "rule burst switched to Disabled until 2026-12-01T14:00:00Z by alice: INC-42"),
        ("KillSwitchSet", "rule burst switched to Shadow until it is removed by bob: no reason given"),
        ("KillSwitchEnded", "the kill switch on rule burst was removed (Shadow, set by bob: no reason given)"),
    ]
    assert len({said.key for said in world.events.announced}) == 3
    assert (counted(world, "KillSwitchSet"), counted(world, "KillSwitchEnded")) == (2.0, 1.0)


async def test_the_metric_names_who_and_why_while_a_switch_is_live(world: Any) -> None:
    labels = {"gateway": "edge", "policy": "team/api", "rule": "burst", "mode": "Disabled", "by": "alice"}
    labels["reason"] = "INC-42"
    await killed(world, burst=OFF)
    assert world.metrics.registry.get_sample_value("weir_operator_kill_switch", labels) == 1.0
    world.cluster.patch_status("api", killSwitches={"burst": None})
    await world.settle()
    assert world.metrics.registry.get_sample_value("weir_operator_kill_switch", labels) is None


async def test_an_approval_is_told(world: Any) -> None:
    world.policy()
    await world.settle()
    world.cluster.patch_status("api", approvals={"burst": {"generation": 1, "by": "bob", "reason": "looks fine"}})
    await world.settle()
    assert told(world) == [("Approved", "generation 1 of rule burst was approved by bob: looks fine")]


async def test_a_switch_is_removed_a_day_after_its_end_and_one_without_end_never(world: Any) -> None:
    await killed(world, burst=OFF, **{"*": {"mode": "Shadow"}})
    world.clock.forward(7200 + 24 * 3600)
    await world.settle()
    assert set(world.status()["killSwitches"]) == {"burst", "*"}
    world.clock.forward(1)
    await world.settle()
    assert set(world.status()["killSwitches"]) == {"*"}


async def test_a_refused_removal_is_tried_again_an_hour_later_and_stops_nothing(world: Any) -> None:
    await killed(world, burst=OFF)
    world.clock.forward(7200 + 24 * 3600 + 1)
    await world.settle()
    assert "killSwitches" not in world.status() or not world.status()["killSwitches"]
    world.cluster.patch_status("api", killSwitches={"burst": OFF})
    refused = world.cluster.end_switches
    tries = []

    async def refuse(target: Any, names: Any) -> Any:
        tries.append(names)
        raise Stalled("forbidden")

    world.cluster.end_switches = refuse  # type: ignore[method-assign]
    world.clock.forward(3600)
    await world.settle()
    await world.settle()
    assert tries == [["burst"]]
    world.cluster.end_switches = refused  # type: ignore[method-assign]
    world.clock.forward(3600)
    await world.settle()
    assert world.status()["killSwitches"] == {}
