# SPDX-License-Identifier: Apache-2.0
"""The validating webhook: an AdmissionReview in, allowed or refused in the words of the compiler, with warnings.

Owns the form of the review and when not to judge at all: a change that leaves the spec as it is, and an object that is
being deleted, always pass. Must not know how objects are judged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from aiohttp import web

from weir_operator.domain.problems import chief_reason, summary
from weir_operator.metrics import Metrics
from weir_operator.reconcile.ports import OVERRIDES, POLICIES, Object, Resource
from weir_operator.reconcile.rehearsal import Foresight

WARNING_MAX_CHARS = 250  # the API server may cut warnings that are longer than 256
REVIEWED = {resource.kind: resource for resource in (POLICIES, OVERRIDES)}
PATH = "/admission"

logger = logging.getLogger(__name__)


class Judge(Protocol):
    """Says what would become of an object."""

    def of(self, resource: Resource, obj: Object) -> Foresight:
        """Judge it."""


def admission_routes(judge: Judge, metrics: Metrics) -> list[web.RouteDef]:
    """Return the webhook."""

    async def admit(request: web.Request) -> web.Response:
        try:
            review = await request.json()
            asked = review["request"]
            with metrics.admission_seconds.time():
                answer = judged(asked, judge)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"no AdmissionReview: {error!r}\n")
        metrics.admission_reviews.labels("allowed" if answer["allowed"] else "refused").inc()
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})

    return [web.post(PATH, admit)]


def judged(asked: Mapping[str, Any], judge: Judge) -> dict[str, Any]:
    """Return the response to one request of an AdmissionReview."""
    allowed: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
    obj, before = asked.get("object"), asked.get("oldObject")
    resource = REVIEWED.get(asked["kind"]["kind"])
    if obj is None or resource is None or not _is_to_be_judged(asked, obj, before):
        return allowed
    foresight = judge.of(resource, _complete(asked, obj))
    if foresight.problems:
        reason, message = chief_reason(foresight.problems), summary(foresight.problems)
        status = {"code": HTTPStatus.FORBIDDEN.value, "reason": str(reason), "message": f"{reason}: {message}"}
        return {**allowed, "allowed": False, "status": status}
    warnings = [warning[:WARNING_MAX_CHARS] for warning in foresight.surprises]
    return {**allowed, "warnings": warnings} if warnings else allowed


def _is_to_be_judged(asked: Mapping[str, Any], obj: Object, before: Object | None) -> bool:
    if asked.get("subResource") or obj["metadata"].get("deletionTimestamp"):
        return False
    return before is None or obj.get("spec") != before.get("spec")


def _complete(asked: Mapping[str, Any], obj: Object) -> Object:
    """Add what an object that is yet to be created may lack."""
    metadata = obj["metadata"]
    name = metadata.get("name") or f"{metadata.get('generateName', '')}new"
    return {**obj, "metadata": {**metadata, "name": name, "namespace": asked.get("namespace", "")}}
