# SPDX-License-Identifier: Apache-2.0
"""Who a client is, as a real Envoy has verified it: the claims of its token, the principal of its certificate.

Envoy's own JWT filter and TLS handshake stand before the rendered filters, as they would in somebody's gateway, and the
limiter behind them is the real one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import processes, toolbox
from lab.controlplane.certificates import Authority
from lab.envoy_bench import Echo, mount_closed
from lab.waiting import eventually
from rig.documents import HOST, document, limit, policy, rule
from rig.sidecar import Sidecar
from weir_operator.domain.gateways import Address, Envoy, Gateway, Upstream
from weir_operator.domain.ruleset import Ruleset
from weir_operator.render.envoy import render_envoy

ISSUER = "https://tokens.example.com"
SIGNING_KEY = b"tests-sign-their-tokens-with-this-key"
ONCE = limit(1, period_s=3600)


@dataclass(frozen=True)
class Client:
    """A client with a certificate of the authority, or with none."""

    port: int
    authority: Path
    certificate: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def status(self) -> int:
        """Of one request on a connection of its own."""
        context = ssl.create_default_context(cafile=str(self.authority / "ca.crt"))
        if self.certificate:
            pair = self.authority / f"{self.certificate}.crt", self.authority / f"{self.certificate}.key"
            context.load_cert_chain(*map(str, pair))
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=10, context=context)
        try:
            connection.request("GET", "/", headers={"host": HOST, **self.headers})
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Certificates: the gateway's, and those of two clients."""
    made = Authority.create(tmp_path / "pki")
    made.issue_server("gateway", "DNS:localhost")
    made.issue_client("orders", "/O=example/CN=orders")
    made.issue_client("billing", "/O=example/CN=billing")
    return made.folder


@pytest.fixture
def client(sidecar: Sidecar, authority: Path, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Makes clients of an Envoy that verifies tokens and certificates and asks `sidecar`."""
    echo = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=echo.serve_forever, daemon=True).start()
    port, admin = processes.free_port(), processes.free_port()
    settings = Envoy(
        listen=Address("127.0.0.1", port),
        admin=Address("127.0.0.1", admin),
        limiter_socket=str(sidecar.socket),
        closed_directory=str(tmp_path / "closed"),
        timeout_ms=5000,  # a busy test machine must not open the gate
        upstreams=(Upstream("echo", ("*",), "127.0.0.1", echo.server_port),),
    )
    mount_closed(tmp_path / "closed", Ruleset("edge"))
    config = tmp_path / "bootstrap.yaml"
    config.write_text(json.dumps(verifying(Gateway("edge", "weir-system", envoy=settings), authority)))
    argv = [str(toolbox.envoy()), "-c", str(config), "--concurrency", "1", "--disable-hot-restart"]
    envoy = processes.spawn("envoy", argv, log=tmp_path / "envoy.log")
    try:
        eventually(lambda: Client(port, authority).status() > 0, 20, what=f"Envoy serves; {envoy.tail()}")
        yield lambda **who: Client(port, authority, **who)
    finally:
        envoy.stop()
        echo.shutdown()
        echo.server_close()


def verifying(gateway: Gateway, authority: Path) -> dict[str, Any]:
    """The rendered bootstrap with TLS, and the JWT filter where the head of http-filters.yaml wants it."""
    bootstrap: dict[str, Any] = yaml.safe_load(render_envoy(gateway)["bootstrap.yaml"])
    (chain,) = bootstrap["static_resources"]["listeners"][0]["filter_chains"]
    pair = {name: {"filename": str(authority / file)} for name, file in SERVER_PAIR.items()}
    tls = {
        "tls_certificates": [pair],
        "validation_context": {"trusted_ca": {"filename": str(authority / "ca.crt")}},
    }
    chain["transport_socket"] = extension(
        "envoy.transport_sockets.tls",
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        {"common_tls_context": tls, "require_client_certificate": False},
    )
    provider = {
        "issuer": ISSUER,
        "local_jwks": {"inline_string": json.dumps({"keys": [{"kty": "oct", "alg": "HS256", "k": b64(SIGNING_KEY)}]})},
        "payload_in_metadata": gateway.jwt.payload_key,
    }
    either = {"requires_any": {"requirements": [{"provider_name": "tokens"}, {"allow_missing": {}}]}}
    jwt = extension(
        gateway.jwt.metadata_namespace,
        "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
        {"providers": {"tokens": provider}, "rules": [{"match": {"prefix": "/"}, "requires": either}]},
    )
    chain["filters"][0]["typed_config"]["http_filters"].insert(0, jwt)
    return bootstrap


SERVER_PAIR = {"certificate_chain": "gateway.crt", "private_key": "gateway.key"}


def extension(name: str, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "typed_config": {"@type": f"type.googleapis.com/{kind}", **config}}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bearer(key: bytes = SIGNING_KEY, **claims: Any) -> dict[str, str]:
    """The header of a token with these claims (RFC 7519), signed with HMAC SHA-256."""
    parts = [{"alg": "HS256", "typ": "JWT"}, {"iss": ISSUER, **claims}]
    signed = ".".join(b64(json.dumps(part).encode()) for part in parts)
    signature = hmac.new(key, signed.encode(), hashlib.sha256).digest()
    return {"authorization": f"Bearer {signed}.{b64(signature)}"}


@pytest.mark.requirement("R17")
def test_claims_of_a_verified_token_tell_clients_apart(sidecar: Sidecar, client: Callable[..., Client]) -> None:
    """Only what Envoy has verified counts: a token with another signature never becomes anybody's subject."""
    by_sub = rule("by-sub", key=[{"claim": ["realm", "sub"]}], limit=ONCE)
    sidecar.publish(document(policy(by_sub)))
    ann, bob = (client(headers=bearer(realm={"sub": name}, jti=name)) for name in ("ann", "bob"))
    assert [ann.status(), bob.status(), ann.status()] == [200, 200, 429]
    assert client(headers=bearer(realm={"sub": "ann"}, jti="another token of hers")).status() == 429
    assert client(headers=bearer(b"somebody else's key", realm={"sub": "eve"})).status() == 401
    assert [client().status() for _ in range(2)] == [200, 200], "without a token the rule is skipped"
    assert sidecar.rule("by-sub")["missingKey"] == 2


@pytest.mark.requirement("R14")
def test_the_claim_of_a_verified_token_names_the_plan(sidecar: Sidecar, client: Callable[..., Client]) -> None:
    plans = {"from": {"claim": ["plan"]}, "limits": {"gold": limit(2, period_s=3600)}}
    sidecar.publish(document(policy(rule("by-plan", key=[{"claim": ["sub"]}], limit=ONCE, plans=plans))))
    gold, free = client(headers=bearer(sub="g", plan="gold")), client(headers=bearer(sub="f"))
    assert [gold.status() for _ in range(3)] == [200, 200, 429]
    assert [free.status() for _ in range(2)] == [200, 429]


@pytest.mark.requirement("R17")
def test_the_principal_of_a_client_certificate_tells_clients_apart(
    sidecar: Sidecar, client: Callable[..., Client]
) -> None:
    """A header that claims a certificate changes nothing."""
    sidecar.publish(document(policy(rule("by-peer", key=[{"principal": {}}], limit=ONCE))))
    orders, billing = client(certificate="orders"), client(certificate="billing")
    assert [orders.status(), billing.status(), orders.status(), billing.status()] == [200, 200, 429, 429]
    claiming = client(headers={"x-forwarded-client-cert": "Subject=CN=billing"})
    assert [claiming.status() for _ in range(2)] == [200, 200], "without a certificate the rule is skipped"
    assert sidecar.rule("by-peer")["missingKey"] == 2
