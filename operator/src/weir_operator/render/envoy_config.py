# SPDX-License-Identifier: Apache-2.0
"""The ConfigMap that carries a gateway's Envoy configuration. What stands in it is `envoy`'s."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from weir_operator.domain.gateways import Gateway
from weir_operator.render.envoy import render_envoy
from weir_operator.render.names import DIGEST_ANNOTATION, Part, envoy_config_map, labels


def render_envoy_config(gateway: Gateway) -> Mapping[str, Any]:
    """The ConfigMap `<gateway>-envoy`; its digest annotation lets a reader see at a glance whether two are the same."""
    files = dict(render_envoy(gateway))
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": envoy_config_map(gateway.name),
            "namespace": gateway.namespace,
            "labels": dict(labels(gateway.name, Part.ENVOY)),
            "annotations": {DIGEST_ANNOTATION: f"sha256:{digest}"},
        },
        "data": files,
    }
