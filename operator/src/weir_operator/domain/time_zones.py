# SPDX-License-Identifier: Apache-2.0
"""Which time zones exist: those of the pinned package `tzdata`, so that the answer is the same on every machine.

Only names are asked for here; when a day begins in a zone is the limiters' business, and they bring their own copy of
the same database.
"""

from __future__ import annotations

import difflib
import functools
from importlib import resources

_NO_PLACE = frozenset({"Factory"})  # what a machine has before anybody has chosen


@functools.cache
def time_zones() -> frozenset[str]:
    """Every name of the IANA database, older spellings included; case matters."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("utf-8").split()) - _NO_PLACE


def zone_hint(name: str) -> str:
    """What to write instead of a name that is no time zone."""
    lower = {zone.lower(): zone for zone in sorted(time_zones())}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    return f"did you mean {lower[close[0]]}?" if close else 'write a name of the IANA database, like "Europe/Berlin"'
