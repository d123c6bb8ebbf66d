# SPDX-License-Identifier: Apache-2.0
"""What must be done to bring ConfigMaps to what is wanted: nothing when they say it, whatever hands touched them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from weir_operator.reconcile.plan import Apply, Delete, DropData, plan
from weir_operator.reconcile.ports import CONFIG_MAPS, Ref

OURS = {"managed-by": "weir-operator", "gateway": "edge"}
WANTED = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "edge-rules-0",
        "namespace": "weir-system",
        "labels": {**OURS, "part": "rules"},
        "annotations": {"revision": "7"},
    },
    "data": {"ruleset.json": "{}"},
}
REF = Ref(CONFIG_MAPS, "weir-system", "edge-rules-0")


def live(change: Callable[[dict[str, Any]], Any] = lambda _: None) -> dict[str, dict[str, Any]]:
    """The wanted ConfigMap as the server stores it, after somebody's edit."""
    stored = copy.deepcopy(WANTED)
    stored["metadata"]["uid"] = "u"
    stored["metadata"]["annotations"]["somebody"] = "was here"
    change(stored)
    return {"edge-rules-0": stored}


def test_nothing_is_done_when_everything_is_as_wanted() -> None:
    """D47, D49."""
    assert plan(live(), [WANTED], OURS) == ()


def test_what_is_missing_is_made() -> None:
    """D55: deleted by hand."""
    assert plan({}, [WANTED], OURS) == (Apply(WANTED),)


@pytest.mark.parametrize(
    "edit",
    [
        lambda o: o["data"].update({"ruleset.json": "[]"}),
        lambda o: o["data"].pop("ruleset.json"),
        lambda o: o.pop("data"),
        lambda o: o["metadata"].pop("labels"),
        lambda o: o["metadata"]["labels"].update(part="envoy"),
        lambda o: o["metadata"]["annotations"].update(revision="8"),
    ],
    ids=["content edited", "content dropped", "all content dropped", "labels stripped", "label edited", "annotation"],
)
def test_what_other_hands_changed_is_repaired(edit: Callable[[dict[str, Any]], Any]) -> None:
    """D55: edited by hand, labels stripped."""
    assert plan(live(edit), [WANTED], OURS) == (Apply(WANTED),)


def test_entries_that_other_hands_added_are_dropped() -> None:
    seen = live(lambda o: o.update(binaryData={"ruleset.json.gz": "AA=="}))
    assert plan(seen, [WANTED], OURS) == (DropData(REF, {"binaryData": ("ruleset.json.gz",)}),)


def test_a_content_that_moved_to_another_member_leaves_the_old_one() -> None:
    packed = {**WANTED, "binaryData": {"ruleset.json.gz": "AA=="}}
    del packed["data"]
    assert plan(live(), [packed], OURS) == (Apply(packed), DropData(REF, {"data": ("ruleset.json",)}))


def test_what_is_ours_and_no_longer_wanted_is_deleted() -> None:
    assert plan(live(), [], OURS) == (Delete(REF),)


def test_what_is_not_ours_is_left_alone() -> None:
    assert plan(live(lambda o: o["metadata"].update(labels={"gateway": "edge"})), [], OURS) == ()
