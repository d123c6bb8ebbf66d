# SPDX-License-Identifier: Apache-2.0
"""The loop's ports, implemented in memory: a cluster that stores objects, limiters that run what it holds, a clock."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from weir_operator.api.intervening import PEOPLES_FIELDS
from weir_operator.domain.evidence import RuleCounts, RuleKey
from weir_operator.domain.gateways import Gateway, HostsDefault
from weir_operator.metrics import Metrics
from weir_operator.reconcile.ports import (
    CONFIG_MAPS,
    OVERRIDES,
    POLICIES,
    Announcement,
    AppliedRuleset,
    LimiterReport,
    Listing,
    Missing,
    Object,
    Ref,
    Resource,
)
from weir_operator.reconcile.store import Store
from weir_operator.reconcile.turn import GatewayTurn, OrphansTurn, Tools
from weir_operator.render.ruleset_config import Live, read_live

GATEWAY = Gateway("edge", "weir-system", ("http://l",), frozenset({"team"}), hosts_default=HostsDefault.ANY)


class MemoryCluster:
    """Objects by resource and name, as an API server keeps them: every change gets a new version."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Resource, str, str], dict[str, Any]] = {}
        self.writes = 0
        self.refusal: Exception | None = None
        self._versions = itertools.count(1)
        self._version = 0

    def put(self, resource: Resource, obj: Mapping[str, Any]) -> dict[str, Any]:
        """What a user's `kubectl apply` does: a changed spec is a new generation."""
        key = (resource, obj["metadata"]["namespace"], obj["metadata"]["name"])
        before = self.objects.get(key)
        stored = copy.deepcopy(dict(obj))
        if resource != CONFIG_MAPS:
            generation = before["metadata"]["generation"] + (before["spec"] != obj["spec"]) if before else 1
            uid = before["metadata"]["uid"] if before else f"uid-{next(self._versions)}"
            stored["metadata"] |= {"generation": generation, "uid": uid, "creationTimestamp": "2026-11-30T00:00:00Z"}
            stored["status"] = before.get("status", {}) if before else {}
        return self._store(key, stored)

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        del self.objects[resource, namespace, name]
        self._version = next(self._versions)

    async def list(self, resource: Resource, *, namespace: str | None = None, label_selector: str = "") -> Listing:
        wanted = dict(pair.split("=") for pair in label_selector.split(",") if pair)
        found = [
            copy.deepcopy(obj)
            for (kind, home, _), obj in self.objects.items()
            if kind == resource
            and namespace in (None, home)
            and wanted.items() <= obj["metadata"].get("labels", {}).items()
        ]
        return Listing(tuple(found), self._version)

    async def apply(self, manifest: Object) -> Object:
        self._write()
        return self.put(CONFIG_MAPS, manifest)

    async def drop_data(self, ref: Ref, keys: Mapping[str, Sequence[str]]) -> None:
        self._write()
        obj = self.objects[ref.resource, ref.namespace, ref.name]
        for member, names in keys.items():
            obj[member] = {name: value for name, value in obj.get(member, {}).items() if name not in names}

    async def delete(self, ref: Ref) -> None:
        self._write()
        self.objects.pop((ref.resource, ref.namespace, ref.name), None)

    async def apply_status(self, target: Object, status: Object) -> Object:
        self._write()
        resource = {each.kind: each for each in (POLICIES, OVERRIDES)}[target["kind"]]
        key = (resource, target["metadata"]["namespace"], target["metadata"]["name"])
        if key not in self.objects or self.objects[key]["metadata"]["uid"] != target["metadata"]["uid"]:
            raise Missing("gone")
        # Server-side apply: what other managers own, people's fields, stays.
        kept = {
            field: self.objects[key]["status"][field]
            for field in PEOPLES_FIELDS
            if field in self.objects[key]["status"]
        }
        return self._store(key, {**self.objects[key], "status": {**copy.deepcopy(dict(status)), **kept}})

    async def end_switches(self, target: Object, names: Sequence[str]) -> Object:
        self._write()
        key = (POLICIES, target["metadata"]["namespace"], target["metadata"]["name"])
        if self.objects[key]["metadata"]["resourceVersion"] != target["metadata"]["resourceVersion"]:
            raise Missing("another version")
        status = copy.deepcopy(self.objects[key]["status"])
        status["killSwitches"] = {name: each for name, each in status["killSwitches"].items() if name not in names}
        return self._store(key, {**self.objects[key], "status": status})

    def patch_status(self, name: str, **fields: Any) -> None:
        """What a person's merge patch does to maps of people's fields: one field of status, entry by entry."""
        key = (POLICIES, "team", name)
        status = copy.deepcopy(self.objects[key]["status"])
        for field, entries in fields.items():
            merged = status.get(field, {}) | entries
            status[field] = {entry: value for entry, value in merged.items() if value is not None}
        self._store(key, {**self.objects[key], "status": status})

    def drop_status(self, name: str) -> None:
        """What a restore from a backup does to a policy's status."""
        key = (POLICIES, "team", name)
        self._store(key, {**self.objects[key], "status": {}})

    def _write(self) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.writes += 1

    def _store(self, key: tuple[Resource, str, str], obj: dict[str, Any]) -> dict[str, Any]:
        self._version = next(self._versions)
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self._version)}
        self.objects[key] = obj
        return copy.deepcopy(obj)


class FollowingLimiters:
    """One limiter that runs what the cluster's ConfigMap says, while `follows` is true, and `more` that do the same."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.follows = True
        self.refuses = ""
        self.error = ""
        self.more: tuple[str, ...] = ()
        self.store_down = False
        self.counts: dict[RuleKey, RuleCounts] = {}
        self._cluster = cluster
        self.applied = AppliedRuleset(0, "")

    async def read(self) -> tuple[LimiterReport, ...]:
        if self.error:
            return (LimiterReport("http://l", error=self.error),)
        config_map = self._cluster.objects.get((CONFIG_MAPS, "weir-system", "edge-rules-0"))
        live = read_live(config_map)
        if live.revision > self.applied.revision and self.refuses:
            self.applied = AppliedRuleset(self.applied.revision, self.applied.digest, live.revision, self.refuses)
        elif live.revision > self.applied.revision and self.follows:
            self.applied = AppliedRuleset(live.revision, live.digest)
        rulesets = {"edge-rules-0": self.applied}
        names = ("edge-0", *self.more)
        addresses = ("http://l", *(f"http://{name}" for name in self.more))
        return tuple(
            LimiterReport(address, name, rulesets=rulesets, store_down=self.store_down, counts=dict(self.counts))
            for address, name in zip(addresses, names, strict=True)
        )


class HeardEvents:
    """Takes Events down."""

    def __init__(self) -> None:
        self.announced: list[Announcement] = []

    def announce(self, announcement: Announcement) -> None:
        self.announced.append(announcement)


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def forward(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class World:
    """A cluster, its limiters, a clock, and an operator's turns over them."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.limiters = FollowingLimiters(self.cluster)
        self.clock = SetClock()
        self.start_operator()

    def start_operator(self) -> None:
        """A new process: it remembers nothing."""
        self.marked: set[str] = set()
        self.metrics = Metrics()
        self.store = Store([GATEWAY], self.marked.add)
        self.events = HeardEvents()
        tools = Tools(self.cluster, self.store, self.clock, self.metrics, self.events)
        self.turn = GatewayTurn(GATEWAY, self.limiters, tools)
        self.orphans = OrphansTurn(tools)
        self._recalled = False

    async def list(self) -> set[str]:
        """Take a full list; return the gateways that it is news to."""
        self.marked.clear()
        for resource, namespace in self.store.scopes():
            selector = "app.kubernetes.io/managed-by=weir-operator" if resource == CONFIG_MAPS else ""
            listing = await self.cluster.list(resource, namespace=namespace, label_selector=selector)
            self.store.relist((resource, namespace), listing)
        return set(self.marked)

    async def settle(self) -> float:
        """What the list, the watch and the loops do until there is nothing left to do."""
        next_in_s = 0.0
        for _ in range(4):
            await self.list()
            if not self._recalled:
                self.turn.recall()
                self._recalled = True
            next_in_s = await self.turn.take(news=True)
            await self.orphans.take(news=True)
        return next_in_s

    def policy(self, name: str = "api", **spec: Any) -> dict[str, Any]:
        """Apply a policy as a user does."""
        rules = [{"name": "burst", "limit": {"requests": 1, "period": "1s"}}]
        return self.cluster.put(
            POLICIES, _object(POLICIES, name, {"gateway": "edge", "mode": "Enforce", "rules": rules} | spec)
        )

    def override(self, name: str = "free", **spec: Any) -> dict[str, Any]:
        """Apply an override as a user does."""
        whole = {"policyRef": {"name": "api"}, "rules": ["burst"], "subjects": [{"x-api-key": "k"}], "action": "Exempt"}
        return self.cluster.put(OVERRIDES, _object(OVERRIDES, name, whole | spec))

    def status(self, resource: Resource = POLICIES, name: str = "api") -> dict[str, Any]:
        status: dict[str, Any] = self.cluster.objects[resource, "team", name]["status"]
        return status

    def conditions(self, resource: Resource = POLICIES, name: str = "api") -> dict[str, tuple[str, str]]:
        return {c["type"]: (c["status"], c["reason"]) for c in self.status(resource, name)["conditions"]}

    def live(self) -> Live:
        return read_live(self.cluster.objects.get((CONFIG_MAPS, "weir-system", "edge-rules-0")))

    def policy_ids(self) -> list[str]:
        ruleset = self.live().ruleset
        return [policy.id for policy in ruleset.policies] if ruleset is not None else []


def _object(resource: Resource, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"namespace": "team", "name": name},
        "spec": dict(spec),
    }


@pytest.fixture
def world() -> World:
    return World()
