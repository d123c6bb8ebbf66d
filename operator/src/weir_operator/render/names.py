# SPDX-License-Identifier: Apache-2.0
"""Every name, label and annotation that the operator gives to an object, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

MANAGER = "weir-operator"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
GATEWAY_LABEL = "weir.dev/gateway"
PART_LABEL = "weir.dev/part"
REVISION_ANNOTATION = "weir.dev/revision"
DIGEST_ANNOTATION = "weir.dev/digest"
SELECTOR = f"{MANAGED_BY_LABEL}={MANAGER}"
"""The label selector of everything that the operator generates."""


class Part(StrEnum):
    """What a generated object is for."""

    RULES = "rules"
    """The ruleset document, for the limiters."""
    ENVOY = "envoy"
    """Envoy's configuration."""
    CLOSED = "closed"
    """What Envoy refuses while the limiter gives no answer."""


def rules_config_map(gateway: str) -> str:
    """Name of the ConfigMap with a gateway's rules; the number leaves room for several shards."""
    return f"{gateway}-rules-0"


def envoy_config_map(gateway: str) -> str:
    """Name of the ConfigMap with a gateway's Envoy configuration."""
    return f"{gateway}-envoy"


def closed_config_map(gateway: str) -> str:
    """Name of the ConfigMap with what a gateway's Envoys refuse while the limiter gives no answer."""
    return f"{gateway}-closed"


def labels(gateway: str, part: Part) -> Mapping[str, str]:
    """The labels of a generated object."""
    return {MANAGED_BY_LABEL: MANAGER, GATEWAY_LABEL: gateway, PART_LABEL: str(part)}
