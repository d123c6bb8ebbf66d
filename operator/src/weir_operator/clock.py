# SPDX-License-Identifier: Apache-2.0
"""Both clocks of this machine: the Clock that everybody else takes."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """The real ones."""

    def now(self) -> datetime:
        """Return the wall clock, in UTC."""
        return datetime.now(UTC)  # noqa: TID251  this is the Clock that everybody else takes

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()
