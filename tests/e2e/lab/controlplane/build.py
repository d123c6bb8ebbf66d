# SPDX-License-Identifier: Apache-2.0
"""Compiles Kubernetes' own programs from the Go module proxy into the user's cache, once for each set of inputs.

The folder is named by a hash of go.mod, go.sum, the Go version and the flags, so that a changed pin builds afresh and
an unchanged one costs nothing. Knows how to build; starts nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.progress import run_logged, step
from lab.toolbox import CACHE, go

_MODULE = Path(__file__).resolve().parent
_PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
_MINUTES = {"etcd": 2, "kube-apiserver": 7, "kube-controller-manager": 3, "kubectl": 1}  # 2 cores, empty Go caches
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")  # /version reads one, charts the other


def binaries(names: Sequence[str]) -> Path:
    """The folder that holds the named programs, building what is not there yet.

    Raises CommandFailedError with the end of the compiler's log.
    """
    compiler = go()
    home = CACHE / "controlplane" / _key(compiler)
    home.mkdir(parents=True, exist_ok=True)
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in names:
            if not (home / name).exists():
                _build(compiler, name, home)
    return home


def kubernetes_version() -> str:
    """The pinned version, as in `1.37.2`."""
    return _pinned("k8s.io/kubernetes")


def _build(compiler: Path, name: str, home: Path) -> None:
    partial = home / f"{name}.partial"
    what = f"Build {name} {_version(name)} from the Go module proxy (about {_MINUTES[name]} min on 2 cores, once)"
    with step(what):
        run_logged(
            [compiler, "build", *_flags(name), "-o", partial, _PACKAGES[name]],
            cwd=_MODULE, log=home / f"{name}.log", env=_ENVIRONMENT,
        )  # fmt: skip
    partial.rename(home / name)


def _flags(name: str) -> list[str]:
    linker = "-s -w" if name == "etcd" else f"-s -w {_version_stamps()}"
    return ["-trimpath", "-pgo=off", "-buildvcs=false", "-ldflags", linker]


def _version_stamps() -> str:
    """Without them the server says v0.0.0-master, and charts that ask for a Kubernetes version refuse to install."""
    version = kubernetes_version()
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {package}.{name}={value}" for package in _STAMPED for name, value in values.items())


def _version(name: str) -> str:
    return _pinned("go.etcd.io/etcd/server/v3") if name == "etcd" else kubernetes_version()


def _pinned(module: str) -> str:
    found = re.search(rf"^\t{re.escape(module)} v([0-9.]+)", (_MODULE / "go.mod").read_text(), flags=re.MULTILINE)
    assert found is not None, f"go.mod does not require {module}"
    return found[1]


def _key(compiler: Path) -> str:
    version = subprocess.run(
        [compiler, "version"], check=True, capture_output=True, text=True, env={**os.environ, **_ENVIRONMENT}
    ).stdout
    flags = [" ".join(_flags(name)) for name in _PACKAGES]
    pins = [(_MODULE / name).read_text() for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join([version, *flags, *pins]).encode()).hexdigest()[:16]


# whatever the person's own Go settings are, these programs are built the same way
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
