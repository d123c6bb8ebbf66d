# SPDX-License-Identifier: Apache-2.0
"""The operator's metrics, one table. Label sets are closed: gateways come from the settings, all else is enumerated.

No module-level registry: the composition root makes one and hands it on.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from weir_operator.domain.conditions import Reason

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # half a second is the budget


class Metrics:
    """Every metric of the operator, registered once."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.reconciles = Counter(
            "weir_operator_reconciles",
            "Passes over a gateway, by how they ended.",
            ["gateway", "outcome"],
            registry=registry,
        )
        self.compile_seconds = Histogram(
            "weir_operator_compile_seconds",
            "From parsed objects to the ruleset document.",
            ["gateway"],
            buckets=SECONDS,
            registry=registry,
        )
        self.ruleset_revision = Gauge(
            "weir_operator_ruleset_revision", "Revision of the published ruleset.", ["gateway"], registry=registry
        )
        self.ruleset_bytes = Gauge(
            "weir_operator_ruleset_bytes", "Size of the published ruleset as stored.", ["gateway"], registry=registry
        )
        self.config_map_writes = Counter(
            "weir_operator_config_map_writes", "Writes of generated ConfigMaps.", ["gateway"], registry=registry
        )
        self.objects_refused = Gauge(
            "weir_operator_objects_refused",
            "Policies and overrides that are not accepted, by reason.",
            ["gateway", "reason"],
            registry=registry,
        )
        self._seen_reasons: set[tuple[str, str]] = set()
        self.policies = Gauge(
            "weir_operator_policies",
            "Policies by what the condition Enforcing says of them.",
            ["gateway", "enforcing", "reason"],
            registry=registry,
        )
        self._seen_verdicts: set[tuple[str, str, str]] = set()
        self.limiter_up = Gauge(
            "weir_operator_limiter_up",
            "Whether a limiter answers its status endpoint.",
            ["gateway", "limiter"],
            registry=registry,
        )
        self.limiter_revision = Gauge(
            "weir_operator_limiter_revision",
            "Revision that a limiter says it runs.",
            ["gateway", "limiter"],
            registry=registry,
        )
        self.status_writes = Counter(
            "weir_operator_status_writes", "Status documents written.", ["resource"], registry=registry
        )
        self.api_answers = Counter(
            "weir_operator_api_answers",
            "Answers of the API server; code 0 is no answer.",
            ["verb", "code"],
            registry=registry,
        )
        self.missed_events = Counter(
            "weir_operator_missed_events", "Changes that a full list showed and the watch had not.", registry=registry
        )

        self.leading = Gauge("weir_operator_leading", "Whether this replica is the one that writes.", registry=registry)
        self.lease_requests = Counter(
            "weir_operator_lease_requests",
            "Looks at the lease, by outcome: granted, held_by_another, lost (to a quicker replica) or failed.",
            ["outcome"],
            registry=registry,
        )
        self.interventions = Counter(
            "weir_operator_interventions",
            "Kill switches set, ended and expired, and approvals given, by the reason of their Event.",
            ["gateway", "change"],
            registry=registry,
        )
        self.kill_switches = Gauge(
            "weir_operator_kill_switch",
            "1 for each kill switch that is live; gone when it is not. `reason` is cut to 80 characters.",
            ["gateway", "policy", "rule", "mode", "by", "reason"],
            registry=registry,
        )
        self.break_glass = Gauge(
            "weir_operator_break_glass",
            "Entries of the break-glass ConfigMap that a limiter applies; 0 normally.",
            ["gateway", "limiter"],
            registry=registry,
        )
        self.events = Counter(
            "weir_operator_events",
            "Events on users' objects: written, known already, refused by the API server, dropped.",
            ["outcome"],
            registry=registry,
        )

        self.admission_reviews = Counter(
            "weir_operator_admission_reviews",
            "Reviews by the validating webhook, by outcome: allowed or refused.",
            ["outcome"],
            registry=registry,
        )
        self.admission_seconds = Histogram(
            "weir_operator_admission_seconds", "One review.", buckets=SECONDS, registry=registry
        )

    def forget_gateways(self) -> None:
        """Drop what only a leader knows: two replicas must not tell two stories."""
        for gauge in (
            self.ruleset_revision,
            self.ruleset_bytes,
            self.limiter_up,
            self.limiter_revision,
            self.kill_switches,
            self.break_glass,
        ):
            gauge.clear()
        self.objects_refused.clear()
        self._seen_reasons.clear()
        self.policies.clear()
        self._seen_verdicts.clear()

    def count_refused(self, gateway: str, by_reason: Mapping[str, int]) -> None:
        """Set the number of refused objects, also to 0 for the reasons that no longer occur."""
        for reason in Reason:
            if reason in by_reason or (gateway, str(reason)) in self._seen_reasons:
                self._seen_reasons.add((gateway, str(reason)))
                self.objects_refused.labels(gateway, str(reason)).set(by_reason.get(str(reason), 0))

    def count_enforcing(self, gateway: str, by_verdict: Mapping[tuple[str, str], int]) -> None:
        """Set the number of policies by status and reason, also to 0 for what no longer occurs."""
        self._seen_verdicts |= {(gateway, *verdict) for verdict in by_verdict}
        for seen, status, reason in self._seen_verdicts:
            if seen == gateway:
                self.policies.labels(gateway, status, reason).set(by_verdict.get((status, reason), 0))

    def expose(self) -> bytes:
        """Return everything in the text format."""
        return generate_latest(self.registry)
