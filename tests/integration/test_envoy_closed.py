# SPDX-License-Identifier: Apache-2.0
"""A real Envoy whose limiter gives no answer: what Closed rules cover is refused, all the rest passes.

Coverage is compared with the limiter's own matching, path for path, with Envoy's own normalisation switched off: what
somebody's own Envoy passes on unnormalised must not get past a Closed rule either.
"""

import json
import random
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
from weir_limiter._core import explain
from weir_operator.api.parsing import parse_policy
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault, TrustedProxies
from weir_operator.domain.ruleset import Ruleset, publish, to_bytes

STATS = "extension_config_discovery.http_filter.weir.closed"
GATEWAY = Gateway("edge", "weir-system", allowed_namespaces=frozenset({"*"}), hosts_default=HostsDefault.ANY)
LIMIT = {"requests": 5, "period": "1h"}
CLOSED = {"name": "attempts", "limit": LIMIT, "onStoreFailure": {"mode": "Closed"}}
OPEN = {"name": "volume", "limit": LIMIT}
PATTERNS = [
    "/", "/login", "/v1/orgs/{org}", "/v1/orgs/{org}/*", "/{any}/end", "/files/*", "/café", "/a b", "/100%", "/v1/%zz",
    "/v1/orgs/acme/keys", "/{one}/{two}/{three}",
]  # fmt: skip
HOSTS = ["api.example.com", "*.example.com", "*.deep.example.com", "login.test"]
METHODS: list[list[str]] = [[], [], ["GET"], ["POST"], ["HEAD"], ["GET", "DELETE"]]


def ruleset(*policies: dict[str, Any]) -> Ruleset:
    """What the operator makes of these policies, each a name with its spec."""
    compiled = compile_ruleset([parse_policy(policy) for policy in policies], [], GATEWAY, None)
    assert all(outcome.accepted for outcome in compiled.policies.values()), compiled.policies
    return compiled.ruleset


def policy(name: str, *rules: dict[str, Any], mode: str = "Enforce", **match: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "generation": 1, "uid": name, "resourceVersion": "1"}
    spec = {"gateway": "edge", "mode": mode, "match": match, "rules": list(rules) or [CLOSED]}
    stamp = {"creationTimestamp": "2026-11-30T00:00:00Z"}
    return {"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy", "metadata": metadata | stamp, "spec": spec}


def as_sent(bootstrap: dict[str, Any]) -> None:
    """Let Envoy pass every path on as it is."""
    manager = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    for setting in ("normalize_path", "merge_slashes", "path_with_escaped_slashes_action", "strip_trailing_host_dot"):
        del manager[setting]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """An Envoy with nothing where its limiter should be, which normalises no path."""
    with running(tmp_path_factory.mktemp("alone"), TrustedProxies(), change=as_sent) as bench:
        bench.limiter.stop(None).wait()
        yield bench


@pytest.fixture
def client(alone: Bench) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{alone.port}") as connection:
        yield connection


def in_force(bench: Bench, client: Client, rules: Ruleset) -> None:
    """Mount the rules and return once this connection is under them."""
    mount(bench, rules)
    assert client.send("GET", "/unrelated", host="unrelated.test").status == 200


def mount(bench: Bench, rules: Ruleset) -> None:
    """Mount the rules and return once Envoy has taken them."""
    updates = bench.stat(f"{STATS}.update_success")
    bench.mount(rules)
    eventually(lambda: bench.stat(f"{STATS}.update_success") > updates, within_s=10, what="Envoy has the Closed rules")


def respelled(path: str, dice: random.Random) -> str:
    """The path, or one like it, in one of many spellings that some server would take for it."""
    text = path.replace("{org}", dice.choice(["acme", "b;c", "x"])).replace("{", "").replace("}", "")
    text = text.replace("/*", dice.choice(["", "/", "/below", "/below/more"]))
    spelled = "".join(_character(character, dice) for character in text)
    for piece in ("//", "/./", "/x/../", "/%2e/", "/x/%2E%2e/", ";p=1/", "/..;/", "%3b/", "\\", "%2f", "/.;q/", "%5C"):
        if dice.random() < 0.07:
            slashes = [place for place, character in enumerate(spelled) if character == "/"] or [0]
            place = dice.choice(slashes)
            spelled = spelled[:place] + piece + spelled[place + 1 :]
    tail = dice.choice(["", "", "", "/", "?q=/login", ";a=b", "/.", "/x/..", "%", "/%2e%2e", "x"])
    return spelled + tail if spelled.startswith("/") else "/" + spelled + tail


def _character(character: str, dice: random.Random) -> str:
    raw = character.encode()
    escaped = "".join(dice.choice(["%{:02x}", "%{:02X}"]).format(byte) for byte in raw)
    if not character.isascii() or character == " ":
        return escaped
    if character in "/%":
        return character
    return dice.choices([character, character.upper(), escaped], weights=[8, 1, 1])[0]


@pytest.mark.requirement("R22", "R37")
@pytest.mark.parametrize("seed", range(4))
def test_envoy_refuses_exactly_what_the_limiter_would_have_matched(alone: Bench, client: Client, seed: int) -> None:
    """D60, with the limiter dead."""
    dice = random.Random(seed)
    policies = []
    for number in range(12):
        hosts = dice.choice([[], dice.sample(HOSTS, 1), dice.sample(HOSTS, 2)])
        paths = dice.sample(PATTERNS, dice.randint(0, 2))
        routes = [{"path": path, "methods": dice.choice(METHODS)} for path in paths]
        if hosts or routes:
            visible = {**CLOSED, "visibility": dice.choice(["Public", "Silent"])}
            policies.append(policy(f"p{number:02}", visible, hosts=hosts, routes=routes))
    rules = ruleset(*policies)
    document = to_bytes(publish(rules, 1))
    in_force(alone, client, rules)
    refused = 0
    for _ in range(400):
        method = dice.choice(["GET", "POST", "HEAD", "DELETE", "PUT", "post"])
        host = dice.choice(
            ["api.example.com", "API.Example.com:80", "x.deep.example.com.", "example.com", "login.test"]
        )
        path = respelled(dice.choice(PATTERNS), dice)
        answer = client.send(method, path, host=host)
        if answer.status == 400:  # Envoy itself knows no such request; nobody sees it
            continue
        matched = json.loads(explain(document, json.dumps({"method": method, "host": host, "path": path}).encode()))
        assert (answer.status == 503) == matched["matched"], (method, host, path, answer)
        refused += answer.status == 503
        if answer.status == 503 and method != "HEAD":
            assert answer.json().get("policy", "silent") == named(matched["rules"], rules), (method, host, path)
    assert 20 < refused < 380


def named(matched: list[dict[str, Any]], rules: Ruleset) -> str:
    """The policy that the limiter would name: the first public one of those that match."""
    public = {piece.id for piece in rules.policies if piece.rules[0].visibility == "Public"}
    return next((str(rule["policy"]) for rule in matched if rule["policy"] in public), "silent")


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


def refused_updates(bench: Bench) -> int:
    return sum(bench.stat(f"{STATS}.{name}") for name in ("update_failure", "update_rejected"))


Fault = Callable[[Any], None]


def unavailable(context: Any) -> None:
    context.abort(grpc.StatusCode.UNAVAILABLE, "away")


def internal(context: Any) -> None:
    context.abort(grpc.StatusCode.INTERNAL, "a bug")


def exhausted(context: Any) -> None:
    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many")


@pytest.mark.requirement("R22", "R24")
@pytest.mark.parametrize("fault", [unavailable, internal, exhausted, "dead", "slow", "overloaded"], ids=str)
def test_every_way_of_giving_no_answer_follows_the_rules_mode(fault: Any, tmp_path: Path) -> None:
    """D37: for HTTP and for gRPC, and nobody is asked twice."""
    release = threading.Event()

    def hang(_context: Any) -> None:
        release.wait(timeout=10)

    def tight(bootstrap: dict[str, Any]) -> None:
        (limiter,) = (c for c in bootstrap["static_resources"]["clusters"] if c["name"] == "weir_limiter")
        limiter["circuit_breakers"]["thresholds"][0]["max_requests"] = 1

    change = tight if fault == "overloaded" else lambda _: None
    with running(tmp_path, TrustedProxies(), change=change) as bench, ThreadPoolExecutor() as pool:
        mount(bench, ruleset(policy("closed", routes=[{"path": "/closed/*"}]), policy("open", OPEN)))
        assert bench.get("/closed/x").status == 200
        if fault == "dead":
            bench.limiter.stop(None).wait()
        else:
            bench.recorder.fault = fault if callable(fault) else hang
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
