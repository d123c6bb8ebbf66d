# SPDX-License-Identifier: Apache-2.0
"""From what is there and what is wanted to what must be done: pure, and empty when both are the same.

Owns the judgement whether an object says what its manifest says, also after other hands changed it. Must not talk to
anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir_operator.reconcile.ports import CONFIG_MAPS, Object, Ref

DATA_MEMBERS = ("data", "binaryData")


@dataclass(frozen=True, slots=True)
class Apply:
    """Make an object say what the manifest says."""

    manifest: Object


@dataclass(frozen=True, slots=True)
class DropData:
    """Remove entries that other hands added to a ConfigMap: an apply leaves what it never owned."""

    ref: Ref
    keys: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object of ours that is no longer wanted."""

    ref: Ref


Action = Apply | DropData | Delete


def plan(seen: Mapping[str, Object], wanted: Sequence[Object], ours: Mapping[str, str]) -> tuple[Action, ...]:
    """Return the actions that turn the ConfigMaps `seen` (by name) into those `wanted`, in order.

    `ours` are the labels by which something not wanted is recognised as ours, and so deleted.
    """
    actions: list[Action] = []
    names = {manifest["metadata"]["name"] for manifest in wanted}
    for manifest in wanted:
        live = seen.get(manifest["metadata"]["name"])
        foreign = _foreign_data(live, manifest) if live is not None else {}
        if live is None or not says(live, manifest):
            actions.append(Apply(manifest))
        if foreign:  # only now: content that moved to another key must not be missing in between
            actions.append(DropData(_ref(manifest), foreign))
    for name in sorted(seen.keys() - names):
        labels = seen[name]["metadata"].get("labels") or {}
        if ours.items() <= labels.items():
            actions.append(Delete(_ref(seen[name])))
    return tuple(actions)


def says(live: Object, manifest: Object) -> bool:
    """Whether everything in the manifest stands in the live object with the same value."""
    for member in ("labels", "annotations"):
        wanted = manifest["metadata"].get(member) or {}
        if not wanted.items() <= (live["metadata"].get(member) or {}).items():
            return False
    return all((manifest.get(member) or {}).items() <= (live.get(member) or {}).items() for member in DATA_MEMBERS)


def _foreign_data(live: Object, manifest: Object) -> dict[str, tuple[str, ...]]:
    extra = {
        member: tuple(sorted((live.get(member) or {}).keys() - (manifest.get(member) or {}).keys()))
        for member in DATA_MEMBERS
    }
    return {member: keys for member, keys in extra.items() if keys}


def _ref(obj: Object) -> Ref:
    return Ref(CONFIG_MAPS, obj["metadata"]["namespace"], obj["metadata"]["name"])
