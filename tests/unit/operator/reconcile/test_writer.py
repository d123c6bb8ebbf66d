# SPDX-License-Identifier: Apache-2.0
"""Which status is written when: news goes first, everybody has a turn, and wording is no hurry."""

from typing import Any

import pytest

from weir_operator.reconcile.ports import POLICIES
from weir_operator.reconcile.writer import (
    BEFORE_NEWS,
    CONCURRENT_WRITES,
    MAX_REWORDS,
    REWORD_EVERY_S,
    StatusWriter,
    Wanted,
)


def status(message: str, ready: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": ready, "reason": "Ready", "message": message}]}


class Desk:
    """A writer and the objects that it writes."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.writer = StatusWriter(world.cluster, world.store, world.clock, world.metrics)

    def wanted(self, count: int, message: str, ready: str = "True") -> list[Wanted]:
        stored = self.world.cluster.objects
        names = [f"p{number:04}" for number in range(count)]
        return [Wanted(POLICIES, stored[POLICIES, "team", name], status(message, ready)) for name in names]

    def written(self, message: str) -> set[str]:
        objects = [obj for (kind, _, _), obj in self.world.cluster.objects.items() if kind == POLICIES]
        said = {obj["metadata"]["name"]: obj["status"].get("conditions", [{}])[0].get("message") for obj in objects}
        return {name for name, words in said.items() if words == message}


@pytest.fixture
async def desk(world: Any) -> Desk:
    for number in range(300):
        world.policy(f"p{number:04}")
    return Desk(world)


@pytest.mark.requirement("R41")
async def test_a_long_queue_gives_way_to_news_and_is_due_at_once(desk: Desk) -> None:
    again_s = await desk.writer.write(desk.wanted(300, "a"), lambda: True)
    assert BEFORE_NEWS <= len(desk.written("a")) <= BEFORE_NEWS + CONCURRENT_WRITES
    assert again_s == 0.0
    assert await desk.writer.write(desk.wanted(300, "a")) is None
    assert len(desk.written("a")) == 300


async def test_whoever_waits_longest_comes_first(desk: Desk) -> None:
    """A namespace that changes all the time must not keep the others from their statuses."""
    busy = BEFORE_NEWS
    for round_number in range(5):
        desk.world.clock.forward(1)
        wanted = [*desk.wanted(busy, f"busy {round_number}", ready=str(round_number)), *desk.wanted(300, "a")[busy:]]
        await desk.writer.write(wanted, lambda: True)
    assert len(desk.written("a")) == 300 - busy


async def test_rewording_many_objects_takes_its_time_and_transitions_do_not(desk: Desk) -> None:
    await desk.writer.write(desk.wanted(300, "a"))
    desk.world.clock.forward(REWORD_EVERY_S)
    again_s = await desk.writer.write(desk.wanted(300, "b"))
    assert len(desk.written("b")) == MAX_REWORDS
    assert again_s is not None
    assert 0 < again_s <= REWORD_EVERY_S
    await desk.writer.write(desk.wanted(300, "c", ready="False"))
    assert len(desk.written("c")) == 300
