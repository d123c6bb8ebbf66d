# SPDX-License-Identifier: Apache-2.0
"""What the API server was last known to hold, from lists and events that may arrive in any order.

Owns freshness: an older state never replaces a newer one, and an object that is gone never comes back, whichever of
list and event was first. Resource versions of one resource are numbers that only grow (Kubernetes promises it since
1.35, and etcd has always done it) for as long as nobody restores an older backup. Must not parse specs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weir_operator.reconcile.ports import Listing, Object

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One object's step from one state to the next; None = not there."""

    before: Object | None
    after: Object | None


class ObjectCache:
    """The objects of one resource in one scope, by (namespace, name)."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._gone: dict[Key, int] = {}  # deletions newer than the last list
        self._floor = 0  # the last list's moment: older news is no news
        self._newest = 0  # the latest moment that anything told of

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def get(self, namespace: str, name: str) -> Object | None:
        """Return the object of that name, if there is one."""
        return self._objects.get((namespace, name))

    @property
    def newest(self) -> int:
        """The latest resource version that is known: a list that is asked for from now on cannot be older."""
        return self._newest

    def observe(self, obj: Object, *, deleted: bool = False) -> Change | None:
        """Take one object's news; return what it changed, None if it is old."""
        key = key_of(obj)
        version = version_of(obj)
        self._newest = max(self._newest, version)
        before = self._objects.get(key)
        if version <= max(self._floor, self._gone.get(key, 0)) and before is None:
            return None
        if before is not None and version <= version_of(before) and not (deleted and version == version_of(before)):
            return None
        if deleted:
            self._gone[key] = version
            self._objects.pop(key, None)
            return Change(before, None)
        self._objects[key] = obj
        return Change(before, obj)

    def replace(self, listing: Listing) -> tuple[Change, ...]:
        """Take a whole list; return what it changed. What is newer than the list stays."""
        if listing.resource_version < self._floor:
            return ()
        listed = {key_of(obj): obj for obj in listing.objects}
        changes = []
        for key, before in list(self._objects.items()):
            if key not in listed and version_of(before) <= listing.resource_version:
                del self._objects[key]
                changes.append(Change(before, None))
        for key, obj in listed.items():
            known = self._objects.get(key)
            newest = max(version_of(known) if known is not None else 0, self._gone.get(key, 0))
            if version_of(obj) > newest:
                self._objects[key] = obj
                changes.append(Change(known, obj))
        self._floor = listing.resource_version
        self._newest = max(self._newest, self._floor)
        self._gone = {key: version for key, version in self._gone.items() if version > self._floor}
        return tuple(changes)

    def start_over(self, listing: Listing) -> tuple[Change, ...]:
        """Take a list after the history was rewound, and forget all that came after it; return what it changed."""
        before, self._objects = self._objects, {key_of(obj): obj for obj in listing.objects}
        self._gone, self._floor, self._newest = {}, listing.resource_version, listing.resource_version
        keys = {**before, **self._objects}
        return tuple(
            Change(before.get(key), self._objects.get(key)) for key in keys if before.get(key) != self._objects.get(key)
        )


def key_of(obj: Object) -> Key:
    """Return an object's (namespace, name)."""
    metadata = obj["metadata"]
    return metadata["namespace"], metadata["name"]


def version_of(obj: Object) -> int:
    """Return an object's resource version as the number that it is."""
    return int(obj["metadata"]["resourceVersion"])
