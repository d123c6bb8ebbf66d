# SPDX-License-Identifier: Apache-2.0
import base64
import gzip
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import Action, Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.overriding import Override, Subject
from weir_operator.domain.ruleset import (
    Match,
    Policy,
    Response,
    Rule,
    Ruleset,
    canonical_json,
    digest,
    parse_document,
)
from weir_operator.domain.versions import with_versions
from weir_operator.domain.wire import encode
from weir_operator.render.names import SELECTOR, Part, envoy_config_map, labels, rules_config_map
from weir_operator.render.ruleset_config import (
    GZIP_KEY,
    MAX_GZIP_BYTES,
    PLAIN_KEY,
    Live,
    Manifest,
    RulesetTooLarge,
    read_live,
    render_rules,
)

GATEWAY = Gateway("edge", "weir-system")
NOW = 1_800_000_000_000


def ruleset(overrides: int = 1, *, seed: str = "") -> Ruleset:
    return Ruleset("edge", (), tuple(_override(f"{seed}{n}") for n in range(overrides)))


def _override(name: str) -> Override:
    # digest() of something spreads the digits, so that the hashes do not pack away to nothing
    spread = digest(Ruleset(name)).removeprefix("sha256:")
    return Override(f"a/{name}", "a/api", ("burst",), ((Subject("header:x", spread),),), Action.BLOCK, None, None, None)


def rendered(rules: Ruleset, live: Live | None = None, now_ms: int = NOW) -> Manifest:
    made = render_rules(rules, GATEWAY, live or Live(), now_ms)
    assert not isinstance(made, RulesetTooLarge)
    return made


def edited(manifest: Manifest, text: str) -> dict[str, Any]:
    return {**manifest, "data": {PLAIN_KEY: text}}


def test_the_config_map_carries_names_labels_and_the_revision() -> None:
    manifest = rendered(ruleset())
    assert manifest["metadata"] == {
        "name": "edge-rules-0",
        "namespace": "weir-system",
        "labels": {
            "app.kubernetes.io/managed-by": "weir-operator",
            "weir.dev/gateway": "edge",
            "weir.dev/part": "rules",
        },
        "annotations": {"weir.dev/revision": str(NOW), "weir.dev/digest": digest(ruleset())},
    }
    assert parse_document(manifest["data"][PLAIN_KEY].encode()).revision == NOW


def test_names_are_derived_from_the_gateway() -> None:
    assert (rules_config_map("edge"), envoy_config_map("edge")) == ("edge-rules-0", "edge-envoy")
    key, value = SELECTOR.split("=")
    assert labels("edge", Part.ENVOY)[key] == value


@pytest.mark.requirement("R41")
def test_an_unchanged_ruleset_gives_the_config_map_that_is_there() -> None:
    """D47: nothing to write, nothing to reload."""
    first = rendered(ruleset())
    assert rendered(ruleset(), read_live(first), NOW + 60_000) == first


def test_a_change_raises_the_revision_also_when_the_clock_went_back() -> None:
    live = read_live(rendered(ruleset()))
    assert read_live(rendered(ruleset(2), live, NOW + 5)).revision == NOW + 5
    assert read_live(rendered(ruleset(2), live, NOW - 5)).revision == NOW + 1


def test_a_live_config_map_is_read_back() -> None:
    assert read_live(rendered(ruleset())) == Live(NOW, digest(ruleset()), ruleset())


@pytest.mark.requirement("R41")
def test_what_the_version_before_has_written_is_taken_over_and_written_anew() -> None:
    """D55: an upgraded operator finds format 1, keeps what it needs of it, and goes on with a higher revision."""
    rule = Rule(
        *("burst", Mode.ENFORCE, (), MissingKey.SKIP, TokenBucket(5, 1_000_000, 5), None, ()),
        *(FailureMode.OPEN, Visibility.PUBLIC, "rate_limited"),
    )
    policy = Policy("a/api", 7, Match((), ()), (), (rule,), Response(Dialect.RATE_LIMIT, None))
    content = {"format": 1, "gateway": "edge", "policies": encode((policy,)), "overrides": []}
    stated = "sha256:" + hashlib.sha256(canonical_json(content)).hexdigest()
    text = canonical_json({**content, "revision": NOW, "digest": stated}).decode()
    live = read_live({"metadata": {}, "data": {PLAIN_KEY: text}})
    taken = Ruleset("edge", (with_versions(policy),))
    assert live == Live(NOW, stated, taken)
    assert read_live(rendered(taken, live)) == Live(NOW + 1, digest(taken), taken)


@pytest.mark.parametrize(
    "text", ["", "{}", "not json", '{"format": 1}', json.dumps({"revision": 5}), "\ud800", "[" * 50_000]
)
def test_an_edited_config_map_is_replaced_by_one_of_a_higher_revision(text: str) -> None:
    """D55: limiters only take a higher revision, so the repair needs one."""
    live = read_live(edited(rendered(ruleset()), text))
    assert (live.ruleset, live.digest, live.revision) == (None, "", NOW)
    assert read_live(rendered(ruleset(), live, NOW)).revision == NOW + 1


@pytest.mark.parametrize("config_map", [None, {}, {"metadata": None, "data": []}, {"binaryData": {GZIP_KEY: "!"}}])
def test_what_is_missing_or_damaged_is_read_as_nothing(config_map: Any) -> None:
    """D55"""
    assert read_live(config_map) == Live()


def test_a_document_of_an_absurd_revision_is_replaced_by_one_of_ours() -> None:
    document = json.loads(rendered(ruleset(), Live(), NOW)["data"][PLAIN_KEY]) | {"revision": 2**52}
    live = read_live({"metadata": {}, "data": {PLAIN_KEY: json.dumps(document)}})
    assert live.revision == 0
    assert read_live(rendered(ruleset(), live, NOW)).revision == NOW


@pytest.mark.parametrize("revision", ["-1", "1e3", "", "x", "9" * 5000, str(2**53), str(2**52)])
def test_an_absurd_revision_is_not_followed(revision: str) -> None:
    manifest = rendered(ruleset())
    annotated = {**manifest, "metadata": {"annotations": {"weir.dev/revision": revision}}, "data": {}}
    assert read_live(annotated).revision == 0


@pytest.mark.parametrize("unpacked", [b"", b"{}", b"\0" * 10**6])
def test_packed_data_that_is_no_document_is_read_as_nothing(unpacked: bytes) -> None:
    text = base64.b64encode(gzip.compress(unpacked)).decode()
    assert read_live({"binaryData": {GZIP_KEY: text}}) == Live()


def test_a_large_ruleset_is_packed_the_same_way_each_time() -> None:
    """D63, D47"""
    large = ruleset(5_000)
    manifest = rendered(large)
    assert "data" not in manifest
    assert len(base64.b64decode(manifest["binaryData"][GZIP_KEY])) < MAX_GZIP_BYTES
    assert read_live(manifest) == Live(NOW, digest(large), large)
    assert rendered(large, read_live(manifest), NOW + 1) == manifest


def test_a_ruleset_that_does_not_fit_is_a_value_and_says_what_to_do() -> None:
    """D63: the old rules stay, and somebody is told."""
    found = render_rules(ruleset(30_000), GATEWAY, Live(), NOW)
    assert isinstance(found, RulesetTooLarge)
    assert found.size > MAX_GZIP_BYTES
    assert "more gateways" in str(found)


def test_another_gateway_has_another_config_map() -> None:
    other = render_rules(replace(ruleset(), gateway="inner"), replace(GATEWAY, name="inner"), Live(), NOW)
    assert isinstance(other, dict)
    assert other["metadata"]["name"] == "inner-rules-0"
