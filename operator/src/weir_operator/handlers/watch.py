# SPDX-License-Identifier: Apache-2.0
"""kopf as an event source: whatever happens to our objects is handed to a sink, and nothing else is done with it.

Owns kopf, in a thread and an event loop of its own: kopf cancels every task that it finds in its loop when it ends.
Only `on.event` handlers, so that kopf writes no annotation, finalizer or progress to users' objects. Must not look
into the objects. When kopf ends by itself (it does after refusals from the API server), it is started again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

import kopf

from weir_operator.kube.credentials import NoCredentials, bearer_token, load_configuration
from weir_operator.reconcile.ports import CONFIG_MAPS, OVERRIDES, POLICIES, Object, Resource

RESTART_AFTER_S = 2.0  # arbitrary: soon enough for people, rare enough for a server that refuses us
LOGIN_AGAIN_AFTER_S = 5.0
SERVER_TIMEOUT_S = 240  # the server ends each watch, so that a half-dead connection cannot live for ever
CLIENT_TIMEOUT_S = 300.0  # and so do we, should the server not
CONNECT_TIMEOUT_S = 5.0
STOP_WITHIN_S = 1.0  # the process has 3 s for all of its end

Sink = Callable[[Resource, Object, bool], None]
"""Takes (resource, object, deleted); called in kopf's thread."""

logger = logging.getLogger(__name__)


class Watch:
    """Watches users' objects in all namespaces and ConfigMaps with a label in some. Start once, stop once."""

    def __init__(self, sink: Sink, config_map_namespaces: Iterable[str], config_map_selector: str) -> None:
        self._sink = sink
        self._namespaces = sorted(set(config_map_namespaces))
        self._selector = config_map_selector
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._stop: asyncio.Event | None = None

    @property
    def alive(self) -> bool:
        """Whether the thread runs; it survives everything but a fault of ours."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start watching; the first events are those of a full list."""
        quieten_kopf()
        self._thread.start()

    def stop(self) -> None:
        """Ask kopf to end and wait for it, but not long: nothing of it needs saving. Harmless before `start`."""
        self._stopping.set()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._keep_watching())

    async def _keep_watching(self) -> None:
        while not self._stopping.is_set():
            self._stop = asyncio.Event()
            await self._watch_until_one_ends(self._stop)
            if not self._stopping.is_set():
                logger.warning("the watch ended and starts again", extra={"after_s": RESTART_AFTER_S})
                await asyncio.sleep(RESTART_AFTER_S)

    async def _watch_until_one_ends(self, stop: asyncio.Event) -> None:
        """Run both kopf operators; when one ends, for whatever reason, end the other."""
        everywhere = kopf.operator(
            registry=self._registry(POLICIES, OVERRIDES), settings=self._settings(), clusterwide=True, stop_flag=stop
        )
        tasks = [asyncio.create_task(everywhere)]
        if self._namespaces:  # kopf takes none for all
            generated = kopf.operator(
                registry=self._registry(CONFIG_MAPS),
                settings=self._settings(),
                namespaces=self._namespaces,
                stop_flag=stop,
            )
            tasks.append(asyncio.create_task(generated))
        if self._stopping.is_set():
            stop.set()
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                logger.warning("kopf gave up: %s", result)

    def _registry(self, *resources: Resource) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login", errors=kopf.ErrorsMode.TEMPORARY, backoff=LOGIN_AGAIN_AFTER_S)(
            login
        )
        for resource in resources:
            kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id="observe")(
                self._handler(resource)
            )
        return registry

    def _handler(self, resource: Resource) -> Callable[..., Any]:
        async def observe(event: kopf.RawEvent, **_: Any) -> None:
            self._sink(resource, event["object"], event["type"] == "DELETED")

        return observe

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.scanning.disabled = True  # no watch on CRDs and namespaces, so no right to them is needed
        settings.posting.enabled = False  # no Events on users' objects
        settings.peering.standalone = True  # no look-up of kopf's own CRD
        settings.watching.server_timeout = SERVER_TIMEOUT_S
        settings.watching.client_timeout = CLIENT_TIMEOUT_S
        settings.watching.connect_timeout = CONNECT_TIMEOUT_S
        settings.networking.connect_timeout = CONNECT_TIMEOUT_S
        settings.watching.label_selectors[CONFIG_MAPS.group, CONFIG_MAPS.version, CONFIG_MAPS.plural] = self._selector
        settings.queueing.exit_timeout = STOP_WITHIN_S / 2
        settings.process.ultimate_exiting_timeout = None  # our main thread decides when the process ends
        return settings


async def login(**_: Any) -> kopf.ConnectionInfo:
    """Give kopf the same server and identity as our own client has."""
    try:
        configuration = await load_configuration()
    except NoCredentials as error:
        raise kopf.TemporaryError(str(error), delay=LOGIN_AGAIN_AFTER_S) from error
    token = await bearer_token(configuration)
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        ca_data=configuration.ca_cert_data,
        insecure=not configuration.verify_ssl,
        scheme="Bearer" if token else None,
        token=token,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        proxy_url=configuration.proxy,
    )


def quieten_kopf() -> None:
    """Keep kopf's voice to what an operator's reader can use: it logs every handled event at INFO."""
    for name in ("kopf", "kopf.objects", "kopf.activities"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns that it leaves the signals alone outside the main thread, which is what we want.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
