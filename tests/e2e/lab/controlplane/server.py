# SPDX-License-Identifier: Apache-2.0
"""Starts the control plane on loopback, about 6 s from nothing to a default service account.

Every flag that is not plain is explained where it stands. Parts are returned in start order; ending them in the
opposite order is the caller's business, after ending every program that watches the API.
"""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.controlplane.certificates import Authority
from lab.processes import Part, PartFailedError, free_port, spawn

_READY_S = 60  # apiserver needs about 4 s on two idle cores; a loaded CI machine gets ten times that
_POLL_S = 0.05

# what namespaces, tokens, role aggregation and admission policies need, and nothing for pods: the default list makes
# the first service account take 5 s more
_CONTROLLERS = (
    "namespace-controller,garbage-collector-controller,serviceaccount-controller,serviceaccount-token-controller,"
    "root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,"
    "validatingadmissionpolicy-status-controller,resourcequota-controller"
)
_AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


@dataclass(slots=True)
class ControlPlane:
    """A running control plane: its parts, the administrator's kubeconfig and the audit log."""

    parts: list[Part]
    kubeconfig: Path
    audit_log: Path


def start(binaries: Path, folder: Path, logs: Path) -> ControlPlane:
    """Start all three in `folder` (must not exist). Raises PartFailedError; what had started is ended then."""
    authority = Authority.create(folder / "pki")
    authority.issue_server("apiserver", "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1")
    authority.issue_client("admin", "/O=system:masters/CN=admin")
    authority.issue_client("kcm", "/CN=system:kube-controller-manager")
    server = f"https://127.0.0.1:{free_port()}"
    admin = authority.kubeconfig("admin", server)
    controllers = authority.kubeconfig("kcm", server)
    plane = ControlPlane([], admin, folder / "audit.log")
    trusting = ssl.create_default_context(cafile=str(authority.folder / "ca.crt"))
    trusting.load_cert_chain(str(authority.folder / "admin.crt"), str(authority.folder / "admin.key"))
    try:
        store = f"http://127.0.0.1:{free_port()}"
        etcd = spawn("etcd", [str(binaries / "etcd"), *_etcd_flags(folder, store)], log=logs / "etcd.log")
        plane.parts.append(etcd)
        _wait(etcd, lambda: _answers(f"{store}/health"))

        flags = _apiserver_flags(authority, folder, server, store)
        apiserver = spawn("kube-apiserver", [str(binaries / "kube-apiserver"), *flags], log=logs / "kube-apiserver.log")
        plane.parts.append(apiserver)
        _wait(apiserver, lambda: _answers(f"{server}/readyz", trusting))

        flags = _controller_flags(authority, controllers)
        program = str(binaries / "kube-controller-manager")
        kcm = spawn("kube-controller-manager", [program, *flags], log=logs / "kube-controller-manager.log")
        plane.parts.append(kcm)
        _wait(kcm, lambda: _answers(f"{server}/api/v1/namespaces/default/serviceaccounts/default", trusting))
    except BaseException:
        stop(plane.parts)
        raise
    return plane


def stop(parts: list[Part]) -> None:
    """End the parts, controllers first, etcd last.

    With a client's watch still open the apiserver ignores SIGTERM for 20 s; nothing here is worth that wait.
    """
    for part in reversed(parts):
        part.stop(grace_s=3.0)


def _etcd_flags(folder: Path, store: str) -> list[str]:
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",  # the data dies with the lab
        "--log-level=warn",
    ]


def _apiserver_flags(authority: Authority, folder: Path, server: str, store: str) -> list[str]:
    pki = authority.folder
    audit_policy = folder / "audit-policy.yaml"
    audit_policy.write_text(_AUDIT_POLICY)
    return [
        f"--etcd-servers={store}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # a loopback address is refused as endpoint of the Service `kubernetes`
        f"--secure-port={server.rsplit(':', 1)[1]}",
        f"--cert-dir={folder / 'certs'}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        "--service-cluster-ip-range=10.96.0.0/24",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        "--anonymous-auth=false",
        "--profiling=false",
        # A webhook that is named by its Service would be dialled at the Service's cluster address, and without a
        # kube-proxy that packet leaves by the machine's default route. With this, only pod addresses are dialled.
        "--enable-aggregator-routing=true",
        f"--audit-policy-file={audit_policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-maxsize=200",
    ]


def _controller_flags(authority: Authority, kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={authority.folder / 'sa.key'}",
        f"--root-ca-file={authority.folder / 'ca.crt'}",
        "--secure-port=0",  # no listener at all
        f"--controllers={_CONTROLLERS}",
    ]


def _wait(part: Part, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_S
    while not ready():
        if not part.alive:
            raise PartFailedError(f"{part.name} ended while starting; the end of {part.log}:\n{part.tail()}")
        if time.monotonic() > deadline:
            raise PartFailedError(f"{part.name} was not ready in {_READY_S} s; the end of {part.log}:\n{part.tail()}")
        time.sleep(_POLL_S)


def _answers(url: str, context: ssl.SSLContext | None = None) -> bool:
    try:
        with urllib.request.urlopen(url, context=context, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:  # refused, reset, or an HTTP status that says "not yet"
        return False
