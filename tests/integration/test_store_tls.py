# SPDX-License-Identifier: Apache-2.0
"""A store behind TLS, one server and a cluster: counted on a certificate that is right, reported on one that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.controlplane.certificates import Authority
from lab.processes import free_port
from lab.store import Flavour, Store, start_store
from lab.waiting import eventually
from rig.documents import limit, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar
from rig.stores import available

ONCE = single(limit=limit(1, period_s=3600))


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """An authority, and the certificate of a server that is called localhost."""
    made = Authority.create(tmp_path / "pki")
    made.issue_server("store", "DNS:localhost")
    return made.folder


@pytest.fixture
def start_tls(authority: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[Store, int]]]:
    """Starts a server that also listens with TLS: the server, and that port. Arguments: further lines for it."""
    started: list[Store] = []

    def start(*lines: str) -> tuple[Store, int]:
        port = free_port()
        files = {"cert-file": "store.crt", "key-file": "store.key", "ca-cert-file": "ca.crt"}
        tls = [f"tls-port {port}", "tls-auth-clients no", *(f"tls-{k} {authority / v}" for k, v in files.items())]
        server = available(Flavour.REDIS)  # the wheel's servers are built without TLS
        started.append(start_store(tmp_path, name="secure", flavour=server, extra=[*tls, *lines]))
        return started[-1], port

    yield start
    for store in started:
        store.stop()


async def test_one_server_is_counted_in_over_tls(
    start_tls: Callable[..., tuple[Store, int]], start_sidecar: Callable[..., Sidecar], authority: Path
) -> None:
    store, port = start_tls()
    sidecar = start_sidecar(f"rediss://localhost:{port}", env={"SSL_CERT_FILE": str(authority / "ca.crt")})
    sidecar.wait_store("Up")
    sidecar.publish(ONCE)
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).allowed for _ in range(2)] == [True, False]
    assert store.run("DBSIZE") == 1


async def test_a_cluster_is_counted_in_over_tls(
    start_tls: Callable[..., tuple[Store, int]], start_sidecar: Callable[..., Sidecar], authority: Path
) -> None:
    """Its nodes tell their names, since no certificate holds an address that changes with every pod."""
    announced = ("cluster-announce-hostname localhost", "cluster-preferred-endpoint-type hostname")
    store, port = start_tls("cluster-enabled yes", "tls-cluster yes", *announced)
    store.run("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    trust = {"SSL_CERT_FILE": str(authority / "ca.crt")}
    sidecar = start_sidecar(f"rediss+cluster://localhost:{port}", env=trust)
    sidecar.wait_store("Up")
    sidecar.publish(ONCE)
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).allowed for _ in range(2)] == [True, False]
    assert store.run("DBSIZE") == 1


@pytest.mark.requirement("R24")
@pytest.mark.parametrize(
    ("host", "trusted", "told"),
    [("localhost", False, "invalid peer certificate"), ("127.0.0.1", True, "not valid for name")],
    ids=["nobody trusts its authority", "it has another name"],
)
def test_a_certificate_that_is_not_right_is_a_store_failure_that_says_so(
    host: str,
    trusted: bool,
    told: str,
    start_tls: Callable[..., tuple[Store, int]],
    start_sidecar: Callable[..., Sidecar],
    authority: Path,
) -> None:
    """D30: never a connection without verification."""
    _, port = start_tls()
    other = Authority.create(authority.parent / "other")
    trust = authority if trusted else other.folder
    sidecar = start_sidecar(f"rediss://{host}:{port}", env={"SSL_CERT_FILE": str(trust / "ca.crt")})
    sidecar.wait_store("Down")
    eventually(lambda: told in sidecar.status()["store"]["error"], 10, what=sidecar.status()["store"]["error"])
