# SPDX-License-Identifier: Apache-2.0
"""Keys of every source, as Envoy's messages carry them: who has a counter of its own, and who has none."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.store import Store
from rig.documents import HOST, document, limit, policy, rule, single
from rig.envoy import NOBODY, Answer, Envoy, Peer
from rig.sidecar import Sidecar

HOUR_S = 3600
ONCE = limit(1, period_s=HOUR_S)
ORGS = {"hosts": [], "routes": [{"path": "/orgs/{org}/*", "methods": []}, {"path": "/*", "methods": []}]}


@dataclass(frozen=True)
class Ask:
    """A request by what differs from the plainest one."""

    path: str = "/"
    headers: Mapping[str, str] = field(default_factory=dict)
    peer: Peer = NOBODY
    method: str = "GET"
    host: str = HOST

    async def of(self, envoy: Envoy) -> Answer:
        return await envoy.get(self.path, self.headers, peer=self.peer, method=self.method, host=self.host)


@dataclass(frozen=True)
class Source:
    """A source, one subject in several spellings, another subject, requests that lack it, and what Deny says."""

    key: dict[str, Any]
    same: tuple[Ask, ...]
    other: Ask
    lacking: tuple[Ask, ...]
    said: str


def claims(**members: Any) -> Ask:
    return Ask(peer=Peer.with_claims(**members))


SOURCES = (
    Source(
        {"cookie": "sid"},
        (Ask(headers={"cookie": "sid=a"}), Ask(headers={"cookie": "x=1; sid=a; sid=b"})),
        Ask(headers={"cookie": 'sid="a"'}),
        (Ask(), Ask(headers={"cookie": "sid=; SID=a; xsid=a"})),
        "the cookie sid",
    ),
    Source(
        {"query": "key"},
        (Ask("/?key=a%20b"), Ask("/other?x=1&key=a+b&key=c#key=d"), Ask("/?%6Bey=%61%20b")),
        Ask("/?key=a%2Bb"),
        (Ask("/?Key=a"), Ask("/?key=&key=a"), Ask("/key=a")),
        "the query parameter key",
    ),
    Source(
        {"claim": ["realm", "sub"]},
        (claims(realm={"sub": "7", "x": [1]}), claims(sub="8", realm={"sub": 7})),
        claims(realm={"sub": "8"}),
        (
            Ask(),
            claims(sub="7"),
            claims(realm={"sub": ""}),
            claims(realm={"sub": None}),
            claims(realm={"sub": {"a": 1}}),
        ),
        "the token claim realm.sub",
    ),
    Source(
        {"claim": ["groups"]},
        (claims(groups=["a", "b"]), claims(groups=["a", "b"], sub="x")),
        claims(groups=["a,b"]),
        (claims(groups=[]), claims(groups=["a", None]), claims(groups=[{}])),
        "the token claim groups",
    ),
    Source(
        {"principal": {}},
        (Ask(peer=Peer("spiffe://example.com/a")),),
        Ask(peer=Peer("spiffe://example.com/b")),
        (Ask(), Ask(headers={"x-forwarded-client-cert": "URI=spiffe://example.com/a"})),
        "the principal of a client certificate",
    ),
    Source(
        {"path": "org"},
        (Ask("/orgs/acme/x"), Ask("/orgs/ACME/y?z"), Ask("//orgs/%61cme;v=1/")),
        Ask("/orgs/acm/e"),
        (Ask("/other/acme"), Ask("/orgs")),
        "the path segment {org}",
    ),
    Source(
        {"host": {}},
        (Ask(), Ask(host=HOST.upper()), Ask(host=f"{HOST}.:8443")),
        Ask(host=f"www.{HOST}"),
        (Ask(host=""),),
        "the host",
    ),
    Source({"method": {}}, (Ask(), Ask(method="get")), Ask(method="HEAD"), (Ask(method=""),), "the method"),
)
each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: json.dumps(source.key))


def keyed(*sources: dict[str, Any], **members: Any) -> bytes:
    """One request per hour for each subject, on every host and path."""
    return document(policy(rule(key=list(sources), limit=ONCE, **members), match=ORGS))


@pytest.mark.requirement("R17")
@each_source
async def test_a_source_tells_subjects_apart_by_value_and_not_by_spelling(
    sidecar: Sidecar, envoy: Envoy, source: Source
) -> None:
    sidecar.publish(keyed(source.key))
    first, *again = [await ask.of(envoy) for ask in (*source.same, source.same[0])]
    assert first.allowed
    assert not any(answer.allowed for answer in again)
    assert (await source.other.of(envoy)).allowed
    assert not (await source.other.of(envoy)).allowed


@pytest.mark.requirement("R17")
@each_source
async def test_who_lacks_a_source_is_skipped_and_counted(sidecar: Sidecar, envoy: Envoy, source: Source) -> None:
    """D28, D29: the rule beside it still applies."""
    both = policy(rule(key=[source.key], limit=ONCE), rule("all", key=[], limit=limit(1000)), match=ORGS)
    sidecar.publish(document(both))
    for _ in range(2):
        answers = [await ask.of(envoy) for ask in source.lacking]
        assert all(answer.headers["ratelimit"].startswith('"all"') for answer in answers)
        assert all(answer.allowed for answer in answers)
    assert sidecar.rule()["missingKey"] == 2 * len(source.lacking)
    skipped = sidecar.metric("weir_rule_decisions_total", rule="burst", outcome="skipped_missing_key")
    assert skipped == 2 * len(source.lacking)


@each_source
async def test_who_lacks_a_source_shares_one_counter_if_the_rule_says_so(
    sidecar: Sidecar, envoy: Envoy, source: Source
) -> None:
    """D28."""
    sidecar.publish(keyed(source.key, onMissingKey="Share"))
    answers = [await ask.of(envoy) for ask in (*source.lacking, source.lacking[0])]
    assert [answer.allowed for answer in answers] == [True] + [False] * len(source.lacking)
    assert (await source.other.of(envoy)).allowed
    assert sidecar.rule()["missingKey"] == len(answers)


@each_source
async def test_a_denial_names_the_source_that_a_request_lacks(sidecar: Sidecar, envoy: Envoy, source: Source) -> None:
    """D28."""
    sidecar.publish(keyed(source.key, onMissingKey="Deny"))
    for ask in source.lacking:
        refused = await ask.of(envoy)
        assert (refused.status, refused.problem["code"]) == (429, "missing_key")
        assert refused.problem["detail"] == f'Limit "burst" needs {source.said}, which the request lacks.'
        assert "retry-after" not in refused.headers
    assert (await source.other.of(envoy)).allowed


@pytest.mark.requirement("R17")
async def test_a_token_that_nobody_has_verified_has_no_claims(sidecar: Sidecar, envoy: Envoy) -> None:
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, {"sub": "u1"}))
    token = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."
    sidecar.publish(keyed({"claim": ["sub"]}, onMissingKey="Deny"))
    refused = await envoy.get(headers={"authorization": f"Bearer {token}"})
    assert refused.problem["code"] == "missing_key"


async def test_claims_are_read_where_the_ruleset_or_else_the_flags_say(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    flags = ("--jwt-namespace", "flagged", "--jwt-payload-key", "token")
    sidecar = start_sidecar(store.url, flags=flags)
    sidecar.wait_store("Up")
    by_flags = Peer(metadata={"flagged": {"token": {"sub": "u1"}}, "other": {"token": {"sub": "u2"}}})
    by_ruleset = Peer(metadata={"ruled": {"payload": {"sub": "u1"}}})
    usual = Peer.with_claims(sub="u1")

    async def found() -> list[bool]:
        return [(await envoy.get(peer=peer)).allowed for peer in (usual, by_flags, by_ruleset)]

    by_sub = policy(rule(key=[{"claim": ["sub"]}], onMissingKey="Deny", limit=limit(1000)), match=ORGS)
    async with Envoy.beside(sidecar.socket) as envoy:
        sidecar.publish(document(by_sub))
        assert await found() == [False, True, False]
        sidecar.publish(document(by_sub, jwt={"metadataNamespace": "ruled", "payloadKey": "payload"}))
        assert await found() == [False, False, True]


@pytest.mark.requirement("R14")
async def test_a_plan_comes_from_a_claim(sidecar: Sidecar, envoy: Envoy) -> None:
    plans = {"from": {"claim": ["org", "plan"]}, "limits": {"gold": limit(3, period_s=HOUR_S)}}
    sidecar.publish(single(key=[{"claim": ["sub"]}], limit=ONCE, plans=plans))

    async def passing(sub: str, **members: Any) -> int:
        answers = [await envoy.get(peer=Peer.with_claims(sub=sub, **members)) for _ in range(4)]
        return sum(answer.allowed for answer in answers)

    assert await passing("a", org={"plan": "gold"}) == 3
    assert await passing("b", org={"plan": ["gold"]}) == 1
    assert await passing("c", org={"plan": "lead"}) == 1
    assert await passing("d") == 1
    assert sidecar.rule()["unknownPlan"] == 8


COMPOSITE = ({"header": "x-api-key"}, {"cookie": "sid"}, {"query": "key"}, {"claim": ["sub"]}, {"path": "org"})


async def test_no_two_tuples_share_a_counter_whatever_separates_them(
    store: Store, sidecar: Sidecar, envoy: Envoy
) -> None:
    """Values that contain what an encoding might separate with, moved from one source to the next."""
    sidecar.publish(keyed(*COMPOSITE))
    pieces = ("a", "a:", ":a", "a|b", "[a]", '["a"]', "a\x00", "%61", "a,", "x" * 1000)
    tuples = [tuple(piece if place == moved else "a:" for place in range(5)) for piece in pieces for moved in range(5)]

    async def passes(header: str, cookie: str, query: str, claim: str, segment: str) -> bool:
        def escaped(text: str) -> str:
            return "".join(f"%{byte:02x}" for byte in text.encode())

        path = f"/orgs/{escaped(segment)}/?key={escaped(query)}"
        headers = {"x-api-key": header, "cookie": f"sid={cookie}"}
        return (await envoy.get(path, headers, peer=Peer.with_claims(sub=claim))).allowed

    distinct = set(tuples)
    assert [await passes(*values) for values in distinct] == [True] * len(distinct)
    assert not any([await passes(*values) for values in distinct])
    with store.client() as client:
        assert client.dbsize() == len(distinct)


async def test_values_of_a_mebibyte_are_keys_like_any_other(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """D61: the store sees keys of one length; the last byte still counts."""
    sidecar.publish(keyed({"cookie": "sid"}, {"query": "key"}, {"claim": ["sub"]}))
    big = "x" * (1 << 20)

    async def passes(cookie: str, query: str, claim: str) -> bool:
        headers, peer = {"cookie": f"sid={cookie}"}, Peer.with_claims(sub=claim)
        return (await envoy.get(f"/?key={query}", headers, peer=peer)).allowed

    tuples = [(big + "1", "a", "a"), (big + "2", "a", "a"), ("a", big, "a"), ("a", "a", big), ("a", "a", big + "1")]
    assert [await passes(*values) for values in tuples] == [True] * len(tuples)
    assert not any([await passes(*values) for values in tuples])
    with store.client() as client:
        assert len({len(key) for key in client.keys("*")}) == 1
