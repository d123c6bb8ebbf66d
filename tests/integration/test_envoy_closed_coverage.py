# SPDX-License-Identifier: Apache-2.0
"""Without its limiter Envoy refuses exactly what the limiter would have matched, whatever the spelling.

Compared with the limiter's own matching, path for path, with Envoy's own normalisation switched off: what another Envoy
passes on unnormalised must not get past a Closed rule either.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from lab.client import Client
from lab.envoy_bench import Bench, running
from rig.closed import CLOSED, in_force, policy, ruleset
from weir_limiter._core import explain
from weir_operator.domain.gateways import TrustedProxies
from weir_operator.domain.ruleset import Ruleset, publish, to_bytes

PATTERNS = [
    "/", "/login", "/v1/orgs/{org}", "/v1/orgs/{org}/*", "/{any}/end", "/files/*", "/café", "/a b", "/100%", "/v1/%zz",
    "/v1/orgs/acme/keys", "/{one}/{two}/{three}",
]  # fmt: skip
HOSTS = ["api.example.com", "*.example.com", "*.deep.example.com", "login.test"]
METHODS: list[list[str]] = [[], [], ["GET"], ["POST"], ["HEAD"], ["GET", "DELETE"]]


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
