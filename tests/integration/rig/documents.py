# SPDX-License-Identifier: Apache-2.0
"""Ruleset documents, written member by member as the contract has them, independent of the operator's code."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from typing import Any

GATEWAY = "edge"
POLICY = "team-orders/orders-api"
HOST = "api.example.com"

_revisions = itertools.count(1)


def limit(requests: int, period_s: float = 1, burst: int | None = None) -> dict[str, Any]:
    """A token bucket; `burst` defaults to `requests`."""
    return {
        "algorithm": "TokenBucket", "requests": requests, "periodUs": round(period_s * 1e6), "burst": burst or requests,
    }  # fmt: skip


def leaky(requests: int, period_s: float = 1, *, queue: int, max_delay_s: float) -> dict[str, Any]:
    """A leaky bucket whose queue holds `queue` requests for at most `max_delay_s`."""
    return {
        "algorithm": "LeakyBucket", "requests": requests, "periodUs": round(period_s * 1e6), "queue": queue,
        "maxDelayUs": round(max_delay_s * 1e6),
    }  # fmt: skip


def rule(name: str = "burst", **members: Any) -> dict[str, Any]:
    """An enforcing, public rule of 5/s per x-api-key; `members` replace."""
    return {
        "name": name, "mode": "Enforce", "key": [{"header": "x-api-key"}], "onMissingKey": "Skip", "limit": limit(5),
        "cost": [], "onStoreFailure": "Open", "visibility": "Public", "code": "rate_limited", **members,
    }  # fmt: skip


def policy(*rules: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A policy of all requests to `HOST` with these rules; `members` replace."""
    return {
        "id": POLICY, "generation": 1, "match": {"hosts": [HOST], "routes": []}, "exempt": [], "rules": list(rules),
        "response": {"headers": "RateLimit"}, **members,
    }  # fmt: skip


def override(*values: str, **members: Any) -> dict[str, Any]:
    """An override of the rule `burst` for these x-api-key values; `members` add action, limit and window."""
    digests = [hashlib.sha256(value.encode()).hexdigest() for value in values]
    subjects = [[{"source": "header:x-api-key", "sha256": digest}] for digest in digests]
    return {"id": "team-orders/some", "policy": POLICY, "rules": ["burst"], "subjects": subjects, **members}


def document(
    *policies: dict[str, Any],
    overrides: Sequence[dict[str, Any]] = (),
    gateway: str = GATEWAY,
    revision: int | None = None,
    **members: Any,
) -> bytes:
    """A document with its digest. Each has a higher revision than the one before, unless `revision` says otherwise."""
    content = {"format": 2, "gateway": gateway, "policies": list(policies), "overrides": list(overrides), **members}
    digest = "sha256:" + hashlib.sha256(canonical(content)).hexdigest()
    return canonical({**content, "revision": revision or next(_revisions), "digest": digest})


def single(**members: Any) -> bytes:
    """A document of one policy with one rule; `members` are the rule's."""
    return document(policy(rule(**members)))


def canonical(content: object) -> bytes:
    """Sorted members, no spaces, no escapes beyond what JSON needs."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def revision_of(text: bytes) -> int:
    """The revision that a document states."""
    return int(json.loads(text)["revision"])
