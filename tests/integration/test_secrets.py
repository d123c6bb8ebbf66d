# SPDX-License-Identifier: Apache-2.0
"""No secret leaves the sidecar in clear, and what it leaves in the store goes away by itself."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import grpc.aio
import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, limit, policy, rule, single
from rig.envoy import Envoy
from rig.sidecar import HASH_KEY, Sidecar

SECRETS = ("sk-live-51H8xT-very-secret", "Bearer eyJhbGciOi.payload.signature", "session=abcdef0123456789")


@pytest.mark.requirement("R08")
async def test_no_secret_shows_in_the_store_in_logs_in_metrics_or_in_answers(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    """D61: keyed by API key, authorization and cookie, watched with MONITOR, at the most talkative log level."""
    sidecar = start_sidecar(store.url, flags=("--log-level", "trace", "--log-format", "json"))
    sidecar.wait_store("Up")
    names = ("x-api-key", "authorization", "cookie")
    rules = [rule(name, key=[{"header": name}], limit=limit(20, period_s=60)) for name in names]
    sidecar.publish(document(policy(*rules)))
    headers = dict(zip(names, SECRETS, strict=True))
    seen = ""
    with store.client() as client, store.client().monitor() as monitor:
        async with Envoy.beside(sidecar.socket) as envoy:
            for _ in range(40):
                answer = await envoy.get(headers=headers)
                seen += str(answer)
        assert not answer.allowed
        client.echo("the end")
        for command in monitor.listen():
            seen += str(command)
            if "the end" in command["command"]:
                break
        assert "EVALSHA" in seen
        keys = client.keys("*")
        assert keys
        seen += str(keys) + str(client.slowlog_get()) + "".join(str(client.get(key)) for key in keys)
        assert {len(key) for key in keys} == {43}
    seen += sidecar.log() + sidecar.get("/metrics")[1] + sidecar.get("/status")[1]
    for secret in (*SECRETS, HASH_KEY):
        for part in (secret, secret[:12], secret[-12:]):
            assert part not in seen


@pytest.mark.requirement("R08")
async def test_every_key_expires_when_its_bucket_is_full_again(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """D38: allowed and refused, enforcing and shadow, cheap and dear."""
    cost = [{"match": {"path": "/dear", "methods": []}, "cost": 4}]
    two_s = limit(5, period_s=2)
    rules = [rule("enforced", limit=two_s, cost=cost), rule("shadow", mode="Shadow", limit=two_s)]
    sidecar.publish(document(policy(*rules)))
    with store.client() as client:
        for path in ("/cheap", "/dear", "/dear", "/cheap", "/cheap"):
            for key in ("a", "b"):
                await envoy.key(key, path)
            lives = [client.pttl(key) for key in client.keys("*")]
            assert lives
            assert all(0 < life <= 2001 for life in lives), lives
        eventually(lambda: client.dbsize() == 0, 5, what="the store forgets full buckets")


async def test_a_header_of_a_mebibyte_costs_a_key_of_fixed_length(store: Store, sidecar: Sidecar, envoy: Envoy) -> None:
    """D61."""
    sidecar.publish(single())
    answer = await envoy.key("x" * (1 << 20))
    assert answer.allowed
    assert "ratelimit" in answer.headers
    with store.client() as client:
        assert [len(key) for key in client.keys("*")] == [43]


async def test_a_message_beyond_the_bound_is_refused_and_the_connection_goes_on(sidecar: Sidecar, envoy: Envoy) -> None:
    sidecar.publish(single())
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await envoy.key("x" * (5 << 20))
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await envoy.key("k")).allowed
