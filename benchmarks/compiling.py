# SPDX-License-Identifier: Apache-2.0
"""How long the operator computes: from policies as JSON to the rendered ruleset, in this process, without a cluster.

Counted is CPU time: on an idle machine it is the time that passes, and on a busy one it is still the operator's own.
"""

from __future__ import annotations

import time
from dataclasses import replace

import policies
from figures import Figure, median_of

POLICIES = 300
_RUNS = 7
_MUST_S = 0.5


def measure() -> list[Figure]:
    """Parse, compile and render all of them, several times over."""
    objects = policies.varied(POLICIES)
    policies.compile_and_render(objects[:10])  # imports and caches are a matter of the start, not of a pass
    samples = []
    for _ in range(_RUNS):
        started = time.process_time()
        policies.compile_and_render(objects)
        samples.append(time.process_time() - started)
    return [
        replace(median_of(samples, f"operator: {POLICIES} policies compiled and rendered", "s of CPU"), must=_MUST_S)
    ]
