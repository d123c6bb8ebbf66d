# SPDX-License-Identifier: Apache-2.0
"""Where the webhook's certificate is kept, and who must trust it: a Secret and a ValidatingWebhookConfiguration.

Owns the form of both. Whether to renew is decided elsewhere. The configuration itself is the chart's; only its
`caBundle` is written here.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from weir_operator.kube.bodies import APPLY, encode_apply
from weir_operator.kube.certificates import Pair
from weir_operator.kube.errors import Attempt
from weir_operator.kube.transport import Transport
from weir_operator.reconcile.ports import Missing, Object, Resource

SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)
CONFIGURATION = "weir-operator"
WEBHOOKS = ("policies.weir.dev", "overrides.weir.dev")
# Not the manager of our other writes: an apply removes what its manager no longer names.
FORCED = [("fieldManager", "weir-operator-webhook"), ("force", "true")]


@dataclass(frozen=True, slots=True)
class Kept:
    """The pair in use, and the certificate before it, which a replica may serve for some seconds longer."""

    pair: Pair
    previous: bytes

    @property
    def bundle(self) -> bytes:
        """What the API server must trust."""
        return self.pair.certificate + self.previous


class WebhookObjects:
    """Both objects. Every method may raise Waiting or Stalled."""

    def __init__(self, transport: Transport, namespace: str, secret: str) -> None:
        self._transport = transport
        self._namespace = namespace
        self._secret = secret

    async def read(self) -> Kept | None:
        """Return what the Secret holds; None if there is none, or nothing of use in it."""
        attempt = Attempt("get", SECRETS, namespace=self._namespace, name=self._secret)
        try:
            data = (await self._transport.request(attempt, "GET")).get("data") or {}
            certificate, key, previous = (
                base64.b64decode(data.get(name, ""), validate=True) for name in ("tls.crt", "tls.key", "previous.crt")
            )
        except (Missing, binascii.Error):
            return None
        return Kept(Pair(certificate, key), previous) if certificate and key else None

    async def keep(self, kept: Kept) -> None:
        """Write the Secret."""
        attempt = Attempt("patch", SECRETS, namespace=self._namespace, name=self._secret)
        texts = {"tls.crt": kept.pair.certificate, "tls.key": kept.pair.key, "previous.crt": kept.previous}
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._secret, "namespace": self._namespace},
            "type": "kubernetes.io/tls",
            "data": {name: base64.b64encode(text).decode() for name, text in texts.items()},
        }
        await self._transport.request(attempt, "PATCH", FORCED, body=encode_apply(manifest), content_type=APPLY)

    async def trust(self, bundle: bytes) -> bool:
        """Make the API server trust these certificates; return whether there is a configuration to say so in."""
        encoded = base64.b64encode(bundle).decode()
        try:
            found = await self._transport.request(Attempt("get", CONFIGURATIONS, name=CONFIGURATION), "GET")
        except Missing:
            return False
        known = [hook for hook in found.get("webhooks") or () if hook["name"] in WEBHOOKS]
        if all(hook["clientConfig"].get("caBundle") == encoded for hook in known):
            return True
        manifest: Object = {
            "apiVersion": CONFIGURATIONS.api_version,
            "kind": CONFIGURATIONS.kind,
            "metadata": {"name": CONFIGURATION},
            "webhooks": [{"name": hook["name"], "clientConfig": {"caBundle": encoded}} for hook in known],
        }
        attempt = Attempt("patch", CONFIGURATIONS, name=CONFIGURATION)
        await self._transport.request(attempt, "PATCH", FORCED, body=encode_apply(manifest), content_type=APPLY)
        return True
