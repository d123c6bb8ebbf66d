# SPDX-License-Identifier: Apache-2.0
"""What Envoy is told to refuse while the limiter gives no answer, read as data.

That a real Envoy refuses exactly that is shown in tests/integration.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.gateways import Envoy, Gateway
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.modes import Stage, Switch
from weir_operator.domain.ruleset import Match, Policy, Response, Route, Rule, Ruleset
from weir_operator.render.envoy_closed import closed_filter, render_closed
from weir_operator.render.ruleset_config import MAX_PLAIN_BYTES, Manifest, RulesetTooLarge

GATEWAY = Gateway("edge", "weir-system")
CLOSED = Rule(
    name="attempts",
    mode=Mode.ENFORCE,
    key=(),
    on_missing_key=MissingKey.SKIP,
    limit=TokenBucket(5, 1_000_000, 5),
    plans=None,
    cost=(),
    on_store_failure=FailureMode.CLOSED,
    visibility=Visibility.PUBLIC,
    code="rate_limited",
)


def policy(*rules: Rule, name: str = "team/login", hosts: Sequence[str] = (), routes: Sequence[Route] = ()) -> Policy:
    match = Match(tuple(hosts), tuple(routes))
    return Policy(name, 1, match, (), rules or (CLOSED,), Response(Dialect.RATE_LIMIT, None))


def rendered(*policies: Policy) -> Manifest:
    made = render_closed(Ruleset("edge", policies), GATEWAY)
    assert not isinstance(made, RulesetTooLarge)
    return made


def script(*policies: Policy) -> str:
    (resource,) = json.loads(rendered(*policies)["data"]["closed.json"])["resources"]
    lua: dict[str, Any] = resource["typed_config"]["extension_config"]["typed_config"]
    return str(lua["default_source_code"]["inline_string"])


def listing(*policies: Policy) -> list[str]:
    text = script(*policies).split("\n", 1)[0].removeprefix('local CLOSED = "').removesuffix('"')
    return text.split("\\n") if text else []


def test_the_config_map_carries_names_and_labels() -> None:
    metadata = rendered(policy())["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("edge-closed", "weir-system")
    assert metadata["labels"] == {
        "app.kubernetes.io/managed-by": "weir-operator",
        "weir.dev/gateway": "edge",
        "weir.dev/part": "closed",
    }


@pytest.mark.requirement("R22")
def test_only_enforcing_closed_rules_are_listed() -> None:
    others = [
        policy(replace(CLOSED, mode=Mode.SHADOW), name="team/shadow"),
        policy(replace(CLOSED, mode=Mode.DISABLED), name="team/disabled"),
        policy(replace(CLOSED, on_store_failure=FailureMode.OPEN), name="team/open"),
    ]
    assert listing(*others) == []
    assert listing(*others, policy()) == ["team/login attempts P - * * /*"]


@pytest.mark.requirement("R22", "R42")
@pytest.mark.parametrize("not_after", [None, 1_800_000_000])
@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.DISABLED])
def test_a_rule_that_is_switched_off_refuses_nothing_while_the_limiter_is_away(
    mode: Mode, not_after: int | None
) -> None:
    """D57: whoever switches a rule off in an incident must not meet it again when the limiter dies too."""
    switched = replace(CLOSED, switches=(Switch(mode, not_after),))
    assert listing(policy(switched)) == []
    assert listing(policy(switched, replace(CLOSED, name="other"))) == ["team/login other P - * * /*"]


@pytest.mark.requirement("R22", "R43")
@pytest.mark.parametrize(
    ("mode", "stage", "listed"),
    [
        (Mode.SHADOW, Stage(Mode.ENFORCE, ("internal",), 0), False),
        (Mode.SHADOW, Stage(Mode.ENFORCE, (), 99), False),
        (Mode.SHADOW, Stage(Mode.ENFORCE, (), 100), True),
        (Mode.ENFORCE, Stage(Mode.SHADOW, (), 50), True),
        (Mode.ENFORCE, Stage(Mode.SHADOW, (), 100), False),
    ],
)
def test_a_rule_that_is_in_shadow_for_most_refuses_nobody_while_the_limiter_is_away(
    mode: Mode, stage: Stage, *, listed: bool
) -> None:
    """D52: Envoy knows neither plans nor subjects. The version of before refuses for both."""
    assert bool(listing(policy(replace(CLOSED, mode=mode, stage=stage)))) is listed


@pytest.mark.requirement("R22", "R37")
def test_patterns_are_listed_as_the_limiter_compares_them() -> None:
    routes = [
        Route("/Login", ("POST",)),
        Route("/v1/orgs/{org}/*", ("GET",)),
        Route("/", ()),
        Route("/*", ()),
        Route("/caf\u00e9 a/100%", ()),
    ]
    assert listing(policy(hosts=["api.example.com", "*.example.com"], routes=routes)) == [
        "team/login attempts P - api.example.com,*.example.com POST /login GET,HEAD /v1/orgs/{}/* * / * /* "
        "* /caf%C3%A9%20a/100%25"
    ]


def test_a_pattern_that_nobody_can_read_covers_everything() -> None:
    assert listing(policy(routes=[Route("/a/../b", ())])) == ["team/login attempts P - * * /*"]


@pytest.mark.requirement("R38")
def test_the_client_is_told_of_a_public_rule_where_there_is_one() -> None:
    silent = replace(CLOSED, name="address", visibility=Visibility.SILENT)
    assert listing(policy(silent)) == ["team/login address S - * * /*"]
    assert listing(policy(silent, CLOSED)) == ["team/login attempts P - * * /*"]


@given(st.text(), st.text(), st.text(), st.text())
def test_no_text_gets_out_of_its_word(host: str, method: str, path: str, link: str) -> None:
    """What stands in a ruleset is data for Envoy, never a script."""
    made = policy(hosts=[host], routes=[Route("/" + path, (method,))])
    (line,) = listing(replace(made, response=Response(Dialect.RATE_LIMIT, link)))
    assert re.fullmatch(r"[A-Za-z0-9_.~/%,*{} -]*", line)
    assert len(line.split(" ")) == 7


def test_the_same_ruleset_gives_the_same_bytes() -> None:
    assert rendered(policy()) == rendered(policy())
    assert rendered(policy())["metadata"]["annotations"] != rendered()["metadata"]["annotations"]


def test_more_than_a_config_map_holds_is_refused_in_plain_words() -> None:
    many = [policy(name=f"team/p{number}", hosts=["a" * 200]) for number in range(5000)]
    refusal = render_closed(Ruleset("edge", tuple(many)), GATEWAY)
    assert isinstance(refusal, RulesetTooLarge)
    assert re.match(r"the gateway's Closed rules take \d+ bytes for Envoy, a ConfigMap holds 900000", str(refusal))
    assert "overrides" not in str(refusal)  # none is in it
    assert "fewer hosts and routes" in str(refusal)


@pytest.mark.requirement("R22")
def test_a_thousand_closed_rules_of_ordinary_length_take_an_eighth_of_a_config_map() -> None:
    routes = [Route("/v1/accounts/{account}/sessions", ("POST",)), Route("/login", ("POST",))]
    many = [
        policy(name=f"team-{number}/login", hosts=[f"team-{number}.example.com"], routes=routes)
        for number in range(1000)
    ]
    assert len(rendered(*many)["data"]["closed.json"]) < MAX_PLAIN_BYTES / 6


def test_the_filter_reads_the_mounted_file_and_watches_its_folder() -> None:
    """D42: the kubelet swaps a link in the folder; the file itself never changes."""
    mounted = closed_filter(replace(GATEWAY, envoy=Envoy(closed_directory="/mnt/closed")))
    discovery: Any = mounted["config_discovery"]
    assert discovery["config_source"]["path_config_source"] == {
        "path": "/mnt/closed/closed.json",
        "watched_directory": {"path": "/mnt/closed"},
    }
    (resource,) = json.loads(rendered()["data"]["closed.json"])["resources"]
    assert (mounted["name"], discovery["type_urls"]) == (resource["name"], [resource["typed_config"]["@type"]])


def test_the_filter_needs_no_rule_to_be_there_before_it() -> None:
    first = closed_filter(GATEWAY)
    assert first == closed_filter(replace(GATEWAY, rule_budget=1))
    assert "CLOSED" not in json.dumps(first)
