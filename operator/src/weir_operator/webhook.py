# SPDX-License-Identifier: Apache-2.0
"""The webhook as a server: its certificate, made and renewed by the leader, served by every replica.

Owns the order of a renewal: the API server trusts the new certificate before anybody serves it, and the old one until
the next renewal. Must not know what is reviewed.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from weir_operator.endpoints import Hook, serve
from weir_operator.kube.certificates import Pair, is_due, make_pair
from weir_operator.kube.webhook import Kept, WebhookObjects
from weir_operator.reconcile.ports import Clock, Stalled, Waiting

LOOK_EVERY_S = 20.0  # how long a replica may serve the certificate before; both are trusted meanwhile
LOOK_SOON_S = 1.0  # as long as there is none

logger = logging.getLogger(__name__)


class Webhook:
    """One replica's server. Run it until it is cancelled."""

    def __init__(
        self,
        hook: Hook,
        objects: WebhookObjects,
        routes: list[web.RouteDef],
        clock: Clock,
        writes_for_s: Callable[[], float],
    ) -> None:
        self._hook = hook
        self._objects = objects
        self._routes = routes
        self._clock = clock
        self._writes_for_s = writes_for_s
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._served: Pair | None = None
        self._unusable: Pair | None = None
        self._trouble = ""

    async def run(self) -> None:
        """Serve as soon as there is a certificate, and keep it fresh. Raises OSError when the address is taken."""
        runner: web.AppRunner | None = None
        try:
            while True:
                await self._look()
                if runner is None and self._served is not None:
                    runner = await serve(self._hook.address, self._routes, self._tls)
                    logger.info("reviews objects", extra={"names": self._hook.names})
                await asyncio.sleep(LOOK_EVERY_S if self._served is not None else LOOK_SOON_S)
        finally:
            if runner is not None:
                await runner.cleanup()

    async def _look(self) -> None:
        try:
            kept = await self._objects.read()
            if self._writes_for_s() > 0:
                kept = await self._see_to(kept)
        except (Waiting, Stalled) as error:
            if str(error) != self._trouble:
                logger.warning("the webhook's certificate cannot be looked after: %s", error)
            self._trouble = str(error)
            return
        self._trouble = ""
        if kept is not None and kept.pair != self._served:
            await self._serve_with(kept.pair)

    async def _serve_with(self, pair: Pair) -> None:
        """Use a pair; one that cannot be used is replaced by whoever leads, and never a reason to end."""
        try:
            await asyncio.to_thread(self._load, pair)
        except OSError as error:  # of which ssl.SSLError is one
            if pair != self._unusable:
                logger.warning("the webhook's certificate cannot be used: %s", error)
            self._unusable = pair
        else:
            self._served, self._unusable = pair, None

    async def _see_to(self, kept: Kept | None) -> Kept:
        now = self._clock.now()
        if kept is None or kept.pair == self._unusable or is_due(kept.pair.certificate, self._hook.names, now):
            pair = await asyncio.to_thread(make_pair, self._hook.names, now)
            kept = Kept(pair, kept.pair.certificate if kept is not None else b"")
            await self._objects.trust(kept.bundle)
            await self._objects.keep(kept)
            logger.info("made a certificate for the webhook", extra={"names": self._hook.names})
        elif not await self._objects.trust(kept.bundle):
            raise Stalled(
                "there is no ValidatingWebhookConfiguration weir-operator: the chart's webhook.enabled makes it"
            )
        return kept

    def _load(self, pair: Pair) -> None:
        """Give the pair to the TLS context, which takes files only; connections from now on get it."""
        with tempfile.TemporaryDirectory(prefix="weir-webhook-") as folder:  # readable by us alone
            certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
            certificate.write_bytes(pair.certificate)
            key.write_bytes(pair.key)
            self._tls.load_cert_chain(certificate, key)
