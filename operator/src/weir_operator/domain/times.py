# SPDX-License-Identifier: Apache-2.0
"""Moments as the Kubernetes API and people write them: RFC 3339, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def time_text(unix_s: float) -> str:
    """A Unix time to the second below it, as `metav1.Time`."""
    return datetime.fromtimestamp(int(unix_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time_text(time: datetime) -> str:
    """A time to the microsecond, as `metav1.MicroTime`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
