# SPDX-License-Identifier: Apache-2.0
"""The operator as a process: restarts, silence, lost connections, its rights, its end."""

import contextlib
import json
import re
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.client import fetch
from lab.distant import api_server, operator_by
from lab.environment import Environment
from lab.programs import Program
from lab.team import Team
from lab.waiting import eventually

RULE = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 100, "period": "1s"}}
BAD_RULE = {"name": "burst", "limit": {"requests": 1, "period": "1s", "burst": 10**12}}
OBJECTS = 50
SEEDS = range(1, 6)
OPERATOR = "system:serviceaccount:weir-system:weir-operator"
ASKS = {
    ("get", "leases"),
    ("create", "leases"),
    ("update", "leases"),
    ("get", "secrets"),
    ("patch", "secrets"),
    ("get", "validatingwebhookconfigurations"),
    ("patch", "validatingwebhookconfigurations"),
    ("list", "ratelimitpolicies"),
    ("watch", "ratelimitpolicies"),
    ("list", "ratelimitoverrides"),
    ("watch", "ratelimitoverrides"),
    ("list", "configmaps"),
    ("watch", "configmaps"),
    ("patch", "configmaps"),
    ("patch", "ratelimitpolicies/status"),
    ("patch", "ratelimitoverrides/status"),
    ("create", "events"),
}


def metric(operator: Program, name: str) -> float:
    """The sum of one of the operator's metrics over all its labels."""
    address = operator.argv[operator.argv.index("--metrics") + 1]
    text = fetch(f"http://{address}/metrics").body.decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


def looked_twice(operator: Program) -> bool:
    """Whether a new process has finished its first pass over everything, and at least one more."""
    return metric(operator, "weir_operator_reconciles_total") >= 4  # of the gateway's loop and of the orphans'


def writes(operator: Program) -> float:
    """How many ConfigMaps and statuses the operator has written."""
    return metric(operator, "weir_operator_config_map_writes_total") + metric(
        operator, "weir_operator_status_writes_total"
    )


def many(team: Team) -> str:
    """50 policies, some of them refused, and 50 overrides, as one list."""
    policies = [
        team.policy(
            f"p{n}",
            match={"hosts": [team.host], "routes": [{"path": f"/p{n}/*"}]},  # apart, because of the rule budget
            rules=[BAD_RULE if n % 10 == 0 else RULE],
        )
        for n in range(OBJECTS)
    ]
    overrides = [
        team.override(
            f"o{n}", policyRef={"name": f"p{n}"}, subjects=[{"x-api-key": str(n)}], action="Exempt", permanent=True
        )
        for n in range(OBJECTS)
    ]
    items = [json.loads(manifest) for manifest in (*policies, *overrides)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def judged(team: Team) -> bool:
    """Whether the operator has said something final about every object of the team."""
    items = json.loads(team.kubectl("get", "rlpol,rlovr", "-o", "json"))["items"]
    statuses = [{c["type"]: c["status"] for c in item.get("status", {}).get("conditions", [])} for item in items]
    return all(status.get("Ready") == "True" or status.get("Stalled") == "True" for status in statuses)


def versions(team: Team) -> dict[str, str]:
    """The resource version of everything that the operator writes to."""
    items = json.loads(team.kubectl("get", "rlpol,rlovr", "-o", "json"))["items"]
    items += json.loads(team.environment.cluster.kubectl("get", "configmap", "-n", "weir-system", "-o", "json"))[
        "items"
    ]
    return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in items}


@pytest.mark.requirement("R41")
def test_restarts_and_idle_time_write_nothing(team: Team) -> None:
    """D47, D49: 50 policies, some refused, and 50 overrides; five restarts, each with another order of hashes."""
    team.kubectl("apply", "-f", "-", input=many(team))
    eventually(lambda: judged(team), 60, what="every object is judged")
    before = versions(team)
    for seed in SEEDS:
        operator = team.environment.operator
        operator.env = {**operator.env, "PYTHONHASHSEED": str(seed)}
        operator.restart()
        operator.wait_ready()
        team.environment.save()
        eventually(partial(looked_twice, operator), 30, what="the new process looked at everything and again")
        assert (writes(operator), versions(team)) == (0, before)


def test_sigterm_ends_the_operator_within_three_seconds(environment: Environment, team: Team) -> None:
    environment.operator.part.signal(signal.SIGTERM)
    eventually(lambda: not environment.operator.part.alive, 3)
    assert "Traceback" not in environment.operator.part.tail(5)


class Proxy:
    """A TCP proxy before the API server, whose connections can be cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: set[socket.socket] = set()
        self._whole = True
        self.refused = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def cut(self) -> None:
        """Reset all connections, and every new one, until `heal`."""
        self._whole = False
        for sock in list(self._sockets):
            self._reset(sock)

    def heal(self) -> None:
        self._whole = True

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self._whole:
                    self.refused += 1
                    self._reset(client)
                    continue
                server = socket.create_connection(self._target)
                self._sockets |= {client, server}
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        self._reset(source)
        self._reset(sink)

    def _reset(self, sock: socket.socket) -> None:
        self._sockets.discard(sock)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


@pytest.fixture
def distant_operator(environment: Environment, tmp_path: Path) -> Iterator[tuple[Program, Proxy]]:
    """An operator in place of the environment's, that reaches the API server only through a proxy."""
    server = api_server(environment)
    assert server.hostname
    assert server.port
    proxy = Proxy(server.hostname, server.port)
    try:
        with operator_by(proxy.port, environment, tmp_path) as operator:
            yield operator, proxy
    finally:
        proxy.close()


def test_edits_during_a_lost_connection_are_live_soon_after_it(
    distant_operator: tuple[Program, Proxy], team: Team
) -> None:
    """D50: the API server is away for a while; an edit, a new object and a deletion fall into that time."""
    operator, proxy = distant_operator
    team.apply_ready(team.policy(rules=[RULE]), team.policy("gone", rules=[RULE]))
    proxy.cut()
    team.apply(team.policy(mode="Shadow", rules=[RULE]), team.policy("new", rules=[RULE]))
    team.kubectl("delete", "rlpol", "gone")
    eventually(lambda: proxy.refused >= 3, 30, what="the operator has noticed and tried again")
    proxy.heal()
    team.wait_ready()
    eventually(lambda: not [rule for rule in team.rules() if rule["policy"].endswith("/gone")], 75)
    assert operator.part.alive


def what(record: dict[str, Any]) -> tuple[str, str, str]:
    """The verb, the resource and the namespace of a request in the audit log."""
    ref = record["objectRef"]
    return record["verb"], "/".join(filter(None, (ref["resource"], ref.get("subresource")))), ref.get("namespace", "")


def test_the_operator_asks_only_for_what_it_needs_and_may_do(environment: Environment, team: Team) -> None:
    """Whatever the tests before this one made it do: nothing was forbidden, and nothing else was asked for."""
    log = environment.cluster.audit_log
    if log is None:
        pytest.skip("this cluster's audit log cannot be read")
    team.apply_ready(team.policy(rules=[RULE]))
    records = [json.loads(line) for line in log.read_text().splitlines() if OPERATOR in line]
    mine = [record for record in records if record["user"]["username"] == OPERATOR]
    mine = [record for record in mine if "objectRef" in record]
    allowed = {what(r) for r in mine if r["annotations"].get("authorization.k8s.io/decision") == "allow"}
    # An API server that has just started forbids, until it has read the roles, what it allows before and after.
    forbidden = [r for r in mine if what(r) not in allowed]
    assert [(r["verb"], r["requestURI"]) for r in forbidden] == []
    asked = {(verb, resource) for verb, resource, _ in map(what, mine)}
    assert asked - {("delete", "configmaps")} <= ASKS
    assert asked >= {("list", "ratelimitpolicies"), ("watch", "configmaps"), ("patch", "ratelimitpolicies/status")}
