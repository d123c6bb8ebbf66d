# SPDX-License-Identifier: Apache-2.0
"""Limiters for a benchmark: a process each, with a ruleset and a folder of its own."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import policies
from lab.client import fetch
from lab.kubelet import swap
from lab.processes import Part, free_port, spawn
from lab.waiting import eventually
from lab.workspace import LOGS, VENV

_UP_S = 30.0
_APPLIED_S = 30.0
_RELOADS_PER_S = 1.0  # more often than any team edits


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A running limiter."""

    part: Part
    socket: Path
    rules: Path
    admin: int

    def wait_ready(self) -> None:
        """Return when it decides. Raises AssertionError with its log's end when it does not."""
        eventually(lambda: self._get("/readyz").status == 200, _UP_S, what=self.part.tail())

    def revision(self) -> int:
        """The revision that it runs."""
        (ruleset,) = self._get("/status").json()["rulesets"].values()
        return int(ruleset["revision"])

    @contextmanager
    def reloading(self, revisions: list[dict[str, bytes]]) -> Iterator[None]:
        """Publish these, one a second, while the body runs. Raises AssertionError when the last is not applied."""
        before, ended = self.revision(), threading.Event()

        def publish() -> None:
            for entries in revisions:
                swap(self.rules, entries)
                if ended.wait(1 / _RELOADS_PER_S):
                    return

        publisher = threading.Thread(target=publish, name="publisher")
        publisher.start()
        try:
            yield
        finally:
            ended.set()
            publisher.join()
        eventually(lambda: self.revision() > before, _APPLIED_S, what=f"a later revision than {before} runs")

    def _get(self, path: str) -> Any:
        return fetch(f"http://127.0.0.1:{self.admin}{path}")


def start(folder: Path, entries: dict[str, bytes], store_url: str, *, flags: tuple[str, ...] = ()) -> Sidecar:
    """Start a limiter with these rules. Does not wait until it is ready."""
    admin, socket, rules = free_port(), folder / "limiter.sock", folder / "rules"
    swap(rules, entries)
    argv = [
        str(VENV / "bin" / "weir-limiter"), "serve", "--gateway", policies.GATEWAY.name, "--instance", "bench",
        "--listen", f"unix:{socket}", "--admin", f"127.0.0.1:{admin}", "--rules-dir", str(rules),
        "--log-level", "warn", *flags,
    ]  # fmt: skip
    env = {"WEIR_LIMITER_STORE": store_url, "WEIR_LIMITER_HASH_KEY": secrets.token_hex(32)}
    part = spawn("limiter", argv, log=LOGS / "bench" / f"limiter-{folder.name}.log", env=env)
    return Sidecar(part, socket, rules, admin)
