# SPDX-License-Identifier: Apache-2.0
"""The only wait of the lab and of the tests: ask again until it holds, and say at the end what did not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")
_POLL_S = 0.05


def eventually(check: Callable[[], _Answer], within_s: float, *, what: str = "") -> _Answer:
    """Call `check` until it returns something true, and return that.

    An AssertionError or OSError of `check` counts as "not yet". Raises AssertionError after `within_s` seconds, with
    `what`, and with the last answer or error as its text.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            answer = check()
            last: object = answer
            if answer:
                return answer
        except (AssertionError, OSError) as not_yet:
            last = not_yet
        if time.monotonic() > deadline:
            name = what or getattr(check, "__name__", "it")
            raise AssertionError(f"{name}: still not after {within_s} s; last: {last!r}")
        time.sleep(_POLL_S)
