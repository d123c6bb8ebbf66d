# SPDX-License-Identifier: Apache-2.0
"""What a lab has started, in a file, so that another process (or the next run) can end exactly that."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.cluster import Cluster, KubectlError
from lab.processes import Part, load, save, spawn, start_time, stop_all
from lab.programs import Command
from lab.progress import say


@dataclass(slots=True)
class State:
    """The saved state of one lab, in its folder."""

    folder: Path

    @property
    def _parts_file(self) -> Path:
        return self.folder / "parts.json"

    @property
    def _commands_file(self) -> Path:
        return self.folder / "commands.json"

    @property
    def _rest_file(self) -> Path:
        return self.folder / "rest.json"

    def remember(self, parts: Mapping[Part, Command], cluster: Cluster | None, sockets: Path, manifests: Path) -> None:
        """Write down what runs: `parts` in start order without the cluster's own, each with its command."""
        self.folder.mkdir(parents=True, exist_ok=True)
        save(list(parts), self._parts_file)
        commands = {part.name: {"argv": command.argv, "env": dict(command.env)} for part, command in parts.items()}
        self._commands_file.write_text(json.dumps(commands, indent=1))
        save(cluster.parts if cluster else [], self._cluster_parts_file)
        described = cluster.describe() if cluster else None
        self._rest_file.write_text(
            json.dumps(
                {
                    "cluster": described,
                    "sockets": str(sockets),
                    "manifests": str(manifests),
                    "starter": [os.getpid(), start_time(os.getpid())],
                }
            )
        )

    @property
    def running(self) -> bool:
        """Whether anything of it still runs."""
        return any(part.alive for part in [*load(self._parts_file), *load(self._cluster_parts_file)])

    @property
    def in_use(self) -> bool:
        """Whether the process that started it is another one than this and still runs (`make up` does not stay)."""
        if not self._rest_file.exists():
            return False
        pid, born = json.loads(self._rest_file.read_text())["starter"]
        return bool(pid != os.getpid() and start_time(pid) == born)

    def revive(self) -> list[str]:
        """Start again, with the same command, what has ended of the remembered parts; return their names."""
        parts = load(self._parts_file)
        commands = json.loads(self._commands_file.read_text()) if parts else {}
        dead = [part for part in parts if not part.alive]
        for part in dead:
            command = commands[part.name]
            parts[parts.index(part)] = spawn(part.name, command["argv"], log=part.log, env=command["env"])
            save(parts, self._parts_file)
        return [part.name for part in dead]

    def stop(self) -> list[str]:
        """End everything that was remembered and forget it; return the names of what still ran."""
        parts, cluster_parts = load(self._parts_file), load(self._cluster_parts_file)
        ended = [part.name for part in [*cluster_parts, *parts] if part.alive]
        stop_all(parts)
        if self._rest_file.exists():
            rest: dict[str, Any] = json.loads(self._rest_file.read_text())
            if rest["cluster"]:
                _clean(Cluster.remembered(rest["cluster"], cluster_parts), Path(rest["manifests"]))
            shutil.rmtree(rest["sockets"], ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        return ended

    @property
    def _cluster_parts_file(self) -> Path:
        return self.folder / "cluster-parts.json"


def _clean(cluster: Cluster, manifests: Path) -> None:
    """Stop a cluster of ours; from somebody else's, remove what the lab had put there."""
    if cluster.disposable:
        cluster.stop()
        return
    for manifest in sorted(manifests.glob("*.yaml"), reverse=True):
        try:
            cluster.kubectl("delete", "--ignore-not-found", "--timeout=50s", "-f", str(manifest))
        except KubectlError as refused:
            say(f"could not remove what {manifest} describes: {refused}")
