# SPDX-License-Identifier: Apache-2.0
"""The Lease object behind `reconcile.ports.Leases`.

Owns its form and the compare-and-swap by resourceVersion that makes one of several writers win. Decides nothing.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import aiohttp

from weir_operator.domain.times import micro_time_text
from weir_operator.kube.errors import Attempt
from weir_operator.kube.transport import JSON, Transport
from weir_operator.reconcile.lease import Record
from weir_operator.reconcile.ports import LEASES, Missing, Object, Waiting

# Two requests in a row must leave time for another try before the right to write ends.
TIMEOUT = aiohttp.ClientTimeout(total=2.0)


class ApiLease:
    """One lease, by namespace and name."""

    def __init__(self, transport: Transport, namespace: str, name: str) -> None:
        self._transport = transport
        self._namespace = namespace
        self._name = name

    async def read(self) -> Record | None:
        """Return the record; None if there is none."""
        attempt = Attempt("get", LEASES, namespace=self._namespace, name=self._name)
        try:
            return _record(await self._transport.request(attempt, "GET", within=TIMEOUT))
        except Missing:
            return None

    async def write(self, record: Record, now: datetime) -> Record | None:
        """Store the record if the stored one is still of its version; None if another writer was quicker."""
        verb, method, target = ("update", "PUT", self._name) if record.version else ("create", "POST", "")
        attempt = Attempt(verb, LEASES, namespace=self._namespace, name=target)
        try:
            stored = await self._transport.request(
                attempt, method, body=self._manifest(record, now), content_type=JSON, within=TIMEOUT
            )
        except Missing:
            return None
        except Waiting as error:
            if error.conflict:
                return None
            raise
        return _record(stored)

    def _manifest(self, record: Record, now: datetime) -> Object:
        version = {"resourceVersion": record.version} if record.version else {}
        spec: dict[str, Any] = {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": math.ceil(record.duration_s),
            "leaseTransitions": record.transitions,
            "renewTime": micro_time_text(now),  # for people: nobody of us compares clocks
        }
        if record.acquired:
            spec["acquireTime"] = record.acquired
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace, **version},
            "spec": spec,
        }


def _record(lease: Object) -> Record:
    """Read whatever somebody may have written there."""
    spec = lease.get("spec") or {}
    return Record(
        holder=spec.get("holderIdentity") or "",
        duration_s=float(spec.get("leaseDurationSeconds") or 0),
        version=lease["metadata"]["resourceVersion"],
        transitions=spec.get("leaseTransitions") or 0,
        acquired=spec.get("acquireTime") or "",
    )
