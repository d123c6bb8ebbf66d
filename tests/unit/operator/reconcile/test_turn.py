# SPDX-License-Identifier: Apache-2.0
"""A gateway's turns converge: from any state of the world to what the objects say, and then they are silent."""

from typing import Any

import pytest

from weir_operator.domain.ruleset import Ruleset, seal
from weir_operator.reconcile import turn
from weir_operator.reconcile.crowd import SILENT_FOR_S
from weir_operator.reconcile.pacing import STALLED_S
from weir_operator.reconcile.ports import CONFIG_MAPS, OVERRIDES, POLICIES, AppliedRuleset, Missing, Stalled, Waiting
from weir_operator.reconcile.turn import POLL_SETTLED_S, POLL_UNSETTLED_S
from weir_operator.reconcile.writer import CONCURRENT_WRITES, MISSING_S
from weir_operator.render.ruleset_config import RulesetTooLarge

BAD_RULES = [{"name": "burst", "limit": {"requests": 0, "period": "1s"}}]
KEYED = [{"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 1, "period": "1s"}}]
CLOSED_MAP = (CONFIG_MAPS, "weir-system", "edge-closed")
EDITOR = {"manager": "kubectl-edit", "fieldsV1": {"f:data": {"f:ruleset.json": {}}}}
RULES_MAP = (CONFIG_MAPS, "weir-system", "edge-rules-0")


@pytest.mark.requirement("R41")
async def test_a_policy_becomes_rules_and_ready(world: Any) -> None:
    world.policy()
    await world.settle()
    assert world.policy_ids() == ["team/api"]
    assert world.conditions()["Ready"] == ("True", "Ready")
    assert world.status()["limiters"] == "1/1"


async def test_an_operator_without_policies_still_publishes_an_empty_ruleset(world: Any) -> None:
    """D45: limiters become ready by a document, also by an empty one."""
    await world.settle()
    assert world.live().ruleset.policies == ()
    names = {name for _, _, name in world.cluster.objects}
    assert names == {"edge-rules-0", "edge-envoy", "edge-closed"}


async def test_nothing_is_written_when_nothing_changed(world: Any) -> None:
    """D47, D49."""
    world.policy()
    world.policy("bad", rules=BAD_RULES)
    world.policy("lost", gateway="none")
    world.override("lost", policyRef={"name": "none"})
    await world.settle()
    before = world.cluster.writes
    for _ in range(5):
        world.clock.forward(600)
        await world.settle()
    assert world.cluster.writes == before


async def test_a_new_process_writes_nothing(world: Any) -> None:
    """D47: also while a policy is refused and keeps its last accepted version."""
    world.policy()
    await world.settle()
    world.policy(rules=BAD_RULES)
    await world.settle()
    before = world.cluster.writes, world.live()
    world.start_operator()
    await world.settle()
    assert (world.cluster.writes, world.live()) == before


async def test_propagating_until_the_limiter_follows(world: Any) -> None:
    """D52."""
    world.limiters.follows = False
    world.policy()
    next_in_s = await world.settle()
    assert world.conditions()["Programmed"] == ("False", "Propagating")
    assert next_in_s <= 1.0
    world.clock.forward(11)
    await world.turn.take(news=False)
    assert world.conditions()["Programmed"] == ("False", "LimiterStale")
    world.limiters.follows = True
    await world.turn.take(news=False)
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_a_neighbours_edit_does_not_shake_a_programmed_policy(world: Any) -> None:
    world.policy()
    await world.settle()
    before = world.status()
    world.limiters.refuses = "$.policies[1]: no"
    world.policy("other")
    await world.settle()
    assert world.conditions(name="other")["Ready"] == ("False", "LimiterRefused")
    assert world.status() == before


@pytest.mark.requirement("R45")
async def test_a_bad_edit_keeps_the_last_accepted_version(world: Any) -> None:
    """D44."""
    world.policy()
    await world.settle()
    before = world.live()
    world.policy(rules=BAD_RULES)
    world.policy("other")
    await world.settle()
    assert world.policy_ids() == ["team/api", "team/other"]
    assert world.live().ruleset.policies[0] == before.ruleset.policies[0]
    assert world.conditions()["Accepted"] == ("False", "Invalid")
    assert world.conditions()["Stalled"] == ("True", "Invalid")
    assert world.status()["observedGeneration"] == 2
    assert "generation 1 keeps running on 1 of 1 limiter" in world.status()["conditions"][0]["message"]


async def test_a_bad_object_does_not_inherit_what_its_deleted_namesake_had(world: Any) -> None:
    """D53, D54: deleted and made anew before anybody looked; both are of generation 1."""
    world.policy("gone", rules=KEYED)
    world.policy(rules=KEYED)
    world.override(permanent=True)
    await world.settle()
    world.cluster.remove(POLICIES, "team", "gone")
    world.policy("gone", rules=BAD_RULES)
    world.cluster.remove(OVERRIDES, "team", "free")
    world.override(permanent=True, rules=["none"])
    await world.settle()
    assert world.policy_ids() == ["team/api"]
    assert world.live().ruleset.overrides == ()
    assert "Nothing of this object runs" in world.status(name="gone")["conditions"][0]["message"]


async def test_an_unknown_gateway_is_answered(world: Any) -> None:
    world.policy(gateway="egde")
    await world.settle()
    assert world.conditions()["Accepted"] == ("False", "UnknownGateway")
    assert "edge" in world.status()["conditions"][0]["message"]
    assert world.policy_ids() == []


async def test_objects_that_no_gateway_takes_are_counted_too(world: Any) -> None:
    world.policy(gateway="none")
    await world.settle()
    sample = {"gateway": "(none)", "reason": "UnknownGateway"}
    assert world.metrics.registry.get_sample_value("weir_operator_objects_refused", sample) == 1
    world.policy()
    await world.settle()
    assert world.metrics.registry.get_sample_value("weir_operator_objects_refused", sample) == 0


async def test_policies_are_counted_by_what_enforcing_says(world: Any) -> None:
    def count(status: str, reason: str) -> float | None:
        sample = {"gateway": "edge", "enforcing": status, "reason": reason}
        found: float | None = world.metrics.registry.get_sample_value("weir_operator_policies", sample)
        return found

    world.policy()
    world.policy("other")
    await world.settle()
    assert count("True", "Enforcing") == 2
    world.policy(mode="Shadow")
    await world.settle()
    assert (count("True", "Enforcing"), count("False", "ShadowMode")) == (1, 1)


async def test_an_override_waits_for_its_policy_and_is_adopted_when_it_comes(world: Any) -> None:
    world.override(expiresAt="2027-01-01T00:00:00Z")
    await world.settle()
    assert world.conditions(OVERRIDES, "free")["Accepted"] == ("False", "PolicyNotFound")
    world.policy(rules=KEYED)
    await world.settle()
    assert world.conditions(OVERRIDES, "free")["Ready"] == ("True", "Ready")


@pytest.mark.parametrize("end", ["deleted", "another typo"])
async def test_an_override_that_lost_its_policy_wakes_the_gateway_that_keeps_it(world: Any, end: str) -> None:
    """D53: else an exemption would outlive its object."""
    world.policy(rules=KEYED)
    world.override(permanent=True)
    await world.settle()
    world.override(permanent=True, policyRef={"name": "typo"})
    await world.settle()
    assert [override.id for override in world.live().ruleset.overrides] == ["team/free"]
    if end == "deleted":
        world.cluster.remove(OVERRIDES, "team", "free")
    else:
        world.override(permanent=True, policyRef={"name": "typo2"})
    assert await world.list() == {"edge", ""}


async def test_an_override_of_a_policy_that_is_kept_wakes_the_gateway_that_keeps_it(world: Any) -> None:
    world.policy(rules=KEYED)
    await world.settle()
    world.policy(rules=KEYED, gateway="egde")
    await world.settle()
    world.override(permanent=True, action="Block")
    assert await world.list() == {"edge", ""}
    await world.settle()
    assert [override.id for override in world.live().ruleset.overrides] == ["team/free"]
    assert world.conditions(OVERRIDES, "free")["Ready"] == ("True", "Ready")


async def test_an_override_ends_without_any_event(world: Any) -> None:
    world.policy(rules=KEYED)
    world.override(expiresAt="2026-12-01T12:00:01Z")
    next_in_s = await world.settle()
    assert next_in_s == pytest.approx(1.0)
    world.clock.forward(next_in_s)
    await world.turn.take(news=False)
    assert world.conditions(OVERRIDES, "free")["Ready"] == ("True", "Expired")


@pytest.mark.parametrize("while_down", [False, True], ids=["while it runs", "while it is down"])
async def test_a_deleted_policy_is_gone_from_the_rules(world: Any, *, while_down: bool) -> None:
    """D53."""
    world.policy()
    world.policy("other")
    await world.settle()
    world.cluster.remove(POLICIES, "team", "api")
    if while_down:
        world.start_operator()
    await world.settle()
    assert world.policy_ids() == ["team/other"]


@pytest.mark.parametrize("while_down", [False, True], ids=["while it runs", "while it is down"])
@pytest.mark.parametrize("damage", ["deleted", "edited", "stripped"])
async def test_a_damaged_config_map_is_repaired(world: Any, damage: str, *, while_down: bool) -> None:
    """D55."""
    world.policy()
    await world.settle()
    before = world.live()
    damaged = world.cluster.objects[RULES_MAP]
    if damage == "deleted":
        world.cluster.remove(*RULES_MAP)
    elif damage == "edited":
        world.cluster.put(CONFIG_MAPS, {**damaged, "data": {"ruleset.json": "{}", "note": "hello"}})
    else:
        world.cluster.put(CONFIG_MAPS, {**damaged, "metadata": {**damaged["metadata"], "labels": {}}})
    if while_down:
        world.start_operator()
    await world.settle()
    repaired = world.cluster.objects[RULES_MAP]
    assert (world.live().digest, list(repaired["data"])) == (before.digest, ["ruleset.json"])
    assert repaired["metadata"]["labels"] == damaged["metadata"]["labels"]
    assert world.live().revision >= before.revision
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_who_edits_or_deletes_a_generated_config_map_is_told_that_it_was_undone(world: Any) -> None:
    """D55: an Event on it; none for the operator's own changes, nor for a label that is nobody's business."""
    world.policy()
    await world.settle()
    world.policy(mode="Shadow")
    await world.settle()
    labelled = world.cluster.objects[RULES_MAP]
    labelled["metadata"]["labels"]["team"] = "orders"
    labelled["metadata"]["managedFields"] = [{"manager": "kubectl-label", "fieldsV1": {"f:metadata": {}}}]
    world.start_operator()
    world.policy()
    await world.settle()
    assert repairs(world) == []
    edited = world.cluster.objects[RULES_MAP]
    edited["metadata"]["managedFields"] = [EDITOR, {**EDITOR, "manager": "weir-operator"}]
    world.cluster.put(CONFIG_MAPS, {**edited, "data": {"ruleset.json": "{}"}})
    await world.settle()
    assert repairs(world) == [("edge-rules-0", "what kubectl-edit wrote was undone: this is made from the policies")]
    world.cluster.remove(*CLOSED_MAP)
    await world.settle()
    assert repairs(world)[1:] == [
        ("edge-closed", "it was deleted, or had lost its labels: it is made from the policies again")
    ]


async def test_an_edit_while_no_operator_ran_is_told_too(world: Any) -> None:
    """D55."""
    world.policy()
    await world.settle()
    edited = world.cluster.objects[RULES_MAP]
    edited["metadata"]["managedFields"] = [EDITOR]
    world.cluster.put(CONFIG_MAPS, {**edited, "data": {"ruleset.json": "{}"}})
    world.start_operator()
    await world.settle()
    assert [name for name, _ in repairs(world)] == ["edge-rules-0"]


def repairs(world: Any) -> list[tuple[str, str]]:
    told = [each for each in world.events.announced if each.reason == "Repaired"]
    return [(each.target["metadata"]["name"], each.note) for each in told]


async def test_a_refused_write_shows_in_the_status_of_what_it_would_have_brought(world: Any) -> None:
    world.policy()
    await world.settle()
    apply = world.cluster.apply

    async def refuse(_: Any) -> Any:
        raise Stalled("cannot patch configmaps: too long")

    world.cluster.apply = refuse
    world.policy("other")
    with pytest.raises(Stalled):
        await world.settle()
    assert world.conditions(name="other")["Ready"] == ("False", "RenderFailed")
    assert world.conditions()["Ready"] == ("True", "Ready")
    world.cluster.apply = apply
    await world.settle()
    assert world.conditions(name="other")["Ready"] == ("True", "Ready")


async def test_a_refused_envoy_configuration_leaves_the_rules_published(world: Any) -> None:
    apply = world.cluster.apply

    async def refuse_envoy(manifest: Any) -> Any:
        if manifest["metadata"]["name"] == "edge-envoy":
            raise Stalled("cannot patch configmaps edge-envoy: quota")
        return await apply(manifest)

    world.cluster.apply = refuse_envoy
    world.policy()
    with pytest.raises(Stalled, match="quota"):
        await world.settle()
    revision = world.live().revision
    assert world.conditions()["Ready"] == ("True", "Ready")
    for _ in range(3):
        world.clock.forward(30)
        with pytest.raises(Stalled, match="quota"):
            await world.settle()
    assert world.live().revision == revision


async def test_an_outage_is_passed_on_to_the_loop(world: Any) -> None:
    world.policy()
    world.cluster.refusal = Waiting("no answer", 1.0)
    with pytest.raises(Waiting):
        await world.settle()
    world.cluster.refusal = None
    await world.settle()
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_an_outage_of_writes_does_not_hide_a_dead_limiter(world: Any) -> None:
    world.policy()
    await world.settle()
    world.limiters.error = "cannot connect"

    async def fail(_: Any) -> Any:
        raise Waiting("the API server failed with 500", 1.0)

    world.cluster.apply = fail
    world.policy("other")
    with pytest.raises(Waiting):
        await world.settle()
    assert world.conditions()["Ready"] == ("False", "LimiterUnreachable")


async def test_a_limiter_ahead_of_rules_that_are_too_large_is_no_reason_to_hurry(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.policy()
    await world.settle()
    monkeypatch.setattr(turn, "render_rules", lambda *_: RulesetTooLarge(2_000_000))
    world.limiters.applied = AppliedRuleset(world.live().revision + 60_000, "sha256:other")
    world.policy("other")
    await world.settle()
    assert await world.turn.take(news=False) >= POLL_UNSETTLED_S
    assert world.conditions(name="other")["Ready"] == ("False", "RenderFailed")


@pytest.mark.requirement("R22")
async def test_a_rule_made_closed_reaches_envoy_and_one_put_in_shadow_leaves_it(world: Any) -> None:
    closed = [{**KEYED[0], "onStoreFailure": {"mode": "Closed"}}]
    world.policy(rules=KEYED)
    await world.settle()
    nothing = world.cluster.objects[CLOSED_MAP]["data"]
    world.policy(rules=closed)
    await world.settle()
    assert "team/api burst" in world.cluster.objects[CLOSED_MAP]["data"]["closed.json"]
    world.policy(rules=closed, mode="Shadow")
    await world.settle()
    assert world.cluster.objects[CLOSED_MAP]["data"] == nothing


@pytest.mark.requirement("R22", "R45")
async def test_closed_rules_that_are_too_large_for_envoy_leave_everything_as_it_is(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.policy()
    await world.settle()
    before = dict(world.cluster.objects)
    monkeypatch.setattr(turn, "render_closed", lambda *_: RulesetTooLarge(2_000_000))
    world.policy("other")
    await world.settle()
    assert world.conditions(name="other")["Ready"] == ("False", "RenderFailed")
    assert {key: obj for key, obj in world.cluster.objects.items() if key[0] == CONFIG_MAPS} == {
        key: obj for key, obj in before.items() if key[0] == CONFIG_MAPS
    }


@pytest.mark.requirement("R22", "R45")
async def test_closed_rules_that_cannot_be_written_for_envoy_are_not_published_either(world: Any) -> None:
    """As when a role of one's own lacks the permission for the new ConfigMap: no condition may say that they hold."""
    world.policy(rules=KEYED)
    await world.settle()
    before = world.live()
    written = world.cluster.apply

    async def refuse_closed(manifest: Any) -> Any:
        if manifest["metadata"]["name"] == "edge-closed":
            raise Stalled("cannot patch configmaps edge-closed: forbidden")
        return await written(manifest)

    world.cluster.apply = refuse_closed
    world.policy(rules=[{**KEYED[0], "onStoreFailure": {"mode": "Closed"}}])
    with pytest.raises(Stalled, match="forbidden"):
        await world.settle()
    assert world.live() == before
    assert world.conditions()["Ready"] == ("False", "RenderFailed")
    world.cluster.apply = written
    await world.settle()
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_a_limiter_ahead_of_a_restored_backup_is_overtaken(world: Any) -> None:
    world.policy()
    await world.settle()
    backup = dict(world.cluster.objects)
    world.clock.forward(60)
    world.policy(mode="Shadow")
    await world.settle()
    newer = world.live().revision
    world.cluster.objects = backup
    world.clock.forward(-3600)
    world.start_operator()
    await world.settle()
    await world.settle()
    assert world.live().revision > newer
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_a_limiter_that_is_stuck_on_somebody_elses_document_does_not_count(world: Any) -> None:
    """D55: its revision lies between the one that brought the policy and the one that restores it."""
    world.policy()
    await world.settle()
    ours = world.live()
    edit = seal(Ruleset("edge")).to_bytes(ours.revision + 5).decode()
    world.cluster.put(CONFIG_MAPS, {**world.cluster.objects[RULES_MAP], "data": {"ruleset.json": edit}})
    await world.limiters.read()
    world.limiters.follows = False
    await world.settle()
    assert (world.live().digest, world.live().revision > ours.revision + 5) == (ours.digest, True)
    assert world.conditions()["Programmed"] == ("False", "Propagating")
    world.limiters.follows = True
    await world.settle()
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_a_limiter_that_took_another_document_under_our_revision_is_overtaken(world: Any) -> None:
    world.policy()
    await world.settle()
    ours = world.live()
    world.limiters.applied = AppliedRuleset(ours.revision, "sha256:other")
    await world.turn.take(news=False)
    await world.settle()
    assert (world.live().digest, world.live().revision > ours.revision) == (ours.digest, True)
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_a_refused_status_delays_nothing_but_itself(world: Any) -> None:
    apply_status, tried = world.cluster.apply_status, []

    async def refuse(target: Any, status: Any) -> Any:
        if target["metadata"]["name"] != "odd":
            return await apply_status(target, status)
        tried.append(world.clock.monotonic())
        raise Stalled("cannot patch ratelimitpolicies/status odd: a webhook says no")

    world.cluster.apply_status = refuse
    world.policy("odd")
    world.policy()
    assert await world.settle() <= POLL_SETTLED_S
    assert world.conditions()["Ready"] == ("True", "Ready")
    assert len(tried) == 1
    world.clock.forward(STALLED_S)
    await world.turn.take(news=False)
    assert len(tried) == 2


async def test_a_status_that_found_no_object_is_tried_again_soon(world: Any) -> None:
    """A conflict looks the same as a deletion that the watch has not told yet."""
    apply_status = world.cluster.apply_status

    async def conflict(target: Any, status: Any) -> Any:
        raise Missing("cannot patch ratelimitpolicies/status api: conflict")

    world.cluster.apply_status = conflict
    world.policy()
    assert await world.settle() <= MISSING_S
    world.cluster.apply_status = apply_status
    world.clock.forward(MISSING_S)
    await world.turn.take(news=False)
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_a_config_map_that_vanishes_under_a_write_is_no_matter_for_a_person(world: Any) -> None:
    await world.settle()
    world.cluster.put(
        CONFIG_MAPS, {**(damaged := world.cluster.objects[RULES_MAP]), "data": damaged["data"] | {"x": ""}}
    )

    async def vanish(*_: Any) -> None:
        raise Missing("cannot patch configmaps edge-rules-0: not found")

    world.cluster.drop_data = vanish
    with pytest.raises(Waiting, match="deleted meanwhile"):
        await world.settle()


async def test_statuses_that_must_wait_hold_up_no_rules(world: Any) -> None:
    async def ask_for_patience(target: Any, status: Any) -> Any:
        raise Waiting("the API server asks for patience", 7.0)

    apply_status, world.cluster.apply_status = world.cluster.apply_status, ask_for_patience
    world.policy()
    await world.list()
    assert await world.turn.take(news=True) <= 7.0
    assert world.policy_ids() == ["team/api"]
    assert await world.turn.take(news=False) == 7.0
    world.cluster.apply_status = apply_status
    await world.turn.take(news=False)
    assert world.conditions()["Ready"] == ("True", "Ready")


async def test_no_more_statuses_are_tried_while_the_server_asks_for_patience(world: Any) -> None:
    tried = []

    async def ask_for_patience(target: Any, status: Any) -> Any:
        tried.append(target)
        raise Waiting("the API server asks for patience", 7.0)

    world.cluster.apply_status = ask_for_patience
    for number in range(3 * CONCURRENT_WRITES):
        world.policy(f"api-{number}")
    await world.list()
    await world.turn.take(news=True)
    assert len(tried) <= CONCURRENT_WRITES


async def test_wording_alone_is_written_rarely(world: Any) -> None:
    """D49: api.md allows a change every few seconds at most."""
    world.limiters.error = "attempt 0"
    world.policy()
    await world.settle()
    before = world.cluster.writes
    for attempt in range(25):
        world.limiters.error = f"attempt {attempt}"
        world.clock.forward(1)
        await world.turn.take(news=False)
    assert world.cluster.writes - before == 2
    assert world.conditions()["Ready"] == ("False", "LimiterUnreachable")


async def test_what_the_server_does_not_keep_is_not_written_again(world: Any) -> None:
    """D48: a pruned field must not become an endless loop of writes."""
    apply_status = world.cluster.apply_status

    async def prune(target: Any, status: Any) -> Any:
        return await apply_status(target, {key: value for key, value in status.items() if key != "rules"})

    world.cluster.apply_status = prune
    world.policy()
    await world.settle()
    before = world.cluster.writes
    for _ in range(5):
        world.clock.forward(60)
        await world.settle()
    assert world.cluster.writes == before


SHARED = [{"name": "burst", "limit": {"requests": 10, "period": "1s"}, "onStoreFailure": {"mode": "Local"}}]


@pytest.mark.requirement("R22")
async def test_a_limit_is_split_between_the_limiters_that_are_there(world: Any) -> None:
    """D41: one more counts at once, one less after a while, and one that comes and goes rewrites nothing."""
    world.policy(rules=SHARED)
    await world.settle()
    assert world.live().ruleset.limiters == 1
    world.limiters.more = ("edge-1",)
    await world.settle()
    assert world.live().ruleset.limiters == 2
    revision = world.live().revision
    for more in ((), ("edge-1",), ()):
        world.limiters.more = more
        world.clock.forward(SILENT_FOR_S - 1)
        await world.settle()
        assert (world.live().revision, world.live().ruleset.limiters) == (revision, 2)
    world.clock.forward(1)
    await world.settle()
    assert world.live().ruleset.limiters == 1
    assert world.conditions()["Ready"] == ("True", "Ready")


@pytest.mark.requirement("R22")
async def test_where_nothing_is_split_the_number_of_limiters_rewrites_nothing(world: Any) -> None:
    world.policy()
    await world.settle()
    revision = world.live().revision
    world.limiters.more = ("edge-1", "edge-2")
    await world.settle()
    assert (world.live().revision, world.live().ruleset.limiters) == (revision, None)


@pytest.mark.requirement("R22", "R24")
async def test_a_store_that_is_away_shows_at_the_next_look_and_no_longer_than_it_is(world: Any) -> None:
    world.policy()
    world.policy("shared", rules=SHARED)
    await world.settle()
    assert world.conditions()["Enforcing"] == ("True", "Enforcing")
    world.limiters.store_down = True
    assert await world.turn.take(news=False) <= POLL_SETTLED_S
    assert world.conditions()["Enforcing"] == ("False", "StoreUnavailable")
    assert world.conditions(name="shared")["Enforcing"] == ("False", "Degraded")
    assert world.conditions()["Ready"] == ("True", "Ready")
    world.limiters.store_down = False
    await world.turn.take(news=False)
    assert world.conditions()["Enforcing"] == world.conditions(name="shared")["Enforcing"] == ("True", "Enforcing")
