# SPDX-License-Identifier: Apache-2.0
"""One server: how it is started, reached, frozen, killed and started again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import redis

from lab.processes import Part, PartFailedError, free_port, spawn
from lab.store.server import Flavour, find_server

HOST = "127.0.0.1"
_READY_S = 10.0  # a server is up in about 20 ms; this is for a machine that is busy building something
_POLL_S = 0.02


@dataclass(slots=True)
class Store:
    """A running server. `part` is replaced by `restart`; all else stays the same.

    `within` is what its command line is put behind.
    """

    part: Part
    config: Path
    server: Path
    port: int
    password: str | None = None
    socket: Path | None = None
    host: str = HOST
    within: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """`redis://[:password@]host:port/0`."""
        return f"redis://{secret(self.password)}{self.host}:{self.port}/0"

    @property
    def socket_url(self) -> str:
        """`redis+unix://[:password@]path`. Raises ValueError when the server has no Unix socket."""
        if self.socket is None:
            raise ValueError(f"{self.part.name} was started without a Unix socket")
        return f"redis+unix://{secret(self.password)}{self.socket}"

    @property
    def commands(self) -> Mapping[Part, tuple[str, ...]]:
        """Its process, with the command line that starts it again."""
        return {self.part: (*self.within, str(self.server), str(self.config))}

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.part.alive

    def client(self, **options: Any) -> redis.Redis:
        """A new client that returns bytes; `options` are redis-py's."""
        return redis.Redis(host=self.host, port=self.port, password=self.password, **options)

    def run(self, *command: str | int) -> Any:
        """What it answers to one command."""
        with self.client() as client:
            return client.execute_command(*command)

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing is answered."""
        self.part.pause()

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self.part.resume()

    def kill(self) -> None:
        """End it as a crash would; everything it held is gone."""
        self.part.kill()

    def stop(self) -> None:
        """End it in good order. Harmless when it is gone already."""
        self.part.stop()

    def restart(self) -> None:
        """Start it again, empty and on the same port; a running one is stopped first."""
        self.stop()
        (argv,) = self.commands.values()
        self.part = spawn(self.part.name, argv, log=self.part.log)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Return when it answers PING. Raises PartFailedError with the log's end when it does not."""
        with self.client(socket_timeout=1.0) as client:
            wait(lambda: bool(client.ping()), self.part)


def start_store(
    run_dir: Path,
    *,
    name: str = "store",
    flavour: Flavour = Flavour.ANY,
    port: int | None = None,
    password: str | None = None,
    socket: Path | None = None,
    extra: Sequence[str] = (),
    host: str = HOST,
    within: tuple[str, ...] = (),
) -> Store:
    """Start one server and wait until it answers. Its files are `<run_dir>/<name>.{conf,log}`.

    `port`: a free one when None. `socket`: also listen there. `extra`: further lines of its configuration.
    `host`, `within`: its address, and what its command line is put behind, where it has a network of its own.
    Raises StoreMissingError, and PartFailedError when it does not come up.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    lines = [
        f"bind {host}", f"port {port}", "daemonize no", f'dir "{run_dir}"', 'save ""', "appendonly no",
        "maxmemory-policy noeviction", *extra,
    ]  # fmt: skip
    if password:
        lines += [f'requirepass "{password}"', f'masterauth "{password}"']
    if socket:
        lines += [f'unixsocket "{socket}"', "unixsocketperm 770"]
    config = run_dir / f"{name}.conf"
    config.touch(mode=0o600)  # it may hold the password, which a command line would show to everybody
    config.write_text("\n".join(lines) + "\n")
    server = find_server(flavour)
    part = spawn(name, [*within, str(server), str(config)], log=run_dir / f"{name}.log")
    store = Store(part, config, server, port, password, socket, host, within)
    store.wait_ready()
    return store


def secret(password: str | None) -> str:
    """The part of a URL that holds the password; empty without one."""
    return f":{quote(password, safe='')}@" if password else ""


def wait(ready: Callable[[], bool], part: Part) -> None:
    """Return when `ready` says so; a refused connection is a no. Raises PartFailedError with the log's end."""
    deadline = time.monotonic() + _READY_S
    while True:
        try:
            if ready():
                return
        except (redis.ConnectionError, redis.TimeoutError):
            if not part.alive:
                raise PartFailedError(f"{part.name} ended while starting; {part.log}:\n{part.tail()}") from None
        if time.monotonic() > deadline:
            raise PartFailedError(f"{part.name} is not ready after {_READY_S:.0f} s; {part.log}:\n{part.tail()}")
        time.sleep(_POLL_S)
