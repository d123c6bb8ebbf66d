# SPDX-License-Identifier: Apache-2.0
"""Closed rules hold when the limiter gives no answer: Envoy refuses what they cover, on connections open before that.

One gateway's limiter is killed, stopped or overrun, and its Envoy is asked on a connection that was made before that.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from lab import envoy as envoys
from lab.client import Answer, Client, fetch
from lab.environment import Environment
from lab.layout import ENVOY_CONFIGMAP, SYSTEM_NAMESPACE
from lab.team import Team
from lab.waiting import eventually

MOUNTED_S = 15.0  # from kubectl apply to Envoy, on a busy machine; the lab's kubelet does not wait for a minute
LIMIT = {"requests": 5, "period": "1h"}
OPEN = {"name": "volume", "key": [{"header": "x-api-key"}], "limit": LIMIT}
CLOSED = {"name": "attempts", "key": [{"header": "x-api-key"}], "limit": LIMIT, "onStoreFailure": {"mode": "Closed"}}


def login(team: Team, *rules: dict[str, Any], mode: str = "Enforce", path: str = "/login") -> str:
    match = {"hosts": [team.host], "routes": [{"path": path, "methods": ["POST"]}]}
    return team.policy("login", match=match, mode=mode, rules=list(rules or [CLOSED]))


def ask(team: Team, client: Client, headers: dict[str, str], path: str = "/login") -> Answer:
    return client.send("POST", path, host=team.host, headers=headers)


def passed_unasked(answer: Answer) -> bool:
    """Whether the upstream answered, and was told that no limiter had been asked."""
    if answer.status != 200:
        return False
    return ["x-envoy-auth-failure-mode-allowed", "true"] in [[n.lower(), v] for n, v in answer.json()["headers"]]


@pytest.mark.requirement("R22", "R24")
@pytest.mark.parametrize("harm", ["killed", "stopped"])
def test_a_limiter_that_gives_no_answer_closes_what_closed_rules_cover_and_nothing_else(
    team: Team, api_key: dict[str, str], harm: str
) -> None:
    """D30, D37: also with the limiter frozen by SIGSTOP, whose socket still takes connections."""
    team.apply_ready(login(team), team.policy("volume", rules=[OPEN]))
    part = team.environment.limiters[0].program.part
    with team.connect(0) as client:
        assert ask(team, client, api_key).status == 200
        if harm == "killed":
            part.kill()
        else:
            part.pause()
        try:
            refused = ask(team, client, api_key)
            assert (refused.status, refused.header("retry-after")) == (503, "1")
            assert refused.header("content-type") == "application/problem+json"
            assert refused.json()["code"] == "limiter_unavailable"
            assert (refused.json()["policy"], refused.json()["rule"]) == (f"{team.namespace}/login", "attempts")
            assert passed_unasked(ask(team, client, api_key, "/orders"))
            assert passed_unasked(client.send("GET", "/login", host=team.host, headers=api_key))
            assert team.send("/login", method="POST", headers=api_key, gateway=1).status == 200
            assert client.connected
        finally:
            part.resume()
        team.environment.revive()
        eventually(lambda: ask(team, client, api_key).status == 429, within_s=10, what="the limiter decides again")


@pytest.mark.requirement("R22", "R24")
def test_a_limiter_over_its_circuit_breakers_limit_closes_what_closed_rules_cover(
    environment: Environment, team: Team, api_key: dict[str, str]
) -> None:
    """D37: calls that Envoy itself does not make any more."""
    team.apply_ready(login(team), team.policy("volume", rules=[OPEN]))
    limiter = environment.limiters[0]
    files = {"socket": limiter.socket, "closed": environment.folder / "closed", "folder": environment.folder}
    tight = envoys.start("tight", tight_bootstrap(environment), **files, log=environment.logs / "tight.log")
    busy = f"{tight.admin_url}/stats?filter=cluster.weir_limiter.upstream_rq_active$"

    def order() -> int:
        with Client(tight.url) as client:
            return ask(team, client, api_key, "/orders").status

    try:
        tight.program.wait_ready()
        with Client(tight.url) as client, ThreadPoolExecutor() as pool:
            assert ask(team, client, api_key).status == 200
            limiter.program.part.pause()
            waiting = [pool.submit(order) for _ in range(4)]
            eventually(lambda: fetch(busy).body.strip().endswith(b": 4"), within_s=8, what="four calls are under way")
            assert ask(team, client, api_key).status == 503
            assert passed_unasked(ask(team, client, api_key, "/orders"))
            assert not any(answer.done() for answer in waiting)  # so it was the breaker that gave up, and no timeout
            limiter.program.part.resume()
            assert [answer.result() for answer in waiting] == [200] * 4
    finally:
        limiter.program.part.resume()
        tight.program.part.stop()


def tight_bootstrap(environment: Environment) -> str:
    """The rendered bootstrap with at most four calls at a time instead of 26,384, and all patience with each."""
    rendered = environment.cluster.get("configmap", ENVOY_CONFIGMAP, SYSTEM_NAMESPACE)["data"]["bootstrap.yaml"]
    bootstrap = yaml.safe_load(rendered)
    resources = bootstrap["static_resources"]
    (limiter,) = (cluster for cluster in resources["clusters"] if cluster["name"] == "weir_limiter")
    limiter["circuit_breakers"]["thresholds"][0]["max_requests"] = 4
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    (asks,) = (found for found in manager["http_filters"] if found["name"] == "envoy.filters.http.ext_authz")
    asks["typed_config"]["grpc_service"]["timeout"] = "60s"
    return yaml.safe_dump(bootstrap)


@pytest.mark.requirement("R22", "R24")
def test_edits_while_the_limiter_is_down_are_in_force_on_open_connections(team: Team, api_key: dict[str, str]) -> None:
    """A rule made Closed, moved, put in shadow, and a Closed one that is removed; every time on the one connection."""
    team.apply_ready(login(team, OPEN))
    with team.connect(0) as client:
        assert ask(team, client, api_key).status == 200
        team.environment.limiters[0].program.part.kill()
        assert passed_unasked(ask(team, client, api_key))

        def becomes(status: int, path: str = "/login") -> None:
            what = f"{path} gives {status}"
            eventually(lambda: ask(team, client, api_key, path).status == status, within_s=MOUNTED_S, what=what)
            assert client.connected

        team.apply(login(team, CLOSED))
        becomes(503)
        team.apply(login(team, CLOSED, path="/session/{id}"))
        becomes(503, "/session/7")
        assert passed_unasked(ask(team, client, api_key))
        team.apply(login(team, CLOSED, mode="Shadow", path="/session/{id}"))
        becomes(200, "/session/7")
        team.apply(login(team, CLOSED))
        becomes(503)
        team.kubectl("delete", "rlpol", "login")
        becomes(200)


@pytest.mark.requirement("R22", "R24")
def test_open_shadow_and_disabled_rules_refuse_nothing_without_their_limiter(
    team: Team, api_key: dict[str, str]
) -> None:
    for name, mode, rule in [("open", "Enforce", OPEN), ("shadow", "Shadow", CLOSED), ("disabled", "Disabled", CLOSED)]:
        team.apply(team.policy(name, mode=mode, rules=[rule], match={"hosts": [f"{name}.{team.host}"]}))
    team.apply_ready(team.policy("closed", rules=[CLOSED], match={"hosts": [f"closed.{team.host}"]}))
    team.environment.limiters[0].program.part.kill()
    with team.connect(0) as client:
        hosts = [f"{name}.{team.host}" for name in ("open", "shadow", "disabled", "closed")]
        eventually(lambda: client.send(host=hosts[3], headers=api_key).status == 503, within_s=MOUNTED_S)
        assert [client.send(host=host, headers=api_key).status for host in hosts] == [200, 200, 200, 503]
