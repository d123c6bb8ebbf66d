# SPDX-License-Identifier: Apache-2.0
"""All that the operator knows of the cluster, and which gateway a piece of news concerns.

Owns the caches and the translation of "this object changed" into "that gateway is dirty": an event means nothing more.
Must not compile, decide or write. Used from one event loop only.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Generic, TypeVar

from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.attachment import Attachment, attach
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.ruleset import Ruleset
from weir_operator.domain.specs import Meta, OverrideInput, PolicyInput
from weir_operator.reconcile.cache import Change, Key, ObjectCache, key_of
from weir_operator.reconcile.observation import Observation, Orphans
from weir_operator.reconcile.ports import CONFIG_MAPS, OVERRIDES, POLICIES, Listing, Object, Resource
from weir_operator.render.names import GATEWAY_LABEL, envoy_config_map, rules_config_map

ORPHANS = ""
"""Stands for the objects that no gateway takes, where a gateway's name is asked for."""

DEFAULT_GATEWAY = "default"

logger = logging.getLogger(__name__)

T = TypeVar("T")
Scope = tuple[Resource, str | None]


class Store:
    """The caches of all resources. `mark` is called with the name of each gateway that some news concerns."""

    def __init__(self, gateways: Sequence[Gateway], mark: Callable[[str], None]) -> None:
        self._gateways = {gateway.name: gateway for gateway in gateways}
        self._marked = mark
        self._news: Counter[str] = Counter()
        self._policies = ObjectCache()
        self._overrides = ObjectCache()
        self._config_maps = {gateway.namespace: ObjectCache() for gateway in gateways}
        self._live: dict[str, Ruleset] = {}
        self._running_ids: dict[str, tuple[frozenset[str], frozenset[str]]] = {}  # of policies and overrides, of _live
        self._parsed_policies: _Parsed[PolicyInput] = _Parsed(parse_policy)
        self._parsed_overrides: _Parsed[OverrideInput] = _Parsed(parse_override)

    def scopes(self) -> tuple[Scope, ...]:
        """Return what must be listed for the caches to be whole: resources, each with its namespace or None for all."""
        return (POLICIES, None), (OVERRIDES, None), *((CONFIG_MAPS, namespace) for namespace in self._config_maps)

    def observe(self, resource: Resource, obj: Object, *, deleted: bool) -> None:
        """Take one object's news from the watch."""
        cache = self._cache(resource, obj["metadata"].get("namespace"))
        change = cache.observe(obj, deleted=deleted) if cache is not None else None
        if change is not None and _matters(change):
            self._mark_all(self._concerned(resource, change))

    def news_of(self, gateway: str) -> int:
        """Return how much news a gateway has had: another number means that there is some more."""
        return self._news[gateway]

    def newest(self, scope: Scope) -> int:
        """Return the latest resource version known of a scope: read it before you ask for a list."""
        cache = self._cache(*scope)
        return cache.newest if cache is not None else 0

    def relist(self, scope: Scope, listing: Listing, *, asked_at: int = 0) -> int:
        """Take a whole list; return how many changes no event had told yet.

        `asked_at`: `newest` from before the list was asked for. The API server answers a list with what it holds by
        then, so an older answer means that its own history was rewound, as by restoring a backup of etcd. Without
        starting over, all news would look old until the versions had grown past what was known.
        """
        resource, namespace = scope
        cache = self._cache(resource, namespace)
        if cache is None:
            return 0
        if listing.resource_version < asked_at:
            logger.warning("the API server's history was rewound", extra={"resource": resource.qualified})
            found = cache.start_over(listing)
        else:
            found = cache.replace(listing)
        changes = [change for change in found if _matters(change)]
        for change in changes:
            self._mark_all(self._concerned(resource, change))
        return len(changes)

    def wrote(self, resource: Resource, obj: Object) -> None:
        """Take an object as it is after our own write: no news to anybody."""
        cache = self._cache(resource, obj["metadata"]["namespace"])
        if cache is not None:
            cache.observe(obj)

    def published(self, gateway: str, ruleset: Ruleset) -> None:
        """Take note of what a gateway's limiters are told to run."""
        before = self._live.get(gateway)
        if before is not ruleset and before != ruleset:
            self._live[gateway] = ruleset
            self._running_ids[gateway] = (
                frozenset(policy.id for policy in ruleset.policies),
                frozenset(override.id for override in ruleset.overrides),
            )
            self._mark(ORPHANS)  # what a gateway no longer runs may belong to nobody now

    def config_maps_of(self, gateway: str) -> Mapping[str, Object]:
        """Return the ConfigMaps in a gateway's namespace that are its own, by label or by name."""
        namespace = self._gateways[gateway].namespace
        return {
            config_map["metadata"]["name"]: config_map
            for config_map in self._config_maps[namespace]
            if gateway in self._owners(config_map)
        }

    def observation_of(self, gateway: str) -> Observation:
        """Return all that concerns one gateway now."""
        return Observation(self._attachment().groups[gateway], self.config_maps_of(gateway))

    def policies(self) -> tuple[PolicyInput, ...]:
        """Return all policies of the cluster, parsed."""
        return self._parsed_policies.of(self._policies)

    @property
    def live(self) -> Mapping[str, Ruleset]:
        """What each gateway's limiters are told to run, as far as this process was told."""
        return self._live

    def orphans(self) -> Orphans:
        """Return the objects that no gateway takes now."""
        attachment = self._attachment()
        return Orphans(
            _with_objects(self._policies, attachment.policies), _with_objects(self._overrides, attachment.overrides)
        )

    def current(self, resource: Resource, meta: Meta) -> Object | None:
        """Return the live object, if it is still the one, and of the generation, that was compiled."""
        cache = self._cache(resource, meta.namespace)
        obj = cache.get(meta.namespace, meta.name) if cache is not None else None
        if obj is None or (obj["metadata"]["uid"], obj["metadata"]["generation"]) != (meta.uid, meta.generation):
            return None
        return obj

    def _attachment(self) -> Attachment:
        policies = self._parsed_policies.of(self._policies)
        overrides = self._parsed_overrides.of(self._overrides)
        return attach(policies, overrides, tuple(self._gateways.values()), self._live)

    def _cache(self, resource: Resource, namespace: str | None) -> ObjectCache | None:
        if resource == CONFIG_MAPS:
            return self._config_maps.get(namespace or "")
        return self._policies if resource == POLICIES else self._overrides

    def _concerned(self, resource: Resource, change: Change) -> set[str]:
        states = [state for state in (change.before, change.after) if state is not None]
        if resource == CONFIG_MAPS:
            return {owner for state in states for owner in self._owners(state)}
        # Whatever the objects say now, a gateway that still runs the object, or its policy, may have to let go of it.
        object_id = "/".join(key_of(states[0]))
        if resource == OVERRIDES:
            policies = {_policy_key(state) for state in states}
            running = self._running({"/".join(key) for key in policies}, object_id)
            targets = (self._policies.get(*key) for key in policies)
            return {ORPHANS, *running, *(_gateway_name(target) for target in targets if target is not None)}
        # A policy that comes, goes or moves may also orphan or adopt overrides.
        return {ORPHANS, *self._running({object_id}), *(_gateway_name(state) for state in states)}

    def _running(self, policies: Set[str], override: str = "") -> set[str]:
        """Return the gateways that run one of these policies, or this override, by id."""
        return {
            name
            for name, (running, overrides) in self._running_ids.items()
            if override in overrides or not policies.isdisjoint(running)
        }

    def _owners(self, config_map: Object) -> set[str]:
        """Return the gateways that a ConfigMap belongs to: by its label, or by its name if it lost the label."""
        metadata = config_map["metadata"]
        label = (metadata.get("labels") or {}).get(GATEWAY_LABEL, "")
        there = (name for name, gateway in self._gateways.items() if gateway.namespace == metadata["namespace"])
        return {
            name
            for name in there
            if name == label or metadata["name"] in {rules_config_map(name), envoy_config_map(name)}
        }

    def _mark(self, name: str) -> None:
        self._news[name] += 1
        self._marked(name)

    def _mark_all(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            self._mark(name if name in self._gateways else ORPHANS)


class _Parsed(Generic[T]):
    """Parsed objects, kept as long as the object's generation is the same."""

    def __init__(self, parse: Callable[[Object], T]) -> None:
        self._parse = parse
        self._known: dict[tuple[str, int], T] = {}

    def of(self, objects: Iterable[Object]) -> tuple[T, ...]:
        """Return the parsed form of each object, in their order."""
        kept = {}
        for obj in objects:
            identity = obj["metadata"]["uid"], obj["metadata"]["generation"]
            kept[identity] = self._known[identity] if identity in self._known else self._parse(obj)
        self._known = kept
        return tuple(kept.values())


def _with_objects(cache: ObjectCache, outcomes: Mapping[str, Outcome]) -> tuple[tuple[Object, Outcome], ...]:
    found = ((cache.get(*object_id.split("/", 1)), outcome) for object_id, outcome in outcomes.items())
    return tuple((obj, outcome) for obj, outcome in found if obj is not None)


def _policy_key(override: Object) -> Key:
    name = (override.get("spec") or {}).get("policyRef", {}).get("name", "")
    return override["metadata"]["namespace"], name


def _gateway_name(policy: Object) -> str:
    return str((policy.get("spec") or {}).get("gateway", DEFAULT_GATEWAY))


def _matters(change: Change) -> bool:
    """Whether a change can change what we do: another spec, status or content; not a label on a user's object."""
    if change.before is None or change.after is None:
        return change.before is not change.after
    before, after = (_essence(state) for state in (change.before, change.after))
    return before != after


def _essence(obj: Object) -> tuple[Any, ...]:
    metadata = obj["metadata"]
    if "generation" in metadata:
        return metadata["uid"], metadata["generation"], obj.get("status")
    return metadata.get("labels"), metadata.get("annotations"), obj.get("data"), obj.get("binaryData")
