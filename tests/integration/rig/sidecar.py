# SPDX-License-Identifier: Apache-2.0
"""`weir-limiter serve` as a process, with its mounted ConfigMap, its admin port and its log."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.client import sample
from lab.kubelet import swap
from lab.processes import Part, free_port, spawn
from lab.waiting import eventually
from rig.documents import GATEWAY, revision_of
from weir_limiter.config import Settings, read

PROGRAM = Path(sys.executable).with_name("weir-limiter")
HASH_KEY = "integration-tests-share-this-hash-key"
NAME = f"{GATEWAY}-rules-0"
GLASS = f"{GATEWAY}-breakglass"
_WITHIN_S = 10.0  # every change is live within half a second on an idle machine
PROMPT = "5ms"  # what users get
PATIENT = "5s"  # a busy machine must not turn a decision into a store failure; tests of failures set their own deadline


def prompt(start: Callable[..., Sidecar]) -> Callable[..., Sidecar]:
    """A `start` whose sidecars have the deadline that users get: for tests that are about it."""
    return lambda url, *, flags=(), **options: start(url, flags=("--store-deadline", PROMPT, *flags), **options)


def in_process(socket: Path, store_url: str, **flags: str) -> Settings:
    """Settings of a limiter in the test's process, which is given its rules directly; `flags` as on a command line."""
    given = {
        "gateway": GATEWAY, "instance": "in-process", "listen": f"unix:{socket}", "admin": f"127.0.0.1:{free_port()}",
        "rules-dir": str(socket.parent), "log-level": "error", **{n.replace("_", "-"): v for n, v in flags.items()},
    }  # fmt: skip
    settings = read(given, {"WEIR_LIMITER_STORE": store_url, "WEIR_LIMITER_HASH_KEY": HASH_KEY})
    return replace(settings, rules_dir=None)


@dataclass(slots=True)
class Mount:
    """A directory that is updated as the kubelet updates a ConfigMap volume."""

    directory: Path

    def publish(self, document: bytes, *, key: str = "ruleset.json") -> None:
        """Mount this document and nothing else."""
        swap(self.directory, {key: document})


@dataclass(slots=True)
class Sidecar:
    """One running limiter. `part` is replaced by `restart`; `within` is what its command line is put behind."""

    run: Path
    store_url: str
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ()
    name: str = "limiter"
    admin_port: int = field(default_factory=free_port)
    part: Part = field(init=False)

    def __post_init__(self) -> None:
        self.rules_dir.mkdir(parents=True, exist_ok=True)
        self.part = self._spawn()

    @property
    def rules_dir(self) -> Path:
        """Where it looks for its rules."""
        return self.run / f"{self.name}-rules"

    @property
    def mount(self) -> Mount:
        """The same to be written to, as it sees it."""
        return Mount(Path(f"/proc/{self.part.pid}/root{self.rules_dir}") if self.within else self.rules_dir)

    @property
    def socket(self) -> Path:
        """Where Envoy asks."""
        return self.run / f"{self.name}.sock"

    @property
    def state_dir(self) -> Path:
        """Where it keeps the last good rules."""
        return self.run / f"{self.name}-state"

    def publish(self, document: bytes) -> None:
        """Mount a document and wait until it is in force."""
        self.mount.publish(document)
        self.wait_revision(revision_of(document))

    def wait_revision(self, revision: int) -> None:
        """Return once exactly this revision is in force."""
        eventually(lambda: self.ruleset()["revision"] == revision, _WITHIN_S, what=f"revision {revision} is in force")

    def wait_store(self, state: str) -> None:
        """Return once the store is Up or Down for it."""
        eventually(lambda: self.status()["store"]["state"] == state, _WITHIN_S, what=f"the store is {state}")

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of an admin page. Raises OSError while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def status(self) -> dict[str, Any]:
        """The status document."""
        return dict(json.loads(self.get("/status")[1]))

    def ruleset(self) -> dict[str, Any]:
        """The ruleset's part of the status document. Raises AssertionError before the first document."""
        rulesets = self.status()["rulesets"]
        assert NAME in rulesets, "no ruleset yet"
        return dict(rulesets[NAME])

    def rule(self, name: str = "burst") -> dict[str, Any]:
        """One rule's evidence."""
        return next(entry for entry in self.status()["rules"] if entry["rule"] == name)

    def metric(self, name: str, **labels: str) -> float:
        """A metric's value; 0 for a series that does not exist (yet)."""
        return sample(self.get("/metrics")[1], name, **labels)

    def resident_bytes(self) -> int:
        """Its resident memory."""
        status = Path(f"/proc/{self.part.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def log(self) -> str:
        """Everything it has logged."""
        return self.part.log.read_text()

    def wait_up(self) -> None:
        """Return once its admin port answers."""
        eventually(lambda: self.get("/healthz")[0] == 200, _WITHIN_S, what=f"{self.name} answers; {self.part.tail()}")

    def restart(self) -> None:
        """End it and start it again with the same command line."""
        self.part.stop()
        self.part = self._spawn()
        self.wait_up()

    def _spawn(self) -> Part:
        argv = [
            *self.within, str(PROGRAM), "serve", "--gateway", GATEWAY, "--instance", self.name,
            "--listen", f"unix:{self.socket}", "--admin", f"127.0.0.1:{self.admin_port}",
            "--rules-dir", str(self.rules_dir), "--drain", "2s", "--store-deadline", PATIENT, *self.flags,
        ]  # fmt: skip
        env = {"WEIR_LIMITER_STORE": self.store_url, "WEIR_LIMITER_HASH_KEY": HASH_KEY, **self.env}
        return spawn(self.name, argv, log=self.run / f"{self.name}.log", env=env)
