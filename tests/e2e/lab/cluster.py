# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API behind one interface, whoever provides it.

Three providers: the cluster that `WEIR_KUBECONFIG` names (ours to clean, never to delete), kind when Docker answers,
else the control plane of `lab.controlplane`. Weir runs as processes beside the API in all three cases, so nothing here
knows about pods.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import toolbox
from lab.controlplane import build, server
from lab.controlplane.certificates import write_kubeconfig
from lab.processes import Part
from lab.progress import run_logged, step

_KUBECTL_S = 60  # nothing that the lab asks takes longer; a hung apiserver must not hang a test run
_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager")
_TOKEN_LIFE = "24h"  # of the programs' service account tokens: longer than any CI run


class KubectlError(RuntimeError):
    """kubectl ended with another status than 0; the message is what it wrote to standard error."""


@dataclass(slots=True)
class Cluster:
    """An API to talk to as its administrator. `parts` are the processes that stop with it, in start order."""

    provider: str
    kubeconfig: Path
    kubectl_program: Path
    parts: list[Part] = field(default_factory=list)
    audit_log: Path | None = None
    kind_name: str = ""

    @property
    def disposable(self) -> bool:
        """Whether the whole cluster goes at the end, so that nothing in it needs cleaning."""
        return self.provider != "named"

    def kubectl(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:  # noqa: A002
        """Run kubectl (as administrator unless `kubeconfig` says who) and return what it printed.

        Raises KubectlError with what it wrote to standard error.
        """
        argv = [str(self.kubectl_program), f"--kubeconfig={kubeconfig or self.kubeconfig}", *arguments]
        done = subprocess.run(argv, input=input, capture_output=True, text=True, timeout=_KUBECTL_S, check=False)
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def api(self, path: str) -> Any:
        """GET a path of the API and return its JSON. Raises KubectlError for every status but 200."""
        return json.loads(self.kubectl("get", "--raw", path))

    def serves(self, group_version: str, plural: str) -> bool:
        """Whether the API has a resource, like `apps/v1`, `deployments`."""
        return any(resource["name"] == plural for resource in self.api(f"/apis/{group_version}")["resources"])

    def get(self, kind: str, name: str, namespace: str) -> Any:
        """One object as JSON. Raises KubectlError when it does not exist."""
        return json.loads(self.kubectl("get", kind, name, "-n", namespace, "-o", "json"))

    def apply(self, manifests: str, namespace: str | None = None) -> str:
        """Apply YAML as a user would. Raises KubectlError with what the API server refused."""
        where = ["-n", namespace] if namespace else []
        return self.kubectl("apply", *where, "-f", "-", input=manifests)

    def token_kubeconfig(self, namespace: str, serviceaccount: str, folder: Path) -> Path:
        """A kubeconfig (mode 0600, in `folder`) that acts as a service account by a token of its own."""
        token = self.kubectl("create", "token", serviceaccount, "-n", namespace, f"--duration={_TOKEN_LIFE}").strip()
        view = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        path = folder / f"{namespace}-{serviceaccount}.kubeconfig"
        write_kubeconfig(path, view["clusters"][0]["cluster"], {"token": token})
        return path

    def describe(self) -> dict[str, Any]:
        """What another process needs to stop it (`stop`); the parts are saved by the environment."""
        return {
            "provider": self.provider, "kubeconfig": str(self.kubeconfig), "kubectl": str(self.kubectl_program),
            "kind": self.kind_name,
        }  # fmt: skip

    @staticmethod
    def remembered(described: dict[str, Any], parts: list[Part]) -> Cluster:
        """The cluster that `describe` described."""
        kubeconfig, kubectl = Path(described["kubeconfig"]), Path(described["kubectl"])
        return Cluster(described["provider"], kubeconfig, kubectl, parts, kind_name=described["kind"])

    def stop(self) -> None:
        """Delete the cluster, if it is ours to delete. End every program that watches it first."""
        if self.kind_name:
            delete = ["kind", "delete", "cluster", "--name", self.kind_name]
            subprocess.run(delete, check=False, capture_output=True)
        server.stop(self.parts)


def bring_up(folder: Path, logs: Path) -> Cluster:
    """The provider that this machine has, ready for use. `folder` is the cluster's own and must not exist.

    Raises PartFailedError, CommandFailedError or KubectlError; nothing of ours keeps running then.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    if os.environ.get("WEIR_KUBECONFIG"):
        return _named(Path(os.environ["WEIR_KUBECONFIG"]))
    if _kind_is_here():
        return _kind(folder, logs)
    return _built(folder, logs)


def fetch() -> None:
    """Build or find all programs that `bring_up` will need, so that the long part shows its progress and runs once."""
    _kubectl()
    if not os.environ.get("WEIR_KUBECONFIG") and not _kind_is_here():
        build.binaries(_CONTROL_PLANE)


def _kind_is_here() -> bool:
    return bool(toolbox.docker_answers() and toolbox.installed("kind"))


def _named(kubeconfig: Path) -> Cluster:
    cluster = Cluster("named", kubeconfig.resolve(), _kubectl())
    cluster.kubectl("version")  # a typo or a sleeping VPN is told here, in kubectl's own words
    return cluster


def _kind(folder: Path, logs: Path) -> Cluster:
    folder.mkdir()
    kubeconfig, name = folder / "kubeconfig", f"weir-lab-{os.getpid()}"
    with step(f"Create the kind cluster {name} (1 to 3 minutes)"):
        create = ["kind", "create", "cluster", "--name", name, "--kubeconfig", str(kubeconfig), "--wait", "120s"]
        run_logged(create, log=logs / "kind.log")
    return Cluster("kind", kubeconfig, _kubectl(), kind_name=name)


def _built(folder: Path, logs: Path) -> Cluster:
    programs = build.binaries(_CONTROL_PLANE)
    kubectl = _kubectl()
    with step(f"Start etcd, kube-apiserver {build.kubernetes_version()} and kube-controller-manager on loopback"):
        plane = server.start(programs, folder, logs)
    return Cluster("built", plane.kubeconfig, kubectl, plane.parts, plane.audit_log)


def _kubectl() -> Path:
    return toolbox.installed("kubectl") or build.binaries(["kubectl"]) / "kubectl"
