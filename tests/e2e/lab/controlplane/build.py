# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own programs, as the module beside this file pins them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.gomodule import GoModule, GoProgram, pinned

_FOLDER = Path(__file__).resolve().parent
_ETCD = "go.etcd.io/etcd/server/v3"
_KUBERNETES = "k8s.io/kubernetes"
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")  # /version reads one, charts the other


def binaries(names: Sequence[str]) -> Path:
    """The folder that holds the named programs, building what is not there yet.

    Raises CommandFailedError with the end of the compiler's log.
    """
    return _MODULE.binaries(names)


def kubernetes_version() -> str:
    """The pinned version, as in `1.37.2`."""
    return pinned(_FOLDER, _KUBERNETES)


def _version_stamps() -> str:
    """Without them the server says v0.0.0-master, and charts that ask for a Kubernetes version refuse to install."""
    version = kubernetes_version()
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {package}.{name}={value}" for package in _STAMPED for name, value in values.items())


def _of_kubernetes(command: str, minutes: int) -> GoProgram:
    return GoProgram(f"{_KUBERNETES}/cmd/{command}", _KUBERNETES, minutes, f"-s -w {_version_stamps()}")


_MODULE = GoModule(
    "controlplane",
    _FOLDER,
    {
        "etcd": GoProgram(_ETCD, _ETCD, 2),
        "kube-apiserver": _of_kubernetes("kube-apiserver", 7),
        "kube-controller-manager": _of_kubernetes("kube-controller-manager", 3),
        "kubectl": _of_kubernetes("kubectl", 1),
    },
)
