# SPDX-License-Identifier: Apache-2.0
"""A limiter that reads its rules from a folder only, as from a mounted ConfigMap, and a folder that somebody holds.

So it can be stuck on old rules, or be given rules that it refuses, while its neighbours follow the API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.cluster import Cluster
from lab.layout import RULES_CONFIGMAP, SYSTEM_NAMESPACE
from lab.programs import Limiter

_FILE = "ruleset.json"


class Mount:
    """The folder, which changes only when told to."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder = folder
        self._cluster = cluster

    def update(self, **changed: Any) -> None:
        """Take what the ConfigMap says now, with some members of the document changed."""
        live = self._cluster.get("configmap", RULES_CONFIGMAP, SYSTEM_NAMESPACE)["data"][_FILE]
        partial = self.folder / "partial"
        partial.write_text(json.dumps({**json.loads(live), **changed}) if changed else live)
        partial.rename(self.folder / _FILE)


@contextmanager
def mounted(limiter: Limiter, folder: Path, cluster: Cluster) -> Iterator[Mount]:
    """Restart a limiter so that it reads `folder`; afterwards as it was. The folder has today's rules at first."""
    mount, before = Mount(folder, cluster), limiter.program.argv
    mount.update()
    place = before.index("--rules-configmap")
    limiter.program.argv = (*before[:place], "--rules-dir", str(folder), *before[place + 2 :])
    _restart(limiter)
    try:
        yield mount
    finally:
        limiter.program.argv = before
        _restart(limiter)


def _restart(limiter: Limiter) -> None:
    limiter.program.restart()
    limiter.program.wait_ready()
