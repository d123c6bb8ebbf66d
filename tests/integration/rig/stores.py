# SPDX-License-Identifier: Apache-2.0
"""Which servers a module's tests run on."""

from __future__ import annotations

import pytest

from lab.store import Flavour

EVERY_SERVER = pytest.mark.parametrize(
    "module_store", [Flavour.REDIS, Flavour.NEWEST_REDIS, Flavour.VALKEY], indirect=True, scope="module"
)
"""For a test or a module that uses `store`: the oldest Redis that is supported, the newest, and Valkey in turn."""
