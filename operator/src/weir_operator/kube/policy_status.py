# SPDX-License-Identifier: Apache-2.0
"""The status of one policy as a person reads and writes it, with no more rights than get and patch of that.

Owns the requests and who we are. What may stand there, and what it does, is the API's and the operator's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kube.errors import Attempt
from weir_operator.kube.transport import JSON, Transport
from weir_operator.reconcile.ports import POLICIES, Object, Resource

FIELD_MANAGER = "weir-cli"
MERGE = "application/merge-patch+json"
REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview")


class PolicyStatus:
    """One policy's status. Every method may raise Waiting, Stalled or Missing."""

    def __init__(self, transport: Transport, namespace: str, name: str) -> None:
        self._transport = transport
        self._namespace = namespace
        self._name = name

    async def read(self) -> Object:
        """Return the whole object: the API server shows it to whoever may read its status."""
        return await self._transport.request(self._attempt("get"), "GET")

    async def patch(self, fields: Mapping[str, Any]) -> Object:
        """Merge `fields` into the status, None removes; return the object as stored."""
        query = [("fieldManager", FIELD_MANAGER)]
        body = {"status": fields}
        return await self._transport.request(self._attempt("patch"), "PATCH", query, body=body, content_type=MERGE)

    async def who(self) -> str:
        """Return the name under which the API server knows us."""
        body = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind}
        review = await self._transport.request(Attempt("create", REVIEWS), "POST", body=body, content_type=JSON)
        return str(review["status"]["userInfo"]["username"])

    def _attempt(self, verb: str) -> Attempt:
        return Attempt(verb, POLICIES, subresource="status", namespace=self._namespace, name=self._name)
