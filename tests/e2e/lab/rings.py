# SPDX-License-Identifier: Apache-2.0
"""`make lint`, `make test-…` and `make test`: the rings of tests, cheapest first, and one summary line over all.

A ring is a list of commands. The runner shows their output as it comes, counts what they ran, and stops after the first
ring with a failure, because what fails in a cheap ring explains what would fail in a dear one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import cluster, toolbox, toxiproxy
from lab.progress import CommandFailedError, say
from lab.workspace import LOGS, ROOT, VENV

_BIN = VENV / "bin"
_RUST = ROOT / "limiter-sidecar"
_ENV = {**os.environ, "PATH": f"{_BIN}:{os.environ['PATH']}"}
_REPORTS = ROOT / ".weir" / "reports"

FIRST_RUN = """The first run on a machine builds what later runs find in caches: the limiter, its lints and tests (Rust,
about 10 minutes on 2 cores), a proxy that injects faults (Go, a minute), the engine of Flux (Go, 5 minutes) and,
without a cluster of yours, etcd, kube-apiserver and kube-controller-manager (Go, 11 to 15 minutes, 4 GB of Go caches).
A later run takes about 40 minutes. Logs are kept in .weir/logs."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many tests (or lint checks) a command ran, and how many of them failed."""

    passed: int
    failed: int

    def __add__(self, other: Count) -> Count:
        """The two together."""
        return Count(self.passed + other.passed, self.failed + other.failed)


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a ring: what it is called, what runs, where, and how its output is counted."""

    name: str
    argv: tuple[str | Path, ...]
    cwd: Path
    count: Callable[[int, str], Count]


def _as_one(status: int, _output: str) -> Count:
    return Count(1, 0) if status == 0 else Count(0, 1)


def _cargo(status: int, output: str) -> Count:
    results = re.findall(r"^test result: .*? (\d+) passed; (\d+) failed", output, flags=re.MULTILINE)
    total = Count(sum(int(passed) for passed, _ in results), sum(int(failed) for _, failed in results))
    return total if status == 0 or total.failed else total + Count(0, 1)  # did not even compile


def _junit(report: Path) -> Callable[[int, str], Count]:
    def count(status: int, _output: str) -> Count:
        if not report.exists():
            return Count(0, 1)  # pytest itself broke
        suite = next(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314 - pytest wrote it a moment ago
        failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
        total = Count(int(suite.attrib["tests"]) - failed - int(suite.attrib["skipped"]), failed)
        return total if status == 0 or failed else total + Count(0, 1)

    return count


def _check(name: str, *argv: str | Path, cwd: Path = ROOT) -> Command:
    return Command(name, argv, cwd, _as_one)


def _pytest(folder: str) -> Command:
    report = _REPORTS / f"{folder.replace('/', '-')}.xml"
    return Command(f"pytest {folder}", ("python", "-m", "pytest", folder, f"--junitxml={report}"), ROOT, _junit(report))


RINGS: dict[str, tuple[Command, ...]] = {
    "lint": (
        _check("ruff", "ruff", "check", "."),
        _check("ruff's format", "ruff", "format", "--check", "."),
        _check("mypy", "mypy", "operator/src", "limiter-sidecar/python", "tests/e2e/lab"),
        _check("import-linter", "lint-imports"),
        _check("luacheck", "luacheck", "--config", "lua/.luacheckrc", "lua", "operator/src", "docs"),
        _check("rustfmt", "cargo", "fmt", "--all", "--check", cwd=_RUST),
        _check("clippy", "cargo", "clippy", "--workspace", "--all-targets", "-q", "--", "-Dwarnings", cwd=_RUST),
        _check("cargo-deny", "cargo-deny", "check", "bans", "licenses", "sources", cwd=_RUST),
        _check("stubtest", "python", "-m", "mypy.stubtest", "weir_limiter._core"),
        _check("generated files", "make", "--no-print-directory", "verify"),
    ),
    "unit": (
        _pytest("tests/unit"),
        Command("cargo test", ("cargo", "test", "--workspace", "--exclude", "limiter-py", "--quiet"), _RUST, _cargo),
    ),
    "conformance": (_pytest("tests/conformance"),),
    "integration": (_pytest("tests/integration"),),
    "e2e": (_pytest("tests/e2e"),),
}


def run(names: list[str]) -> Count:
    """Run rings in order until one fails; return what was counted."""
    _REPORTS.mkdir(parents=True, exist_ok=True)
    total = Count(0, 0)
    for name in names:
        say(f"\n=== {name} " + "=" * (110 - len(name)))
        started = time.monotonic()
        ring = Count(0, 0) if _fetch_tools(name) else Count(0, 1)
        for command in RINGS[name]:
            ring += _run_command(command)
        total += ring
        say(f"--- {name}: {ring.passed} passed, {ring.failed} failed in {time.monotonic() - started:.0f} s")
        if ring.failed:
            say(f"The ring {name} failed: its output is above, the logs of the parts are in {LOGS.relative_to(ROOT)}/.")
            break
    return total


def _fetch_tools(ring: str) -> bool:
    """Fetch and build outside the tests what they need: a test's time limit is not made for a compiler."""
    try:
        if ring == "lint":
            toolbox.luacheck()
        elif ring == "conformance":
            toolbox.debian_for_ci()
        elif ring == "integration":
            toolbox.debian_for_ci()
            toolbox.envoy()
            toxiproxy.server()
        elif ring == "e2e":
            toolbox.require()
            cluster.fetch()
    except (toolbox.MissingToolError, CommandFailedError) as failure:
        say(str(failure))
        return False
    return True


def _run_command(command: Command) -> Count:
    say(f"\n· {command.name}: {' '.join(str(word).removeprefix(f'{ROOT}/') for word in command.argv)}")
    for stale in command.argv:
        if str(stale).startswith("--junitxml="):
            Path(str(stale).removeprefix("--junitxml=")).unlink(missing_ok=True)
    child = subprocess.Popen(
        [str(word) for word in command.argv], cwd=command.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", env=_ENV,
    )  # fmt: skip
    assert child.stdout is not None
    lines = []
    for line in child.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line)
    return command.count(child.wait(), "".join(lines))


def main(names: list[str]) -> int:
    """Run the named rings (none named: all). Exit status 0 only when tests ran and none failed."""
    if not names:
        say(FIRST_RUN)
    total = run(names or list(RINGS))
    say(f"\n{total.passed} passed, {total.failed} failed")
    return 0 if total.passed and not total.failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
