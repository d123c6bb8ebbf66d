# SPDX-License-Identifier: Apache-2.0
"""The error model for what users write: values that name the field, collected and reported all at once.

Nothing here is raised; a check returns problems and the caller adds them up.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weir_operator.domain.conditions import Reason

_SHOWN = 8  # problems spelled out in one condition message; more would not be read, and messages are bounded
_COMPARED = 64  # names; a comparison takes 30 us, and thousands of objects may each name what does not exist


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong with one object.

    `path` is where, with list entries by name where they have one (`spec.rules[burst].limit.burst`), `reason` the
    condition's reason, `message` what is wrong, `hint` what would be right (may be empty). Neither text ends in a
    full stop, and neither ever contains a header value or another possible secret.
    """

    path: str
    reason: Reason
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f"; {self.hint}" if self.hint else "")


def invalid(path: str, message: str, hint: str = "") -> Problem:
    """A problem of the most frequent kind: the spec itself is wrong."""
    return Problem(path, Reason.INVALID, message, hint)


def chief_reason(problems: Sequence[Problem]) -> Reason:
    """The reason that stands in the condition when there are several: the first one's. `problems` is not empty."""
    return problems[0].reason


def summary(problems: Sequence[Problem]) -> str:
    """All problems in one condition message, the first few spelled out and the rest counted."""
    shown = ". ".join(str(problem) for problem in problems[:_SHOWN])
    more = len(problems) - _SHOWN
    return shown + (f". And {more} more" if more > 0 else "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that lists what exists, the closest name first asked for: `did you mean edge? known: edge, inner`."""
    names = sorted(known)
    if not names:
        return "none exists"
    close = difflib.get_close_matches(word, names, n=1) if len(names) <= _COMPARED else []
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return (f"did you mean {close[0]}? " if close else "") + f"known: {listed}"
