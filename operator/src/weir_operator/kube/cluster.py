# SPDX-License-Identifier: Apache-2.0
"""The API server behind `reconcile.ports.Cluster`: list, server-side apply, status, delete.

Owns how each of them is asked for. Must not decide anything and must not retry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir_operator.kube.bodies import APPLY, encode_apply
from weir_operator.kube.errors import Attempt
from weir_operator.kube.transport import Query, Transport
from weir_operator.reconcile.ports import (
    CONFIG_MAPS,
    OVERRIDES,
    POLICIES,
    Listing,
    Missing,
    Object,
    Ref,
    Resource,
)

FIELD_MANAGER = "weir-operator"
PAGE_SIZE = 500
MERGE = "application/merge-patch+json"
FORCED = [("fieldManager", FIELD_MANAGER), ("force", "true")]
KINDS = {resource.kind: resource for resource in (POLICIES, OVERRIDES, CONFIG_MAPS)}


class ApiCluster:
    """The objects of one API server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, resource: Resource, *, namespace: str | None = None, label_selector: str = "") -> Listing:
        """Return all objects of a resource, page by page at one resource version."""
        attempt = Attempt("list", resource, namespace=namespace)
        objects: list[Object] = []
        query = [("limit", str(PAGE_SIZE))] + ([("labelSelector", label_selector)] if label_selector else [])
        following: Query = ()
        while True:
            page = await self._transport.request(attempt, "GET", [*query, *following])
            # Items of a list carry neither kind nor version.
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            objects.extend(head | item for item in page["items"])
            token = page["metadata"].get("continue")
            if not token:
                return Listing(tuple(objects), int(page["metadata"]["resourceVersion"]))
            following = [("continue", token)]

    async def apply(self, manifest: Object) -> Object:
        """Server-side apply with force: what the manifest names is ours."""
        ref = _ref(manifest)
        attempt = Attempt("patch", ref.resource, namespace=ref.namespace, name=ref.name)
        return await self._transport.request(attempt, "PATCH", FORCED, body=encode_apply(manifest), content_type=APPLY)

    async def drop_data(self, ref: Ref, keys: Mapping[str, Sequence[str]]) -> None:
        """Remove entries that other hands put there: an apply only removes what it once set itself."""
        attempt = Attempt("patch", ref.resource, namespace=ref.namespace, name=ref.name)
        body = {member: dict.fromkeys(names) for member, names in keys.items()}
        await self._transport.request(attempt, "PATCH", FORCED[:1], body=body, content_type=MERGE)

    async def delete(self, ref: Ref) -> None:
        """Delete an object; one that is gone is fine."""
        attempt = Attempt("delete", ref.resource, namespace=ref.namespace, name=ref.name)
        try:
            await self._transport.request(attempt, "DELETE")
        except Missing:
            return

    async def apply_status(self, target: Object, status: Object) -> Object:
        """Server-side apply of the status subresource alone; the uid keeps it off a namesake."""
        ref = _ref(target)
        attempt = Attempt("patch", ref.resource, subresource="status", namespace=ref.namespace, name=ref.name)
        body = {
            "apiVersion": ref.resource.api_version,
            "kind": ref.resource.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": target["metadata"]["uid"]},
            "status": status,
        }
        return await self._transport.request(attempt, "PATCH", FORCED, body=encode_apply(body), content_type=APPLY)

    async def end_switches(self, target: Object, names: Sequence[str]) -> Object:
        """Merge patch that the server refuses if anybody has written the object since."""
        ref = _ref(target)
        attempt = Attempt("patch", ref.resource, subresource="status", namespace=ref.namespace, name=ref.name)
        seen = {member: target["metadata"][member] for member in ("uid", "resourceVersion")}
        body = {"metadata": seen, "status": {"killSwitches": dict.fromkeys(names)}}
        return await self._transport.request(attempt, "PATCH", FORCED[:1], body=body, content_type=MERGE)


def _ref(manifest: Object) -> Ref:
    metadata = manifest["metadata"]
    return Ref(KINDS[manifest["kind"]], metadata["namespace"], metadata["name"])
