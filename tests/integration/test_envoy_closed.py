# SPDX-License-Identifier: Apache-2.0
"""A real Envoy whose limiter gives no answer: what Closed rules cover is refused, all the rest passes.

Which requests a rule covers is `test_envoy_closed_coverage`'s business.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from lab.client import Answer, Client
from lab.envoy_bench import Bench, running
from lab.waiting import eventually
from rig.closed import CLOSED, OPEN, in_force, mount, policy, refused_updates, ruleset
from weir_operator.domain.gateways import TrustedProxies


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """An Envoy with nothing where its limiter should be."""
    with running(tmp_path_factory.mktemp("alone"), TrustedProxies()) as bench:
        bench.limiter.stop(None).wait()
        yield bench


@pytest.fixture
def client(alone: Bench) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{alone.port}") as connection:
        yield connection


@pytest.mark.requirement("R22")
def test_the_client_is_told_what_the_limiter_would_have_told(alone: Bench, client: Client) -> None:
    told = policy("told", OPEN, CLOSED, hosts=["told.test"])
    told["spec"]["response"] = {"documentation": "https://developer.example.com/limits"}
    silent = policy("silent", {**CLOSED, "visibility": "Silent"}, hosts=["silent.test"])
    in_force(alone, client, ruleset(told, silent))
    answer = client.send("GET", "/", host="told.test")
    assert (answer.status, answer.header("retry-after"), answer.header("cache-control")) == (503, "1", "no-store")
    assert answer.header("content-type") == "application/problem+json"
    body = answer.json()
    assert body.pop("instance") == f"urn:uuid:{answer.header('x-request-id')}"
    assert body == {
        "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        "title": "Temporarily reduced capacity",
        "status": 503,
        "detail": 'Limit "attempts" cannot be checked at the moment; retry in 1 s.',
        "code": "limiter_unavailable",
        "policy": "team/told",
        "rule": "attempts",
        "retryAfterSeconds": 1,
        "violated-policies": ["attempts"],
        "documentation": "https://developer.example.com/limits",
    }
    answer = client.send("GET", "/", host="silent.test")
    assert answer.status == 503
    assert answer.json() == {"type": "about:blank", "title": "Service Unavailable", "status": 503}
    call = client.send("POST", "/", host="told.test", headers={"content-type": "application/grpc+proto"})
    assert (call.status, call.header("grpc-status"), call.header("retry-after")) == (200, "14", "1")
    assert call.header("grpc-message") == body["detail"]


@pytest.mark.requirement("R22")
def test_a_grpc_client_is_told_unavailable_with_the_reason(alone: Bench, client: Client) -> None:
    """D37, over HTTP/2."""
    in_force(alone, client, ruleset(policy("calls", routes=[{"path": "/test.Echo/*"}])))
    with grpc.insecure_channel(f"127.0.0.1:{alone.port}") as channel, pytest.raises(grpc.RpcError) as refusal:
        channel.unary_unary("/test.Echo/Say")(b"hello", timeout=10)
    call: Any = refusal.value
    assert call.code() is grpc.StatusCode.UNAVAILABLE
    assert call.details() == 'Limit "attempts" cannot be checked at the moment; retry in 1 s.'


@pytest.mark.requirement("R22", "R24")
def test_open_local_shadow_and_disabled_rules_refuse_nothing(alone: Bench, client: Client) -> None:
    policies = [
        policy("open", OPEN, hosts=["open.test"]),
        policy("local", {**CLOSED, "onStoreFailure": {"mode": "Local"}}, hosts=["local.test"]),
        policy("shadow", mode="Shadow", hosts=["shadow.test"]),
        policy("disabled", mode="Disabled", hosts=["disabled.test"]),
        policy("closed", hosts=["closed.test"]),
    ]
    in_force(alone, client, ruleset(*policies))
    seen = {name: client.send(host=f"{name}.test").status for name in ("open", "local", "shadow", "disabled", "closed")}
    assert seen == {"open": 200, "local": 200, "shadow": 200, "disabled": 200, "closed": 503}


@pytest.mark.requirement("R22")
def test_an_edit_is_in_force_on_an_open_connection(alone: Bench, client: Client) -> None:
    first, second = policy("one", hosts=["one.test"]), policy("two", hosts=["two.test"])
    edits = [([first], [503, 200]), ([first, second], [503, 503]), ([second], [200, 503]), ([], [200, 200])]
    for policies, expected in edits:
        mount(alone, ruleset(*policies))
        assert [client.send(host=f"{name}.test").status for name in ("one", "two")] == expected
        assert client.connected


@pytest.mark.requirement("R22", "R24")
def test_a_mounted_file_that_is_broken_leaves_the_last_good_one_in_force(alone: Bench, client: Client) -> None:
    """D44 for Envoy's part."""
    in_force(alone, client, ruleset(policy("one", hosts=["one.test"])))
    good = (alone.closed / "closed.json").read_bytes()
    for broken in [b"{", good.replace(b"function", b"fun ction"), good.replace(b"stat_prefix", b"stat_prefex")]:
        refusals = refused_updates(alone)
        alone.mount_bytes(broken)
        eventually(lambda refusals=refusals: refused_updates(alone) > refusals, within_s=10)  # type: ignore[misc]
        assert client.send(host="one.test").status == 503


@pytest.mark.requirement("R22")
def test_a_fault_in_the_script_refuses(alone: Bench, client: Client) -> None:
    """What is Closed cannot be told any more, so nothing may pass for open."""
    in_force(alone, client, ruleset(policy("one", hosts=["one.test"])))
    good = (alone.closed / "closed.json").read_bytes()
    alone.mount_bytes(good.replace(b"team/one attempts P - one.test", b"team/one"))
    answer = eventually(lambda: (seen := client.send(host="other.test")).status == 503 and seen, within_s=10)
    assert isinstance(answer, Answer)
    assert answer.json() == {"type": "about:blank", "title": "Service Unavailable", "status": 503}


@pytest.mark.requirement("R22", "R24")
@pytest.mark.parametrize("fault", ["UNAVAILABLE", "INTERNAL", "RESOURCE_EXHAUSTED", "dead", "slow", "overloaded"])
def test_every_way_of_giving_no_answer_follows_the_rules_mode(fault: str, tmp_path: Path) -> None:
    """D37: for HTTP and for gRPC, and nobody is asked twice."""
    release = threading.Event()

    def give_no_answer(context: Any) -> None:
        if fault in grpc.StatusCode.__members__:
            context.abort(grpc.StatusCode[fault], "as the test wants it")
        release.wait(timeout=10)

    def tight(bootstrap: dict[str, Any]) -> None:
        (limiter,) = (c for c in bootstrap["static_resources"]["clusters"] if c["name"] == "weir_limiter")
        limiter["circuit_breakers"]["thresholds"][0]["max_requests"] = 1
        manager = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        (asks,) = (found for found in manager["http_filters"] if found["name"] == "envoy.filters.http.ext_authz")
        asks["typed_config"]["grpc_service"]["timeout"] = "60s"  # so that only the breaker gives up

    change = tight if fault == "overloaded" else lambda _: None
    with running(tmp_path, TrustedProxies(), change=change) as bench, ThreadPoolExecutor() as pool:
        mount(bench, ruleset(policy("closed", routes=[{"path": "/closed/*"}]), policy("open", OPEN)))
        assert bench.get("/closed/x").status == 200
        if fault == "dead":
            bench.limiter.stop(None).wait()
        else:
            bench.recorder.fault = give_no_answer
        if fault == "overloaded":
            pool.submit(bench.get, "/busy")
            eventually(lambda: len(bench.recorder.seen) == 2, within_s=5)
        asked = len(bench.recorder.seen)
        answers = [bench.get("/closed/x"), bench.get("/open")]
        call = bench.get("/closed/x", {"content-type": "application/grpc"}, method="POST")
        release.set()
        assert [answer.status for answer in answers] == [503, 200]
        assert answers[1].upstream_saw["headers"]["x-envoy-auth-failure-mode-allowed"] == "true"
        assert (call.status, call.headers["grpc-status"]) == (200, "14")
        assert len(bench.recorder.seen) - asked == (0 if fault in ("dead", "overloaded") else 3)


def test_a_client_cannot_pretend_that_the_limiter_is_away(tmp_path: Path) -> None:
    """Only itself would be refused, but the upstream's log would be wrong."""
    with running(tmp_path, TrustedProxies()) as bench:
        mount(bench, ruleset(policy("closed")))
        assert bench.get("/", {"x-envoy-auth-failure-mode-allowed": "true"}).status == 200


def test_a_gateway_switched_off_at_envoy_refuses_nothing(alone: Bench, client: Client) -> None:
    in_force(alone, client, ruleset(policy("one", hosts=["one.test"])))
    assert client.send(host="one.test").status == 503
    assert alone.admin("POST", "/runtime_modify?weir.enabled_pct=0").status == 200
    try:
        assert client.send(host="one.test").status == 200
    finally:
        alone.admin("POST", "/runtime_modify?weir.enabled_pct=100")


@pytest.mark.requirement("R22")
def test_a_thousand_closed_rules_are_taken_and_hold(alone: Bench, client: Client) -> None:
    def spec(number: int) -> dict[str, Any]:
        hosts = [f"h{number}.example.com", f"*.h{number}.example.com"]
        routes = [{"path": f"/v1/service-{number}/{{id}}/*", "methods": ["GET", "POST"]}, {"path": f"/login/{number}"}]
        return policy(f"p{number:04}", hosts=hosts, routes=routes)

    in_force(alone, client, ruleset(*(spec(number) for number in range(1000))))
    send: Callable[[str, str], Answer] = lambda host, path: client.send(host=host, path=path)  # noqa: E731
    assert send("h999.example.com", "/v1/service-999/7/x").status == 503
    assert send("a.h0.example.com", "/LOGIN/0").status == 503
    assert send("h999.example.com", "/v1/service-998/7/x").status == 200
