# SPDX-License-Identifier: Apache-2.0
"""Which policies may bear on each other: those that share a host, and those that share one with these, and so on.

Whether one is accepted depends on no other policy than those. May take too many, never too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weir_operator.domain.gateways import ANY_HOST
from weir_operator.domain.specs import PolicyInput

_WILDCARD = "*."


def neighbours_of(policy: PolicyInput, others: Iterable[PolicyInput]) -> tuple[PolicyInput, ...]:
    """Return those of `others` on the same gateway that may bear on `policy`, directly or through others."""
    mates = [other for other in others if other.gateway == policy.gateway]
    regions = _Regions()
    known = {host for one in (policy, *mates) for host in _hosts(one)}
    for one in (policy, *mates):
        hosts = _hosts(one)
        for host in hosts:
            regions.join(host, hosts[0])
            for wider in _wider(host):
                if wider in known:
                    regions.join(host, wider)
    home = regions.of(_hosts(policy)[0])
    # What a policy that cannot be read ran before is not known here, and stays whatever becomes of the others.
    return tuple(one for one in mates if isinstance(one.spec, tuple) or regions.of(_hosts(one)[0]) == home)


def _hosts(policy: PolicyInput) -> Sequence[str]:
    hosts = () if isinstance(policy.spec, tuple) else policy.spec.hosts
    return hosts or (ANY_HOST,)


def _wider(host: str) -> Iterator[str]:
    """The wildcards that cover a host."""
    yield ANY_HOST
    labels = host.removeprefix(_WILDCARD).split(".")
    for start in range(1, len(labels)):
        yield _WILDCARD + ".".join(labels[start:])


class _Regions:
    """Hosts that belong together, as a forest in which each host points to another of its region."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def of(self, host: str) -> str:
        """Return the host that stands for the region."""
        parent = self._parents.setdefault(host, host)
        while parent != host:
            self._parents[host] = self._parents[parent]
            host, parent = parent, self._parents[parent]
        return host

    def join(self, one: str, other: str) -> None:
        """Make one region of two."""
        self._parents[self.of(one)] = self.of(other)
