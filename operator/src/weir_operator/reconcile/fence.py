# SPDX-License-Identifier: Apache-2.0
"""A cluster that only a leader writes to.

Owns the last look before every write: a process that was stopped and comes back finds out here that its time is over,
before anything of it reaches the API server. A write that takes longer than the right to write is abandoned.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from weir_operator.reconcile.ports import Cluster, Listing, Object, Ref, Resource, Waiting

AGAIN_S = 1.0  # arbitrary: the loops of a replica that no longer leads are about to end


class FencedCluster:
    """`writes_for_s` says for how long writing is still allowed; not above 0 = not at all."""

    def __init__(self, cluster: Cluster, writes_for_s: Callable[[], float]) -> None:
        self._cluster = cluster
        self._writes_for_s = writes_for_s

    async def list(self, resource: Resource, *, namespace: str | None = None, label_selector: str = "") -> Listing:
        """Anybody may read."""
        return await self._cluster.list(resource, namespace=namespace, label_selector=label_selector)

    async def apply(self, manifest: Object) -> Object:
        """Create or change an object. Raises Waiting, as all that follows, in a replica that does not lead."""
        async with self._fence():
            return await self._cluster.apply(manifest)

    async def drop_data(self, ref: Ref, keys: Mapping[str, Sequence[str]]) -> None:
        """Remove entries from an object's maps."""
        async with self._fence():
            await self._cluster.drop_data(ref, keys)

    async def delete(self, ref: Ref) -> None:
        """Delete an object."""
        async with self._fence():
            await self._cluster.delete(ref)

    async def apply_status(self, target: Object, status: Object) -> Object:
        """Write an object's status."""
        async with self._fence():
            return await self._cluster.apply_status(target, status)

    async def end_switches(self, target: Object, names: Sequence[str]) -> Object:
        """Remove kill switches from a policy's status."""
        async with self._fence():
            return await self._cluster.end_switches(target, names)

    @asynccontextmanager
    async def _fence(self) -> AsyncIterator[None]:
        left_s = self._writes_for_s()
        if left_s <= 0:
            raise Waiting("not written: this replica does not lead any more", AGAIN_S)
        try:
            async with asyncio.timeout(left_s):
                yield
        except TimeoutError as error:
            raise Waiting("a write was abandoned: this replica does not lead any more", AGAIN_S) from error
