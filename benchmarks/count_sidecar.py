# SPDX-License-Identifier: Apache-2.0
"""Instructions of one decision in the installed limiter, with a real store behind it.

One ruleset has a host for each scenario. Every life makes a few calls of all scenarios, and one life for each scenario
makes many more of it; the difference is what those cost. Calls come one after the other, because how many a limiter
finds in one read depends on the machine; so a count is that of a decision that wakes the limiter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import callgrind
import load
import policies
from lab.client import fetch
from lab.kubelet import swap
from lab.processes import free_port
from lab.store import Store, start_store
from lab.workspace import VENV

_WARM_UP, _COUNTED = 40, 1600
_KEYS = [f"key-{number:04}" for number in range(20)]  # few, so that those of `refused` are exhausted by the warm-up
_ENV = {
    "WEIR_LIMITER_HASH_KEY": "the same key, the same hashes, the same count",
    "PYTHONHASHSEED": "0",
    "WEIR_LIMITER_STORE_DEADLINE": "10s",  # fifty times slower than it runs, it must not give up
    "WEIR_LIMITER_LOG_LEVEL": "warn",
}
_HOSTS = {
    "one rule allowed": policies.HOST,
    "one rule refused": policies.EXHAUSTED_HOST,
    "three rules allowed": policies.THREE_HOST,
    "unmatched": "elsewhere.example.org",
}


@dataclass(frozen=True, slots=True)
class Rig:
    """A store and a ruleset, for the lives of limiters."""

    store: Store
    rules: Path

    @classmethod
    def start(cls, folder: Path) -> Rig:
        """Start the store and write the rules."""
        objects = [policies.generous(), policies.exhausted(), policies.three_of_one_subject()]
        swap(folder / "rules", policies.render(policies.parse(objects)))
        return cls(start_store(folder, name="store"), folder / "rules")

    def stop(self) -> None:
        """End the store."""
        self.store.stop()

    def life(self, folder: Path, scenario: str | None) -> int:
        """Instructions of a limiter that answers the warm-up, and the calls of a scenario."""
        admin, socket = free_port(), folder / "limiter.sock"
        argv = [
            str(VENV / "bin" / "python"), "-m", "weir_limiter", "serve", "--gateway", policies.GATEWAY.name,
            "--instance", "count", "--listen", f"unix:{socket}", "--admin", f"127.0.0.1:{admin}",
            "--rules-dir", str(self.rules),
        ]  # fmt: skip

        def ready() -> bool:
            return fetch(f"http://127.0.0.1:{admin}/readyz").status == 200

        def use() -> None:
            for host in _HOSTS.values():
                _call({"unix": str(socket)}, host, _WARM_UP)
            if scenario is not None:
                report = _call({"unix": str(socket)}, _HOSTS[scenario], _COUNTED)
                _check(scenario, report)

        env = {**_ENV, "WEIR_LIMITER_STORE": self.store.url}
        return callgrind.life(callgrind.Counted("limiter", argv, ready, env), folder, use)


def scenarios() -> Sequence[str]:
    """What is counted."""
    return list(_HOSTS)


def per_call(instructions: int) -> float:
    """Instructions of one decision, from those that a life with a scenario has above one without."""
    return instructions / _COUNTED


def _call(address: load.Address, host: str, calls: int) -> load.Report:
    target = load.checks([load.request(host, key) for key in _KEYS])
    return load.drive(address, target, load.counted(calls, in_flight=1), connections=1, seconds=1.0)


def _check(scenario: str, report: load.Report) -> None:
    found = report.all
    expected = (0, found.calls) if scenario.endswith("refused") else (found.calls, 0)
    if (found.allowed, found.refused) != expected:
        raise RuntimeError(f"{scenario}: {found.allowed} were allowed and {found.refused} refused; nothing is counted")
