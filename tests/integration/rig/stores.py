# SPDX-License-Identifier: Apache-2.0
"""Which servers a module's tests run on."""

from __future__ import annotations

import pytest

from lab.store import Flavour, StoreMissingError, find_server

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
