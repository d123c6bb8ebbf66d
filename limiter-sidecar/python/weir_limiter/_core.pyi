# SPDX-License-Identifier: Apache-2.0
# The compiled core, as Python sees it. `python -m mypy.stubtest weir_limiter._core` holds it to the module.
from typing import final

from weir_limiter.config import Settings

__all__ = [
    "SCRIPTS", "ConfigError", "RulesetError", "Server", "Stats", "calendar_edges", "check", "evaluate", "explain",
]  # fmt: skip

SCRIPTS: dict[str, str]
"""SHA-1 of each embedded store script, by name."""

class ConfigError(ValueError):
    """A setting that cannot work; the message names it."""

class RulesetError(ValueError):
    """A ruleset document that is refused; the message names the member."""

@final
class Stats:
    """What a server says of itself."""

    @property
    def ready(self) -> bool:
        """It has rules, has tried the store, and is not draining."""
    @property
    def alive(self) -> bool:
        """All of its threads run."""
    @property
    def store_up(self) -> bool:
        """The store decides, as far as is known."""
    @property
    def revision(self) -> int:
        """Revision of the rules in force; 0 without rules."""

@final
class Server:
    """One limiter: bound when made, deciding from `start` until `stop`."""

    def __new__(cls, settings: Settings) -> Server:
        """Bind both addresses and read the last good rules. Raises ConfigError."""
    def start(self) -> None:
        """Start to serve, in threads of its own. Raises ConfigError."""
    def apply(self, ruleset: bytes) -> None:
        """Put a ruleset document into force. Raises RulesetError."""
    def stats(self) -> Stats:
        """What the server says of itself at this moment."""
    def stop(self, drain_s: float) -> None:
        """Accept no more, let calls under way finish for at most `drain_s` seconds, end."""

def check(ruleset: bytes) -> str:
    """What a ruleset document holds, as JSON. Raises RulesetError with the path of what is wrong."""

def explain(ruleset: bytes, request: bytes) -> str:
    """What a ruleset does with a request (JSON), as JSON. Raises ValueError when either is refused."""

def evaluate(vector: str) -> str:
    """Play a conformance vector (JSON) through the core's counters; its replies as JSON. Raises ValueError."""

def calendar_edges(calendar: str, zone: str, now_us: int) -> list[int]:
    """Edges in µs since the epoch of three consecutive windows; the middle one holds `now_us`. Raises ValueError."""
