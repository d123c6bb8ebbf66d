# SPDX-License-Identifier: Apache-2.0
"""What kopf is told to watch: users' objects everywhere, ConfigMaps in the gateways' namespaces and nowhere else."""

import time
from typing import Any

import kopf
import pytest

from weir_operator.handlers.watch import Watch


@pytest.mark.parametrize(
    ("namespaces", "expected"),
    [(["b", "a", "b"], [None, ["a", "b"]]), ([], [None])],
    ids=["two gateways in one namespace and one in another", "no gateway"],
)
def test_config_maps_are_watched_in_the_gateways_namespaces_only(
    monkeypatch: pytest.MonkeyPatch, namespaces: list[str], expected: list[Any]
) -> None:
    """Without a namespace kopf would watch, or be refused, all ConfigMaps of the cluster."""
    told: list[Any] = []

    async def operator(*, stop_flag: Any, **options: Any) -> None:
        told.append(options.get("namespaces"))
        await stop_flag.wait()

    monkeypatch.setattr(kopf, "operator", operator)
    watch = Watch(lambda *_: None, namespaces, "a=b")
    watch.start()
    end_s = time.monotonic() + 5
    while len(told) < len(expected) and time.monotonic() < end_s:
        time.sleep(0.001)
    watch.stop()
    assert told == expected
