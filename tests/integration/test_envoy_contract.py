# SPDX-License-Identifier: Apache-2.0
"""A real Envoy with the rendered configuration: whether it takes it, what it asks, what passes when nobody answers."""

import json
import subprocess
from collections.abc import Iterator
from concurrent import futures
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import yaml

from lab import toolbox
from lab.envoy_bench import METADATA, Bench, mount_closed, running
from lab.waiting import eventually
from weir_operator.domain.gateways import Address, Envoy, Gateway, TrustedProxies, Upstream
from weir_operator.domain.ruleset import Ruleset
from weir_operator.render.envoy import render_envoy

LOOPBACK_AND_TEN = TrustedProxies(cidrs=("127.0.0.0/8", "10.0.0.0/8"))


@pytest.fixture(scope="module")
def by_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running(tmp_path_factory.mktemp("peer"), TrustedProxies()) as bench:
        yield bench


@pytest.fixture(scope="module")
def by_hops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running(tmp_path_factory.mktemp("hops"), TrustedProxies(hops=1)) as bench:
        yield bench


@pytest.fixture(scope="module")
def by_cidr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running(tmp_path_factory.mktemp("cidr"), LOOPBACK_AND_TEN) as bench:
        yield bench


def client_told(bench: Bench, headers: dict[str, str]) -> str | None:
    """The client address that the limiter was told for a request with these headers."""
    assert bench.get("/", headers).status == 200
    return bench.recorder.seen[-1].get("x-weir-client-ip")


def validate(config: Path) -> subprocess.CompletedProcess[str]:
    argv = [str(toolbox.envoy()), "--mode", "validate", "--reject-unknown-dynamic-fields", "-c", str(config)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def mounted(folder: Path) -> str:
    """A folder with the file that must be there before Envoy starts."""
    mount_closed(folder / "closed", Ruleset("edge"))
    return str(folder / "closed")


ECHO = Upstream("echo", ("*",), "127.0.0.1", 8081)
VARIANTS = {
    "defaults, no upstream": Envoy(),
    "peer is the client": Envoy(upstreams=(ECHO,)),
    "hops": Envoy(trusted_proxies=TrustedProxies(hops=2), upstreams=(ECHO,)),
    "cidrs of both families": Envoy(trusted_proxies=TrustedProxies(("10.0.0.0/8", "2001:db8::/32")), upstreams=(ECHO,)),
    "several upstreams": Envoy(upstreams=(ECHO, Upstream("orders", ("api.example.com", "*.o.org"), "orders.svc", 80))),
    "IPv6 listener": Envoy(listen=Address("::", 8080), upstreams=(Upstream("six", ("*",), "::1", 8081),)),
}


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("variant", VARIANTS)
def test_envoy_accepts_the_bootstrap(variant: str, tmp_path: Path) -> None:
    config = tmp_path / "bootstrap.yaml"
    settings = replace(VARIANTS[variant], closed_directory=mounted(tmp_path))
    config.write_text(render_envoy(Gateway("edge", "weir-system", envoy=settings))["bootstrap.yaml"])
    outcome = validate(config)
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    assert "deprecated" not in outcome.stderr.lower()


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("trusted", [TrustedProxies(), LOOPBACK_AND_TEN], ids=["peer", "cidrs"])
def test_envoy_accepts_the_parts_inside_somebody_elses_bootstrap(trusted: TrustedProxies, tmp_path: Path) -> None:
    settings = Envoy(trusted_proxies=trusted, closed_directory=mounted(tmp_path))
    rendered = render_envoy(Gateway("edge", "weir-system", envoy=settings))
    bootstrap = yaml.safe_load(rendered["bootstrap.yaml"])
    manager = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"] = [*yaml.safe_load(rendered["http-filters.yaml"]), manager["http_filters"][-1]]
    bootstrap["static_resources"]["clusters"] = yaml.safe_load(rendered["cluster.yaml"])
    config = tmp_path / "theirs.yaml"
    config.write_text(yaml.safe_dump(bootstrap))
    assert validate(config).returncode == 0


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("bench", ["by_peer", "by_hops", "by_cidr"])
def test_a_clients_own_claim_of_an_address_never_reaches_limiter_or_upstream(
    bench: str, request: pytest.FixtureRequest
) -> None:
    running_bench: Bench = request.getfixturevalue(bench)
    answer = running_bench.get("/", {"X-Weir-Client-IP": "6.6.6.6"})
    assert running_bench.recorder.seen[-1].get("x-weir-client-ip") != "6.6.6.6"
    assert answer.upstream_saw["headers"].get("x-weir-client-ip") != "6.6.6.6"


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("forwarded", ["6.6.6.6", "6.6.6.6, 203.0.113.9", "unknown", ""])
def test_x_forwarded_for_changes_nothing_without_trusted_proxies(by_peer: Bench, forwarded: str) -> None:
    """D27: with no trusted hop the header is ignored."""
    assert client_told(by_peer, {"x-forwarded-for": forwarded}) == "127.0.0.1"


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("invented", [f"1.2.3.{n}" for n in range(1, 6)])
def test_entries_left_of_the_trusted_hop_change_nothing(by_hops: Bench, invented: str) -> None:
    """D27: one trusted hop, so the rightmost entry is the client whatever stands left of it."""
    assert client_told(by_hops, {"x-forwarded-for": f"{invented}, 198.51.100.9"}) == "198.51.100.9"


@pytest.mark.requirement("R37")
@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("198.51.100.9", "198.51.100.9"),
        ("6.6.6.6, 198.51.100.9", "198.51.100.9"),
        ("6.6.6.6, 198.51.100.9, 10.1.2.3", "198.51.100.9"),
        ("garbage, 198.51.100.9, 10.1.2.3", "198.51.100.9"),
        ("198.51.100.9, ::ffff:10.1.2.3", "198.51.100.9"),
        ("2001:db8:1:2::7, 10.1.2.3", "2001:db8:1:2::7"),
    ],
)
def test_the_client_is_the_first_untrusted_entry_from_the_right(by_cidr: Bench, forwarded: str, client: str) -> None:
    """D27."""
    assert client_told(by_cidr, {"x-forwarded-for": forwarded}) == client


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("forwarded", ["", "10.1.2.3", "unknown", "198.51.100.9:51234", "198.51.100.9, garbage"])
def test_a_client_that_the_trusted_proxies_do_not_name_is_stated_as_nobody(by_cidr: Bench, forwarded: str) -> None:
    """D28: never the proxy's address and never an empty string, which all such clients would share."""
    assert client_told(by_cidr, {"x-forwarded-for": forwarded, "x-weir-client-ip": "6.6.6.6"}) is None


@pytest.mark.parametrize("spelling", ["/login", "//login", "/./login", "/x/../login", "/%6cogin", "/login/../login"])
def test_a_path_has_one_spelling_for_limiter_and_upstream(by_peer: Bench, spelling: str) -> None:
    """D60."""
    answer = by_peer.get(spelling)
    assert (by_peer.recorder.seen[-1][":path"], answer.upstream_saw["path"]) == ("/login", "/login")


@pytest.mark.parametrize(
    ("spelling", "location"),
    [
        ("/login%2f", "/login/"),
        ("/x%2F..%2flogin", "/login"),
        ("/login%5C", "/login/"),
        ("/%2f%2fevil.test", "/evil.test"),
    ],
)
def test_an_escaped_slash_is_sent_back_to_its_true_path_unseen_by_anybody(
    by_peer: Bench, spelling: str, location: str
) -> None:
    """D60."""
    asked = len(by_peer.recorder.seen)
    answer = by_peer.get(spelling)
    assert (answer.status, answer.headers["location"]) == (307, location)
    assert len(by_peer.recorder.seen) == asked


@pytest.mark.parametrize("spelling", ["/LOGIN", "/login;a=b", "/login?x=1"])
def test_spellings_that_envoy_keeps_reach_the_limiter_as_they_reach_the_upstream(by_peer: Bench, spelling: str) -> None:
    """D60: case, matrix parameters and the query are the limiter's to ignore."""
    answer = by_peer.get(spelling)
    assert by_peer.recorder.seen[-1][":path"] == answer.upstream_saw["path"] == spelling


def test_a_header_with_an_underscore_is_refused(by_peer: Bench) -> None:
    assert by_peer.get("/", {"x_api_key": "k1"}).status == 400


def test_withheld_headers_reach_the_upstream_and_not_the_limiter(by_peer: Bench) -> None:
    answer = by_peer.get("/", {"Cookie": "session=1", "Authorization": "Bearer t", "X-API-Key": "k1"})
    assert {"cookie", "authorization"} <= answer.upstream_saw["headers"].keys()
    assert not {"cookie", "authorization"} & by_peer.recorder.seen[-1].keys()
    assert by_peer.recorder.seen[-1]["x-api-key"] == "k1"


def test_a_client_cannot_make_envoy_retry(by_cidr: Bench) -> None:
    answer = by_cidr.get("/", {"x-envoy-retry-on": "5xx", "x-envoy-max-retries": "9"})
    assert not {"x-envoy-retry-on", "x-envoy-max-retries"} & answer.upstream_saw["headers"].keys()


def test_the_limiters_answer_reaches_the_client_whether_allowed_or_refused(by_peer: Bench) -> None:
    allowed, refused = by_peer.get("/"), by_peer.get("/denied", method="POST")
    assert (allowed.status, allowed.headers["ratelimit"]) == (200, '"burst";r=7')
    assert (refused.status, refused.headers["retry-after"], refused.body) == (429, "1", b'{"status":429}')


def test_a_refusal_is_not_charged_to_the_upstream(by_peer: Bench) -> None:
    assert by_peer.get("/denied").status == 429
    stats = by_peer.admin("GET", "/stats?filter=cluster.echo.upstream_rq_429").body.decode()
    assert "upstream_rq_429" not in stats


def test_the_access_log_names_the_decision_and_shows_no_query(by_peer: Bench) -> None:
    by_peer.get("/logged?token=secret")
    line = eventually(
        lambda: next((line for line in by_peer.access_log() if line["path"] == "/logged"), None), within_s=15
    )
    assert line is not None
    assert {key: line[key] for key in METADATA} == METADATA
    assert (line["status"], line["client"]) == (200, "127.0.0.1")
    assert "token" not in json.dumps(by_peer.access_log())


def test_envoys_own_switch_takes_the_limiter_out_of_the_path(by_peer: Bench) -> None:
    assert by_peer.admin("POST", "/runtime_modify?weir.enabled_pct=0").status == 200
    try:
        assert by_peer.get("/denied").status == 200
    finally:
        by_peer.admin("POST", "/runtime_modify?weir.enabled_pct=100")
    assert by_peer.get("/denied").status == 429


@pytest.mark.requirement("R24")
def test_a_dead_limiter_lets_requests_pass_and_the_upstream_knows(tmp_path: Path) -> None:
    with running(tmp_path, TrustedProxies()) as bench:
        assert bench.get("/denied").status == 429
        bench.limiter.stop(None).wait()
        answer = bench.get("/denied")
        assert answer.status == 200
        assert answer.upstream_saw["headers"]["x-envoy-auth-failure-mode-allowed"] == "true"
        assert "ratelimit" not in answer.headers


def test_the_failure_marker_cannot_be_forged(by_peer: Bench) -> None:
    answer = by_peer.get("/", {"x-envoy-auth-failure-mode-allowed": "true"})
    assert "x-envoy-auth-failure-mode-allowed" not in answer.upstream_saw["headers"]


def test_grpc_calls_pass_to_an_upstream_in_http2(tmp_path: Path) -> None:
    say = grpc.unary_unary_rpc_method_handler(lambda request, _context: request)
    upstream = grpc.server(futures.ThreadPoolExecutor(1))
    upstream.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", {"Say": say})])
    port = upstream.add_insecure_port("127.0.0.1:0")
    upstream.start()
    with (
        running(tmp_path, TrustedProxies(), upstream_port=port) as bench,
        grpc.insecure_channel(f"127.0.0.1:{bench.port}") as channel,
    ):
        assert channel.unary_unary("/test.Echo/Say")(b"hello", timeout=10) == b"hello"
        assert bench.recorder.seen[-1][":path"] == "/test.Echo/Say"
    upstream.stop(None).wait()
