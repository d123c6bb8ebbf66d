# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.ruleset import canonical_json
from weir_operator.domain.sources import (
    ClaimKey,
    ClientIPKey,
    CookieKey,
    HeaderKey,
    HostKey,
    KeyPart,
    MethodKey,
    Nothing,
    PathKey,
    Prefixes,
    PrincipalKey,
    QueryKey,
    claim_text,
    parse_claim,
    source_name,
)
from weir_operator.domain.wire import encode

members = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=8).map(tuple)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sub", ("sub",)),
        ("realm_access.roles", ("realm_access", "roles")),
        (r"https://example\.com/tenant", ("https://example.com/tenant",)),
        (r"a\\.b", ("a\\", "b")),
        ("ä b", ("ä b",)),
    ],
)
def test_a_claim_is_a_path_of_members(text: str, path: tuple[str, ...]) -> None:
    assert parse_claim(text) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a\\", r"a\b", "a.b.c.d.e.f.g.h.i"])
def test_a_malformed_claim_is_none(text: str) -> None:
    assert parse_claim(text) is None


@given(members)
def test_every_path_of_members_has_one_text(path: tuple[str, ...]) -> None:
    assert parse_claim(claim_text(path)) == path


@given(members, members)
def test_two_claims_never_share_a_name(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (source_name(ClaimKey(one)) == source_name(ClaimKey(other))) == (one == other)


@pytest.mark.parametrize(
    ("part", "name", "wire"),
    [
        (HeaderKey("x-api-key"), "header:x-api-key", {"header": "x-api-key"}),
        (CookieKey("sid"), "cookie:sid", {"cookie": "sid"}),
        (QueryKey("k"), "query:k", {"query": "k"}),
        (ClientIPKey(Prefixes(32, 64)), "clientIP", {"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}),
        (ClaimKey(("realm", "a.b")), r"claim:realm.a\.b", {"claim": ["realm", "a.b"]}),
        (PrincipalKey(Nothing()), "principal", {"principal": {}}),
        (PathKey("org"), "path:org", {"path": "org"}),
        (HostKey(Nothing()), "host", {"host": {}}),
        (MethodKey(Nothing()), "method", {"method": {}}),
    ],
)
def test_a_source_has_one_name_and_one_form_in_the_document(part: KeyPart, name: str, wire: object) -> None:
    assert source_name(part) == name
    assert json.loads(canonical_json(encode(part))) == wire
