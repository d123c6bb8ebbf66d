# SPDX-License-Identifier: Apache-2.0
"""Whether what was admitted is what a policy says, computed from counts and times alone. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab.traffic import Tally

LEAST_SHARE = 0.98  # of what a limit grants and a client asks for; the rest is rounding and the last answers' way back


@dataclass(frozen=True, slots=True)
class Limit:
    """A token bucket as a user writes it: tokens per second, and how many at most at once."""

    per_s: float
    burst: int

    def most(self, elapsed_s: float) -> int:
        """What a bucket can have granted in a time, at the very most, even if it was full at the start."""
        return math.floor(self.burst + self.per_s * elapsed_s)

    def least(self, sent: int, sending_s: float) -> int:
        """What a bucket that was full at the start must have granted to a client that sent so many, evenly."""
        return math.floor(LEAST_SHARE * min(sent, self.burst + self.per_s * sending_s))


@dataclass(frozen=True, slots=True)
class Judgement:
    """One comparison of a figure with its bounds."""

    what: str
    figure: int
    at_least: int
    at_most: int

    @property
    def holds(self) -> bool:
        """Whether the figure lies within its bounds."""
        return self.at_least <= self.figure <= self.at_most

    def __str__(self) -> str:
        bounds = f"{self.at_least} to {self.at_most}" if self.at_least != self.at_most else f"{self.at_most}"
        return f"{'ok   ' if self.holds else 'WRONG'}  {self.what}: {self.figure} (must be {bounds})"


def admitted(tally: Tally, limit: Limit) -> Judgement:
    """Over all gateways together, a client of a limit was admitted neither too often nor too seldom.

    The upper bound uses the time from before the first request was sent until after the last answer was read: every
    decision lies inside it, whatever the network did. The lower one uses the time in which requests were being sent.
    """
    most = min(tally.sent, limit.most(tally.ended - tally.began))
    least = limit.least(tally.sent, tally.last_sent - tally.began)
    return Judgement(f"{tally.stream.name}: admitted of {tally.sent} sent", tally.passed, least, most)


def untouched(tally: Tally) -> Judgement:
    """Every request of the stream passed."""
    return Judgement(f"{tally.stream.name}: passed of {tally.sent} sent", tally.passed, tally.sent, tally.sent)


def would_be_refused(tally: Tally, limit: Limit, counted: int) -> Judgement:
    """What the limiters counted in shadow is what they would have refused."""
    elapsed, sending = tally.ended - tally.began, tally.last_sent - tally.began
    least = max(0, tally.sent - limit.most(elapsed))
    most = tally.sent - limit.least(tally.sent, sending)
    return Judgement(f"{tally.stream.name}: would-be refusals of {tally.sent} sent", counted, least, most)
