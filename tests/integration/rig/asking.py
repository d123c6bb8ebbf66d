# SPDX-License-Identifier: Apache-2.0
"""Asking a sidecar until something shows that only requests bring about."""

from __future__ import annotations

import asyncio

from rig.envoy import Envoy
from rig.sidecar import Sidecar


async def ask_until(sidecar: Sidecar, envoy: Envoy, state: str) -> None:
    """Ask for decisions until the store is reported as Up or Down."""
    async with asyncio.timeout(20):
        while sidecar.status()["store"]["state"] != state:
            await envoy.key("k")
