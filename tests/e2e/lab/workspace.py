# SPDX-License-Identifier: Apache-2.0
"""The repository's own `.venv`: pinned packages from pyproject.toml, the operator (editable), the limiter (built).

Runs on the standard library alone, with whatever Python the person has, because it makes the environment everything
else runs in. A stamp per part holds the hash of what the part was made from, so that a second call does nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.progress import CommandFailedError, run_logged, step

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
RUN = ROOT / ".weir"
LOGS = RUN / "logs"

_LIMITER = ROOT / "limiter-sidecar"
_NOT_SOURCES = {"target", "__pycache__", ".pytest_cache"}


def prepare() -> None:
    """Bring `.venv` up to date. Raises CommandFailedError with the log's end when pip or cargo fails."""
    VENV.mkdir(exist_ok=True)
    with _only_one():
        if not PYTHON.exists():
            with step("Make .venv"):
                venv.create(VENV, with_pip=True)
        _python_packages()
        _limiter()


def pinned_requirements(pyproject: Path) -> list[str]:
    """Every requirement that the project and its dependency groups name, as pip reads them."""
    document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    named: list[str] = list(document["project"]["dependencies"])
    for group in document["dependency-groups"].values():
        named.extend(group)
    return named


def content_hash(paths: Iterable[Path], *, also: str = "") -> str:
    """One hash over the names and bytes of files, whatever order they come in."""
    digest = hashlib.sha256(also.encode())
    for path in sorted(paths):
        digest.update(f"{path}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def sources(folder: Path) -> Iterator[Path]:
    """The files under `folder` that a build may read: no build output, no caches, links followed to files."""
    for entry in sorted(folder.iterdir()):
        if entry.name in _NOT_SOURCES or entry.suffix == ".so":
            continue
        if entry.is_dir():
            yield from sources(entry)
        else:
            yield entry


def _python_packages() -> None:
    pyproject = ROOT / "pyproject.toml"
    wanted = pinned_requirements(pyproject)
    made_from = content_hash([pyproject], also=sys.version)
    if _stamp("python").exists() and _stamp("python").read_text() == made_from:
        return
    listed = VENV / "requirements.txt"
    listed.write_text("\n".join(wanted) + "\n")
    with step("Install the pinned Python packages into .venv (about a minute the first time)"):
        run_logged([*_PIP, "install", "-r", listed], log=LOGS / "pip.log")
        run_logged([*_PIP, "install", "--no-deps", "-e", ROOT], log=LOGS / "pip-operator.log")
    _stamp("python").write_text(made_from)


def _limiter() -> None:
    if not (_LIMITER / "pyproject.toml").exists():
        return
    compiler = subprocess.run(["cargo", "--version"], check=True, capture_output=True, text=True).stdout
    made_from = content_hash(sources(_LIMITER), also=compiler + sys.version)
    if _stamp("limiter").exists() and _stamp("limiter").read_text() == made_from:
        return
    with step("Build and install the limiter (3 to 6 minutes the first time)"):
        run_logged(
            [*_PIP, "install", "--no-deps", "--no-build-isolation", "--force-reinstall", _LIMITER],
            log=LOGS / "build-limiter.log",
            env={"PATH": f"{VENV / 'bin'}:{os.environ['PATH']}"},
        )
    _stamp("limiter").write_text(made_from)


def _stamp(part: str) -> Path:
    return VENV / f".weir-{part}"


@contextmanager
def _only_one() -> Iterator[None]:
    """Two shells that prepare at the same time wait for each other instead of breaking each other's .venv."""
    with (VENV / ".weir-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_PIP = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]

if __name__ == "__main__":
    try:
        prepare()
    except CommandFailedError as failure:
        sys.exit(str(failure))
