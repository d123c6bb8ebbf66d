# SPDX-License-Identifier: Apache-2.0
"""Results that are made again only when one of the things that they were made of is another one.

Sameness is identity, not equality: it costs nothing to ask, and frozen values never change behind it. So memory can
only save work and never change a result, as long as whoever makes a result looks at nothing but the inputs named here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Memory(Generic[T]):
    """The last result under each name. What one pass does not ask for, the next one makes anew."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[tuple[object, ...], T]] = {}
        self._now: dict[str, tuple[tuple[object, ...], T]] = {}

    def begin_pass(self) -> None:
        """Forget what was not asked for since the last call."""
        self._before, self._now = self._now, {}

    def recall(self, name: str, inputs: tuple[object, ...], make: Callable[[T | None], T]) -> T:
        """Return the last result if these very inputs made it, else what `make` makes of the last result, if any."""
        known = self._before.get(name)
        if known is None or not _same(known[0], inputs):
            known = inputs, make(known[1] if known is not None else None)
        self._now[name] = known
        return known[1]


def _same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    return len(before) == len(now) and all(map(operator.is_, before, now))
