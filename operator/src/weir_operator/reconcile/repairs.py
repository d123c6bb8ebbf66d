# SPDX-License-Identifier: Apache-2.0
"""Tells whoever edits or deletes a generated ConfigMap that it was undone, by an Event on it.

Owns the question whether other hands were on it: what was written here last, and after a restart whom the API server
remembers as its author. Must not repair anything: that is the plan's work, edit or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir_operator.reconcile.plan import Action, Apply, DropData, says
from weir_operator.reconcile.ports import Announcement, Events, Object
from weir_operator.render.names import MANAGER

REASON = "Repaired"
CONTENT = {"f:data", "f:binaryData"}


class Repairs:
    """The generated ConfigMaps of one gateway, as they were left last."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._known: dict[str, Object] = {}

    def tell(
        self,
        seen: Mapping[str, Object],
        wanted: Sequence[Object],
        actions: Sequence[Action],
        now: Mapping[str, Object],
    ) -> None:
        """Announce what the actions have undone of what was `seen`; `now` is what stands there after them."""
        written = {str(action.manifest["metadata"]["name"]) for action in actions if isinstance(action, Apply)}
        cleaned = {action.ref.name for action in actions if isinstance(action, DropData)}
        for name in sorted(written | cleaned):
            live, stored = seen.get(name), now.get(name)
            if live is not None and (name in cleaned or self._is_foreign(name, live)):
                self._announce(live, f"what {_authors(live)} wrote was undone: this is made from the policies")
            elif live is None and name in self._known and stored is not None:
                self._announce(stored, "it was deleted, or had lost its labels: it is made from the policies again")
        self._known = {manifest["metadata"]["name"]: manifest for manifest in wanted}

    def _is_foreign(self, name: str, live: Object) -> bool:
        written = self._known.get(name)
        return not says(live, written) if written is not None else bool(_others(live))

    def _announce(self, target: Object, note: str) -> None:
        version = str(target["metadata"]["resourceVersion"])
        self._events.announce(Announcement(target, REASON, "Repair", note, warning=True, key=version))


def _authors(live: Object) -> str:
    return ", ".join(_others(live)) or "somebody else"


def _others(live: Object) -> list[str]:
    """Return the programs but ours that the API server remembers as authors of its content."""
    entries = live["metadata"].get("managedFields") or ()
    authors = {str(entry.get("manager")) for entry in entries if CONTENT & (entry.get("fieldsV1") or {}).keys()}
    return sorted(authors - {MANAGER})
