# SPDX-License-Identifier: Apache-2.0
"""Which servers a module's tests run on, and who asks there."""

from __future__ import annotations

import re

import pytest

from lab.store import Flavour, Store, StoreMissingError, find_server
from lab.workspace import ROOT

_REFERENCE = ROOT / "docs" / "reference" / "store.md"

EVERY_SERVER = pytest.mark.parametrize(
    "module_store", [Flavour.REDIS, Flavour.NEWEST_REDIS, Flavour.VALKEY], indirect=True, scope="module"
)
"""For a test or a module that uses `store`: the oldest Redis that is supported, the newest, and Valkey in turn."""


def available(flavour: Flavour) -> Flavour:
    """The flavour, or the test is skipped: Debian's Redis is tested where it is installed, as in CI."""
    try:
        find_server(flavour)
    except StoreMissingError as missing:
        pytest.skip(str(missing))
    return flavour


def documented_rights(*, clustered: bool = False) -> str:
    """The rules of the ACL lines in the reference, without user and password."""
    (own, cluster) = re.findall(r"^ACL SETUSER limiter (?:on >\S+ )?(.+)$", _REFERENCE.read_text(), flags=re.MULTILINE)
    return f"{own} {cluster}" if clustered else str(own)


def set_user(store: Store, rights: str) -> None:
    """Make the user `limiter` with the password `pass`."""
    store.run("ACL SETUSER", "limiter", "reset", "on", ">pass", *rights.split())
