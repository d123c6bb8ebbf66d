# SPDX-License-Identifier: Apache-2.0
"""How long the operator computes for a big gateway, in this process, without a cluster.

Counted is CPU time: on an idle machine it is the time that passes, and on a busy one it is still the operator's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import policies
from figures import Figure, median_of

POLICIES, OVERRIDES = 1000, 12_000
_RUNS = 5


def measure() -> list[Figure]:
    """A full compile from parsed objects to rendered rules, the same after the edit of one policy, and parsing."""
    size = f"{POLICIES:,} policies and {OVERRIDES:,} overrides"
    objects, exceptions = policies.varied(POLICIES), policies.overrides(OVERRIDES, of=POLICIES)
    inputs = policies.parse(objects, exceptions)
    policies.render(policies.parse(objects[:10]))  # imports and caches are a matter of the start, not of a pass
    edits = policies.revisions(objects, exceptions)
    next(edits)
    return [
        median_of(
            _cpu_s(lambda: policies.render(inputs)),
            f"operator: {size} compiled and rendered",
            "s",
            must=1.0,
            stretch=0.3,
        ),
        median_of(
            _cpu_s(lambda: next(edits)), f"operator: edit of one of {size} to rendered", "s", must=0.1, stretch=0.03
        ),
        median_of(_cpu_s(lambda: policies.parse(objects, exceptions)), f"operator: {size} parsed, at its start", "s"),
    ]


def _cpu_s(work: Callable[[], object]) -> list[float]:
    samples = []
    for _ in range(_RUNS):
        started = time.process_time()
        work()
        samples.append(time.process_time() - started)
    return samples
