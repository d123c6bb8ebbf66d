# SPDX-License-Identifier: Apache-2.0
"""The client address comes from the trusted hop only. Connections come from many addresses of 127.0.0.0/8."""

import pytest

from lab.layout import TRUSTED_PROXY
from lab.team import Team

LOGIN = {
    "rules": [
        {
            "name": "per-address",
            "key": [{"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}],
            "limit": {"requests": 3, "period": "1h"},
        }
    ]
}
STRANGER = "127.0.0.31"
VICTIM = "127.0.0.32"


def attempts(team: Team, count: int, *, source: str, forwarded_for: str | None = None) -> list[int]:
    headers = {"x-forwarded-for": forwarded_for} if forwarded_for else {}
    return [team.send("/login", method="POST", source=source, headers=headers).status for _ in range(count)]


@pytest.mark.requirement("R17", "R37")
def test_each_address_has_its_own_count(team: Team) -> None:
    team.apply_ready(team.policy(**LOGIN))
    assert attempts(team, 4, source="127.0.0.41") == [200] * 3 + [429]
    assert attempts(team, 1, source="127.0.0.42") == [200]


@pytest.mark.requirement("R37")
def test_a_client_that_forges_x_forwarded_for_stays_the_same_client_and_burns_nobody_elses_count(team: Team) -> None:
    """D27, with no trusted hop in front."""
    team.apply_ready(team.policy(**LOGIN))
    forged = [attempts(team, 1, source=STRANGER, forwarded_for=f"{VICTIM}, 1.2.3.{number}")[0] for number in range(5)]
    assert forged == [200] * 3 + [429] * 2
    assert attempts(team, 3, source=VICTIM) == [200] * 3


@pytest.mark.requirement("R37")
def test_behind_the_trusted_proxy_the_address_it_appended_counts(team: Team) -> None:
    """D27, with one trusted hop: what the client wrote to the left of it is ignored."""
    team.apply_ready(team.policy(**LOGIN))
    forged = [
        attempts(team, 1, source=TRUSTED_PROXY, forwarded_for=f"1.2.3.{number}, 198.51.100.9")[0] for number in range(5)
    ]
    assert forged == [200] * 3 + [429] * 2
    victim = attempts(team, 3, source=TRUSTED_PROXY, forwarded_for="1.2.3.1")
    assert victim == [200] * 3


@pytest.mark.requirement("R37")
def test_the_header_that_carries_the_address_to_the_limiter_cannot_be_sent_by_a_client(team: Team) -> None:
    team.apply_ready(team.policy(**LOGIN))
    forged = [
        team.send("/login", source="127.0.0.51", headers={"x-weir-client-ip": f"9.9.9.{number}"}).status
        for number in range(5)
    ]
    assert forged == [200] * 3 + [429] * 2


@pytest.mark.requirement("R17")
def test_an_ipv6_client_is_its_64_and_a_mapped_address_is_the_ipv4_client(team: Team) -> None:
    """D24, D25."""
    team.apply_ready(team.policy(**LOGIN))
    hosts = ["2001:db8:1:2::1", "2001:0db8:0001:0002:ffff::9", "2001:db8:1:2:a:b:c:d", "2001:db8:1:2::ffff"]
    seen = [attempts(team, 1, source=TRUSTED_PROXY, forwarded_for=host)[0] for host in hosts]
    assert seen == [200] * 3 + [429]
    assert attempts(team, 1, source=TRUSTED_PROXY, forwarded_for="2001:db8:1:3::1") == [200]
    mapped = [
        attempts(team, 1, source=TRUSTED_PROXY, forwarded_for=address)[0]
        for address in ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1")
    ]
    assert mapped == [200] * 3 + [429]
    assert attempts(team, 1, source=TRUSTED_PROXY, forwarded_for="::ffff:10.0.0.1") == [200]


@pytest.mark.requirement("R37")
def test_what_envoy_cannot_read_as_an_address_is_no_address_and_never_a_key_of_its_own(team: Team) -> None:
    """D26, D28: an address with a port is none to Envoy, so all of these are decided by `onMissingKey`, as one."""
    rule = {**LOGIN["rules"][0], "onMissingKey": "Share"}
    team.apply_ready(team.policy(rules=[rule]))
    unreadable = ["203.0.113.7:51234", "203.0.113.7:51235", "[2001:db8:9::1]:443", '"203.0.113.9"', "unknown", ","]
    seen = [attempts(team, 1, source=TRUSTED_PROXY, forwarded_for=text)[0] for text in unreadable]
    assert seen == [200] * 3 + [429] * 3
    spaced = [attempts(team, 1, source=TRUSTED_PROXY, forwarded_for=text)[0] for text in ["203.0.113.8 "] * 4]
    assert spaced == [200] * 3 + [429]
    assert attempts(team, 1, source=TRUSTED_PROXY, forwarded_for=" 203.0.113.8") == [429]
