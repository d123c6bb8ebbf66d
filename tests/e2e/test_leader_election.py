# SPDX-License-Identifier: Apache-2.0
"""Two replicas of the operator: one of them writes, whatever is killed, stopped or comes back."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lab import programs
from lab.client import fetch
from lab.environment import Environment
from lab.layout import SYSTEM_NAMESPACE
from lab.programs import Program
from lab.team import Team
from lab.waiting import eventually

RULE = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 100, "period": "1h"}}
OPERATOR = "system:serviceaccount:weir-system:weir-operator"
FAILOVER_S = 40.0  # within 15 s on a machine that does nothing else
CREATED, OK = 201, 200

Replicas = tuple[Program, Program]


@pytest.fixture
def replicas(environment: Environment, tmp_path: Path) -> Iterator[Replicas]:
    """Both started at the same moment; the first is the environment's own."""
    first = environment.operator
    first.part.stop()
    settings, kubeconfig = Path(first.argv[first.argv.index("--settings") + 1]), Path(first.env["KUBECONFIG"])
    first.restart()
    second = programs.start_operator(settings, kubeconfig, log=tmp_path / "operator-2.log", name="operator-2")
    try:
        for program in (first, second):
            program.wait_ready()
        environment.save()
        yield first, second
    finally:
        for program in (first, second):
            program.part.signal(signal.SIGCONT)
        second.part.stop()
        environment.revive()


def says(program: Program) -> str:
    """What a replica says of itself; empty while it says nothing."""
    try:
        return fetch(f"{program.url}/readyz").body.decode().strip()
    except OSError:
        return ""


def leader_of(replicas: Replicas) -> tuple[Program, Program] | None:
    """The leader and the other one; None as long as it is not clear who leads."""
    first, second = replicas
    for leader, other in ((first, second), (second, first)):
        if says(leader) == "ok: leads":
            assert says(other) != "ok: leads"
            return leader, other
    return None


def audited(team: Team) -> list[tuple[str, str, bool]]:
    """What replicas wrote so far, in order: (replica, resource, granted)."""
    log = team.environment.cluster.audit_log
    if log is None:
        pytest.skip("this cluster's audit log cannot be read")
    records = [json.loads(line) for line in log.read_text().splitlines() if OPERATOR in line]
    writes = [
        (record["requestReceivedTimestamp"], record["userAgent"], record["objectRef"]["resource"], record)
        for record in records
        if record["user"]["username"] == OPERATOR
        and record["verb"] in {"create", "update", "patch", "delete"}
        and record["objectRef"]["resource"] in {"leases", "configmaps", "ratelimitpolicies", "ratelimitoverrides"}
    ]
    writes.sort(key=lambda write: write[0])
    return [
        (agent.partition("/")[2], resource, record["responseStatus"]["code"] in {OK, CREATED})
        for _, agent, resource, record in writes
    ]


def writers_out_of_turn(team: Team) -> list[tuple[str, str, str]]:
    """Writes of a replica that was not the last one to be granted the lease: (replica, resource, holder)."""
    holder, wrong = "", []
    for replica, resource, granted in audited(team):
        if resource == "leases":
            holder = replica if granted else holder
        elif replica != holder:
            wrong.append((replica, resource, holder))
    return wrong


def seen_by_limiters(team: Team, requests: int) -> bool:
    """Whether an edit of the limit has arrived: a request of a client that no other test uses is told so."""
    answer = team.send(headers={"x-api-key": f"failover-{requests}"})
    return f";q={requests};" in f"{answer.header('ratelimit-policy')};"


def edit(team: Team, requests: int) -> None:
    """Set the limit."""
    team.apply(team.policy(rules=[{**RULE, "limit": {"requests": requests, "period": "1h"}}]))


@pytest.mark.requirement("R46")
def test_of_two_replicas_that_start_together_one_writes_and_both_are_ready(replicas: Replicas, team: Team) -> None:
    leader, other = eventually(lambda: leader_of(replicas), FAILOVER_S, what="one of two leads")
    team.apply_ready(*(team.policy(f"p{n}", mode="Shadow", rules=[RULE]) for n in range(5)))
    lease = team.environment.cluster.get("lease", "weir-operator", SYSTEM_NAMESPACE)
    assert lease["spec"]["holderIdentity"].startswith(f"{leader.part.name}_")
    assert says(other) == f"ok: stands by; {lease['spec']['holderIdentity']} leads"
    assert b"weir_operator_leading 0.0" in fetch(other.metrics_url).body
    assert b"weir_operator_limiter_up{" not in fetch(other.metrics_url).body
    assert b"weir_operator_leading 1.0" in fetch(leader.metrics_url).body
    assert writers_out_of_turn(team) == []


@pytest.mark.requirement("R46")
def test_after_sigkill_of_the_leader_the_other_one_takes_over_and_enforces_an_edit(
    replicas: Replicas, team: Team
) -> None:
    edit(team, 11)
    leader, other = eventually(lambda: leader_of(replicas), FAILOVER_S, what="one of two leads")
    team.wait_ready()
    leader.part.kill()
    edit(team, 12)
    assert team.send(headers={"x-api-key": "meanwhile"}).status == OK
    eventually(partial(seen_by_limiters, team, 12), FAILOVER_S, what="the edit is enforced after a failover")
    assert says(other) == "ok: leads"
    team.wait_ready()
    assert writers_out_of_turn(team) == []


@pytest.mark.requirement("R46")
def test_a_stopped_leader_that_comes_back_writes_nothing_before_it_knows(replicas: Replicas, team: Team) -> None:
    edit(team, 21)
    leader, other = eventually(lambda: leader_of(replicas), FAILOVER_S, what="one of two leads")
    team.wait_ready()
    edit(team, 22)  # so that it is stopped with work to do
    leader.part.signal(signal.SIGSTOP)
    edit(team, 23)
    eventually(partial(seen_by_limiters, team, 23), FAILOVER_S, what="the edit is enforced after a failover")
    team.wait_ready()
    leader.part.signal(signal.SIGCONT)
    edit(team, 24)
    eventually(lambda: says(leader).startswith("ok: stands by"), FAILOVER_S, what="the old leader stands by")
    eventually(partial(seen_by_limiters, team, 24), FAILOVER_S, what="the next edit is enforced")
    team.wait_ready()
    assert says(other) == "ok: leads"
    assert writers_out_of_turn(team) == []
    assert "leads no longer" in leader.part.tail(200)


@pytest.mark.requirement("R46")
def test_a_leader_that_is_asked_to_end_gives_the_lease_back(replicas: Replicas, team: Team) -> None:
    leader, other = eventually(lambda: leader_of(replicas), FAILOVER_S, what="one of two leads")
    leader.part.signal(signal.SIGTERM)
    eventually(lambda: says(other) == "ok: leads", FAILOVER_S, what="the other one leads")
    edit(team, 31)
    team.wait_ready()
    assert "gave the lease back" in leader.part.tail(50)
    assert writers_out_of_turn(team) == []
