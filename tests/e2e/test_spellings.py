# SPDX-License-Identifier: Apache-2.0
"""No spelling of a limited path, host or method escapes its rule: through a real Envoy, sent exactly as written."""

import pytest

from lab.environment import Environment
from lab.team import Team

LIMITED = {
    "name": "login",
    "key": [{"header": "x-api-key"}],
    "limit": {"requests": 3, "period": "1h"},
    "onStoreFailure": {"mode": "Closed"},
}
SPELLINGS = [
    "//login",
    "/./login",
    "/x/../login",
    "/%6cogin",
    "/%6Cogin",
    "/LOGIN",
    "/login/",
    "/login?x=1",
    "/login?",
    "/login;a=b",
    "/.//login",
    "/login/.",
    "/x/%2e%2e/login",
    "/%2e/login",
    "/login%2f",
    "/x%2f..%2flogin",
    "/x/..%2flogin",
    "/\\login",
    "/login#fragment",
]


# What Envoy leaves as it is and some upstream serves below the rule's own path.
# `/prefix/..;/a` is not among them: Envoy itself resolves it, and the upstream sees `/a`, outside the prefix.
SEMICOLONS = {
    "/prefix/a": ["/prefix/%2e%2e;/a", "/prefix/%2e%2e%3b/a", "/prefix/;/a", "/prefix;x=1/..%3b/a"],
    "/users/ann": ["/users/;ann", "/users/%3Bann", "/users/ann;x=1"],
}


@pytest.fixture(scope="module")
def team(standing_team: Team) -> Team:
    """One policy for one route, one for a prefix, one for a template, and one for a whole host."""
    route = {"hosts": [standing_team.host], "routes": [{"path": "/login", "methods": ["POST"]}]}
    prefix = {"hosts": [standing_team.host], "routes": [{"path": "/prefix/*"}]}
    template = {"hosts": [standing_team.host], "routes": [{"path": "/users/{name}"}]}
    whole = {"hosts": [f"whole.{standing_team.host}"]}
    standing_team.apply_ready(
        standing_team.policy("route", match=route, rules=[LIMITED]),
        standing_team.policy("prefix", match=prefix, rules=[LIMITED]),
        standing_team.policy("template", match=template, rules=[LIMITED]),
        standing_team.policy("whole-host", match=whole, rules=[LIMITED]),
    )
    return standing_team


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_respelled_path_shares_the_count_or_does_not_reach_the_upstream(
    team: Team, api_key: dict[str, str], spelling: str
) -> None:
    """D60."""
    spend = [team.send("/login", method="POST", headers=api_key).status for _ in range(4)]
    assert spend == [200] * 3 + [429]
    answer = team.send(spelling, method="POST", headers=api_key)
    assert answer.header("x-upstream") is None, f"{spelling} reached the upstream as {answer.json()['path']}"
    assert answer.status == 429 or 300 <= answer.status < 400 or answer.status == 400, answer


@pytest.mark.requirement("R37")
@pytest.mark.parametrize(
    ("path", "spelling"), [(path, spelling) for path, spellings in SEMICOLONS.items() for spelling in spellings]
)
def test_a_semicolon_takes_no_path_out_of_a_prefix_or_a_template(
    team: Team, api_key: dict[str, str], path: str, spelling: str
) -> None:
    """D60."""
    assert [team.send(path, headers=api_key).status for _ in range(4)] == [200] * 3 + [429]
    answer = team.send(spelling, headers=api_key)
    assert answer.header("x-upstream") is None, f"{spelling} reached the upstream as {answer.json()['path']}"
    assert answer.status == 429 or 300 <= answer.status < 400 or answer.status == 400, answer


@pytest.mark.requirement("R22", "R37")
def test_no_spelling_escapes_a_closed_rule_whose_limiter_is_dead(
    environment: Environment, team: Team, api_key: dict[str, str]
) -> None:
    """D60: it is Envoy that refuses then, on a connection that was open before."""
    paths = [("POST", spelling) for spelling in ["/login", *SPELLINGS]]
    paths += [("GET", spelling) for path, spellings in SEMICOLONS.items() for spelling in [path, *spellings]]
    with team.connect() as client:
        assert client.send("POST", "/login", host=team.host, headers=api_key).status == 200
        environment.limiters[0].program.part.kill()
        try:
            for method, path in paths:
                answer = client.send(method, path, host=team.host, headers=api_key)
                assert answer.header("x-upstream") is None, f"{path} reached the upstream as {answer.json()['path']}"
                assert answer.status == 503 or 300 <= answer.status < 400 or answer.status == 400, answer
            for host in (team.host.upper(), f"{team.host}.", f"{team.host}:8080"):
                answer = client.send("POST", "/login", host=host, headers=api_key)
                assert answer.status in {503, 404, 400}, answer
            assert client.send("POST", "/other", host=team.host, headers=api_key).status == 200
        finally:
            environment.revive()


@pytest.mark.parametrize("port", ["", ":80", ":8080"])
@pytest.mark.parametrize("respelled", ["{host}", "{upper}", "{host}."])
def test_a_respelled_host_shares_the_count(team: Team, api_key: dict[str, str], port: str, respelled: str) -> None:
    host = f"whole.{team.host}"
    with team.connect() as client:
        assert [client.send("GET", "/", host=host, headers=api_key).status for _ in range(3)] == [200] * 3
        answer = client.send("GET", "/", host=respelled.format(host=host, upper=host.upper()) + port, headers=api_key)
    assert answer.header("x-upstream") is None, f"{host} passed"
    assert answer.status in {429, 404, 400}
