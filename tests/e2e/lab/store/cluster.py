# SPDX-License-Identifier: Apache-2.0
"""A cluster from the same server program: three primaries that share the slots evenly, each with replicas if wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from lab.processes import Part, free_port, stop_all
from lab.store.server import Flavour
from lab.store.single import HOST, Store, secret, start_store, wait

SLOTS = 16384  # of every Redis Cluster, by its specification
_PRIMARIES = 3
_MIGRATE_WITHIN_MS = 5000


@dataclass(slots=True)
class StoreCluster:
    """The nodes: first those that began as primaries, then the replicas, in the order of their primaries."""

    nodes: list[Store]

    @property
    def url(self) -> str:
        """`redis+cluster://[:password@]127.0.0.1:port,127.0.0.1:port,…`, as the limiter takes it."""
        hosts = ",".join(f"{HOST}:{node.port}" for node in self.nodes)
        return f"redis+cluster://{secret(self.nodes[0].password)}{hosts}"

    @property
    def urls(self) -> list[str]:
        """One URL per node; any of them leads to the whole cluster."""
        return [node.url for node in self.nodes]

    @property
    def commands(self) -> Mapping[Part, tuple[str, ...]]:
        """The nodes' processes, each with the command line that starts it again."""
        return {part: argv for node in self.nodes for part, argv in node.commands.items()}

    @property
    def alive(self) -> bool:
        """Whether all nodes run."""
        return all(node.alive for node in self.nodes)

    def client(self, **options: Any) -> redis.RedisCluster:
        """A new client that follows the slots and returns bytes."""
        living = next(node for node in self.nodes if node.alive)
        return redis.RedisCluster(host=HOST, port=living.port, password=living.password, **options)

    def primaries(self) -> list[Store]:
        """The living nodes that are primaries now."""
        return [node for node in self.nodes if node.alive and "myself,master" in _line_of_itself(node)]

    def primary_of(self, slot: int) -> Store:
        """The node that has a slot now, as the first living node sees it."""
        living = next(node for node in self.nodes if node.alive)
        for first, last, primary, _replicas in _slots(living):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == primary)
        raise LookupError(f"no node has slot {slot}")

    def replica_of(self, primary: Store) -> Store:
        """A living replica of `primary`. Raises LookupError when there is none."""
        mine = primary.run("CLUSTER MYID").decode()
        for node in self.nodes:
            if node.alive and node is not primary and mine in _line_of_itself(node):
                return node
        raise LookupError(f"{primary.part.name} has no replica")

    def move_slot(self, slot: int, to: Store) -> None:
        """Reshard one slot with all its keys, as `redis-cli --cluster reshard` does."""
        for _step in self.moving_slot(slot, to):
            pass

    def moving_slot(self, slot: int, to: Store, *, batch: int = 10) -> Iterator[str]:
        """The same in steps, each named after what has just been done: `opened`, `moved` (a batch of keys), `closed`.

        Between the first and the last the slot is half here and half there, and servers answer ASK and TRYAGAIN.
        """
        source = self.primary_of(slot)
        here, there = source.run("CLUSTER MYID").decode(), to.run("CLUSTER MYID").decode()
        to.run("CLUSTER SETSLOT", slot, "IMPORTING", here)
        source.run("CLUSTER SETSLOT", slot, "MIGRATING", there)
        yield "opened"
        authorized = ("AUTH", source.password) if source.password else ()
        while keys := source.run("CLUSTER GETKEYSINSLOT", slot, batch):
            source.run("MIGRATE", HOST, to.port, "", 0, _MIGRATE_WITHIN_MS, *authorized, "KEYS", *keys)
            yield "moved"
        for node in (to, source, *(node for node in self.primaries() if node not in (to, source))):
            node.run("CLUSTER SETSLOT", slot, "NODE", there)
        yield "closed"

    def wait_whole(self) -> None:
        """Return when every living node calls the cluster whole."""
        for node in self.nodes:
            if node.alive:
                wait(partial(_agrees, node, None), node.part)

    def restart(self) -> None:
        """Start again the nodes that have ended, and wait until the cluster is whole.

        A node finds its place by its own file. A primary that comes back before its replica has taken over comes back
        empty, and its replica follows it: as wherever nothing is kept on disk.
        """
        for node in self.nodes:
            if not node.alive:
                node.restart()
        self.wait_whole()

    def kill(self) -> None:
        """End all nodes as crashes would."""
        for node in self.nodes:
            node.kill()

    def pause(self) -> None:
        """Freeze all nodes."""
        for node in self.nodes:
            node.pause()

    def resume(self) -> None:
        """Let all nodes go on after `pause`."""
        for node in self.nodes:
            node.resume()

    def stop(self) -> None:
        """End all nodes."""
        stop_all([node.part for node in self.nodes])


def start_cluster(
    run_dir: Path,
    *,
    flavour: Flavour = Flavour.ANY,
    password: str | None = None,
    replicas: int = 0,
    node_timeout_ms: int = 2000,
) -> StoreCluster:
    """Start three primaries with `replicas` each, and wait until every node calls the cluster whole.

    `node_timeout_ms`: silence after which a node counts as failed, and a replica takes over.
    Raises what `start_store` raises; nothing stays running then.
    """
    nodes: list[Store] = []
    try:
        for number in range(_PRIMARIES * (1 + replicas)):
            bus_port = free_port()  # the default, port + 10000, may be taken or beyond 65535
            extra = (
                "cluster-enabled yes", f'cluster-config-file "nodes-{number}.conf"', f"cluster-port {bus_port}",
                f"cluster-node-timeout {node_timeout_ms}", "repl-diskless-sync-delay 0", "cluster-migration-barrier 9",
            )  # fmt: skip
            (run_dir / f"nodes-{number}.conf").unlink(missing_ok=True)
            node = start_store(run_dir, name=f"store-{number}", flavour=flavour, password=password, extra=extra)
            nodes.append(node)
            node.run("CLUSTER SET-CONFIG-EPOCH", number + 1)
            if number < _PRIMARIES:
                edges = [SLOTS * number // _PRIMARIES, SLOTS * (number + 1) // _PRIMARIES - 1]
                node.run("CLUSTER ADDSLOTSRANGE", *edges)
            if number:
                node.run("CLUSTER MEET", HOST, nodes[0].port, _bus_port(nodes[0]))
        for node in nodes:
            wait(partial(_agrees, node, len(nodes)), node.part)
        for number, node in enumerate(nodes[_PRIMARIES:]):
            node.run("CLUSTER REPLICATE", nodes[number % _PRIMARIES].run("CLUSTER MYID").decode())
        for node in nodes[_PRIMARIES:]:
            wait(partial(_replicates, node), node.part)
        for node in nodes:
            wait(partial(_shows_replicas, node, len(nodes) - _PRIMARIES), node.part)
    except BaseException:
        stop_all([node.part for node in nodes])
        raise
    return StoreCluster(nodes)


def _bus_port(node: Store) -> int:
    with node.client() as client:
        return int(client.config_get("cluster-port")["cluster-port"])


def _agrees(node: Store, known: int | None) -> bool:
    info = node.run("CLUSTER INFO")
    whole = (info["cluster_state"], info["cluster_size"]) == ("ok", str(_PRIMARIES))
    return bool(whole and known in (None, int(info["cluster_known_nodes"])))


def _replicates(node: Store) -> bool:
    with node.client() as client:
        replication = client.info("replication")
    return bool(replication["role"] == "slave" and replication["master_link_status"] == "up")


def _shows_replicas(node: Store, count: int) -> bool:
    return sum(len(replicas) for *_rest, replicas in _slots(node)) == count


def _line_of_itself(node: Store) -> str:
    with node.client() as client:
        client.set_response_callback("CLUSTER NODES", lambda answer, **_: answer)
        lines = client.execute_command("CLUSTER NODES").decode().splitlines()
    return str(next(line for line in lines if "myself" in line))


def _slots(node: Store) -> list[tuple[int, int, int, list[int]]]:
    """First and last slot, the primary's port, the replicas' ports."""
    with node.client() as client:
        client.set_response_callback("CLUSTER SLOTS", lambda answer, **_: answer)
        answer: Any = client.execute_command("CLUSTER SLOTS")
    return [
        (first, last, primary[1], [replica[1] for replica in replicas]) for first, last, primary, *replicas in answer
    ]
