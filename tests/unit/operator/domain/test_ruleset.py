# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from weir_operator.api.ruleset_schema import to_text
from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.limits import Action, Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.modes import Slot, Stage, Switch
from weir_operator.domain.overriding import NewLimit, Override, Subject
from weir_operator.domain.ruleset import (
    AddressExempt,
    Cost,
    HeaderExempt,
    HeaderValues,
    Match,
    Plans,
    Policy,
    Response,
    Route,
    Rule,
    Ruleset,
    canonical_json,
    digest,
    document_schema,
    parse_document,
    publish,
    seal,
    to_bytes,
)
from weir_operator.domain.sources import ClientIPKey, HeaderKey, Prefixes
from weir_operator.domain.wire import DocumentError, encode

SCHEMA_FILE = Path(__file__).resolve().parents[4] / "limiter-sidecar" / "schema" / "ruleset.schema.json"
HASH = "0" * 64
RULE = Rule(
    name="burst",
    mode=Mode.ENFORCE,
    key=(HeaderKey("x-api-key"), ClientIPKey(Prefixes(32, 64))),
    on_missing_key=MissingKey.SKIP,
    limit=TokenBucket(100, 1_000_000, 200),
    plans=Plans(HeaderKey("x-plan"), {"enterprise": TokenBucket(1000, 1_000_000, 2000)}),
    cost=(Cost(Route("/v1/exports", ("POST",)), 10),),
    on_store_failure=FailureMode.OPEN,
    visibility=Visibility.PUBLIC,
    code="rate_limited",
    version="0123456789ab",
    slot=Slot.B,
    stage=Stage(Mode.SHADOW, ("enterprise",), 10),
    switches=(Switch(Mode.DISABLED, 1764550000), Switch(Mode.SHADOW)),
)
POLICY = Policy(
    id="team-orders/orders-api",
    generation=7,
    match=Match(("api.example.com", "*.example.com"), (Route("/v1/*", ("GET", "POST")),)),
    exempt=(AddressExempt(("10.0.0.0/8",)), HeaderExempt(HeaderValues("x-api-key", (f"sha256:{HASH}",)))),
    rules=(RULE,),
    response=Response(Dialect.RATE_LIMIT, "https://example.com/ü"),
)
OVERRIDE = Override(
    id="team-orders/acme-import",
    policy="team-orders/orders-api",
    rules=("burst",),
    subjects=((Subject("header:x-api-key", HASH), Subject("clientIP", HASH)),),
    action=Action.SET,
    limit=NewLimit(500, None, 1000),
    not_before=1764547200,
    not_after=1765152000,
)
RULESET = Ruleset("edge", (POLICY,), (OVERRIDE,))
DOCUMENT: dict[str, Any] = {
    "format": 2,
    "gateway": "edge",
    "revision": 1764477123042,
    "digest": digest(RULESET),
    "policies": [
        {
            "id": "team-orders/orders-api",
            "generation": 7,
            "match": {
                "hosts": ["api.example.com", "*.example.com"],
                "routes": [{"path": "/v1/*", "methods": ["GET", "POST"]}],
            },
            "exempt": [{"clientIP": ["10.0.0.0/8"]}, {"header": {"name": "x-api-key", "in": [f"sha256:{HASH}"]}}],
            "rules": [
                {
                    "name": "burst",
                    "mode": "Enforce",
                    "key": [{"header": "x-api-key"}, {"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}],
                    "onMissingKey": "Skip",
                    "limit": {"algorithm": "TokenBucket", "requests": 100, "periodUs": 1000000, "burst": 200},
                    "plans": {
                        "from": {"header": "x-plan"},
                        "limits": {
                            "enterprise": {
                                "algorithm": "TokenBucket",
                                "requests": 1000,
                                "periodUs": 1000000,
                                "burst": 2000,
                            }
                        },
                    },
                    "cost": [{"match": {"path": "/v1/exports", "methods": ["POST"]}, "cost": 10}],
                    "onStoreFailure": "Open",
                    "visibility": "Public",
                    "code": "rate_limited",
                    "version": "0123456789ab",
                    "slot": "b",
                    "stage": {"mode": "Shadow", "plans": ["enterprise"], "percent": 10},
                    "switches": [{"mode": "Disabled", "notAfter": 1764550000}, {"mode": "Shadow"}],
                }
            ],
            "response": {"headers": "RateLimit", "documentation": "https://example.com/ü"},
        }
    ],
    "overrides": [
        {
            "id": "team-orders/acme-import",
            "policy": "team-orders/orders-api",
            "rules": ["burst"],
            "subjects": [[{"source": "header:x-api-key", "sha256": HASH}, {"source": "clientIP", "sha256": HASH}]],
            "action": "Set",
            "limit": {"requests": 500, "burst": 1000},
            "notBefore": 1764547200,
            "notAfter": 1765152000,
        }
    ],
}


@pytest.mark.requirement("R41")
def test_the_document_has_exactly_the_agreed_members() -> None:
    assert json.loads(to_bytes(publish(RULESET, 1764477123042))) == DOCUMENT


def test_the_document_is_valid_by_its_schema_and_reads_back_the_same() -> None:
    jsonschema.Draft202012Validator(document_schema()).validate(DOCUMENT)
    assert parse_document(json.dumps(DOCUMENT).encode()) == publish(RULESET, 1764477123042)


def test_the_schema_is_itself_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(document_schema())


def test_the_committed_schema_is_the_generated_one() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == to_text(), "run `make generate`"


def test_json_is_canonical() -> None:
    assert canonical_json({"b": ["ü"], "a": 1}) == '{"a":1,"b":["ü"]}'.encode()


def test_sealing_first_gives_the_same_document() -> None:
    assert seal(RULESET).to_bytes(5) == to_bytes(publish(RULESET, 5))


def test_the_digest_is_of_the_content_and_not_of_the_revision() -> None:
    assert publish(RULESET, 1).digest == publish(RULESET, 2).digest
    assert digest(RULESET) != digest(Ruleset("edge", (POLICY,)))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"format": 3},
        {"gateway": "other"},
        {"digest": "sha256:" + HASH},
        {"revision": "1"},
        {"surprise": 1},
        {"overrides": []},
        {"gateway": "\ud800"},
    ],
)
def test_an_edited_document_is_not_taken_for_ours(change: dict[str, Any]) -> None:
    """D55"""
    with pytest.raises(DocumentError):
        parse_document(json.dumps({**DOCUMENT, **change}).encode())


OLD_RULE = replace(RULE, version=None, slot=None, stage=None, switches=None)


def _of_format_1(*rules: Rule) -> bytes:
    """What the version before would have written, had it known every member of these rules."""
    ruleset = Ruleset("edge", (replace(POLICY, rules=rules),))
    content = {"format": 1, "gateway": "edge", "policies": encode(ruleset.policies), "overrides": []}
    stated = "sha256:" + hashlib.sha256(canonical_json(content)).hexdigest()
    return canonical_json({**content, "revision": 5, "digest": stated})


@pytest.mark.requirement("R41")
def test_a_document_of_the_version_before_is_taken_over() -> None:
    """D55"""
    document = parse_document(_of_format_1(OLD_RULE))
    assert document.ruleset == Ruleset("edge", (replace(POLICY, rules=(OLD_RULE,)),))


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("name", ["version", "slot", "stage", "switches"])
def test_members_of_format_2_in_a_document_that_claims_format_1_are_refused(name: str) -> None:
    changed: dict[str, Any] = {name: getattr(RULE, name)}
    with pytest.raises(DocumentError, match="members of format 2"):
        parse_document(_of_format_1(replace(OLD_RULE, **changed)))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"1" * 10_000, b"[" * 100_000])
def test_what_is_no_document_is_refused_as_such(data: bytes) -> None:
    with pytest.raises(DocumentError):
        parse_document(data)
