# SPDX-License-Identifier: Apache-2.0
"""What every algorithm can be asked, and what it answers."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

NEVER = -1  # the wait for a cost that no amount of waiting makes affordable
MAX_EXACT = 2**53 - 1  # the scripts compute in doubles: larger integers are not exact there


class Said(NamedTuple):
    """What a reply says of one rule. `wait_us`: refused, until it would pass; passed, for how long it is held."""

    ok: bool
    remaining: int
    wait_us: int
    reset_us: int


class StaleEdgesError(Exception):
    """The edges of a calendar rule do not enclose this time, so nothing was decided."""

    def __init__(self, time_us: int) -> None:
        super().__init__(time_us)
        self.time_us = time_us


class Record(Protocol):
    """What is remembered of one rule and subject, as of the time of the last charge."""

    @property
    def at_us(self) -> int: ...

    @property
    def ends_us(self) -> int:
        """From this time on it has nothing left to say."""
        ...


class Limit(Protocol):
    """One algorithm with its numbers. `record` is None for a subject of which nothing is remembered.

    A record may have been written under other numbers of the same algorithm: what was used stays used.
    """

    def ask(self, record: Any, cost: int, now_us: int) -> Said:
        """What is true before anything is charged. A cost of 0 always passes."""
        ...

    def charge(self, record: Any, cost: int, now_us: int) -> Record:
        """The record after a cost that passes."""
        ...

    def refund(self, record: Any, cost: int, owed_before: int, charged_at_us: int, now_us: int) -> Any:
        """The record without that charge, as far as it is certain; None if nothing is left in it.

        `owed_before`: what a bucket owed before the charge, or less.
        """
        ...


def later(now_us: int, record: Record | None) -> int:
    """The time of a call: an older clock than the record's moves nothing back."""
    return now_us if record is None else max(now_us, record.at_us)


def ceil_div(dividend: int, divisor: int) -> int:
    """The quotient rounded up."""
    return -(-dividend // divisor)
