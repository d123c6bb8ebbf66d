# SPDX-License-Identifier: Apache-2.0
"""How many limiters share a limit that is split while the store is away.

Owns the patience: a limiter that answers counts at once, so that all together never grant more than the whole for
longer than it takes to tell them; one that falls silent counts for a while yet, since it may still serve, and so that
one that comes and goes does not rewrite the rules each time. Pure; the time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable

from weir_operator.reconcile.ports import LimiterReport

SILENT_FOR_S = 60.0  # arbitrary: longer than a restart takes, shorter than anybody bears a limit that is too tight


class Crowd:
    """The limiters of one gateway, by when each was last heard of."""

    def __init__(self, addresses: int, now_s: float) -> None:
        """Take the number of limiters in the settings: until they have had time to answer, all of them are there."""
        self.count = max(addresses, 1)
        """How many there are, never 0: whoever reads it is one."""
        self._since_s = self._asked_s = now_s
        self._deaf_s = 0.0
        self._floor = self.count
        self._heard_s: dict[str, float] = {}

    def recall(self, published: int | None, now_s: float) -> None:
        """Begin with the number that is published, so that a restart of the operator changes nothing by itself."""
        self._since_s = self._asked_s = now_s
        if published is not None:
            self.count = self._floor = min(published, self._floor)

    def hear(self, reports: Iterable[LimiterReport], now_s: float) -> None:
        """Note who answers. Only now is it known who has fallen silent: while nobody was asked, nobody could answer.

        Silence of all tells of the operator's own network, not of them: such a time counts for nobody. Else an operator
        that is cut off from its limiters, but not from the API server, would tell each of them that it is the only one.
        """
        answering = [report.address for report in reports if not report.error]
        passed_s, self._asked_s = now_s - self._asked_s, now_s
        if not answering:
            self._deaf_s += passed_s
            return
        listened_s = now_s - self._deaf_s
        self._heard_s |= dict.fromkeys(answering, listened_s)
        alive = sum(listened_s - heard_s < SILENT_FOR_S for heard_s in self._heard_s.values())
        self.count = max(alive, self._floor if listened_s - self._since_s < SILENT_FOR_S else 1)
