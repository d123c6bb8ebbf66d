# SPDX-License-Identifier: Apache-2.0
"""A clock that a test sets, preloaded into one process: `libfaketime`, a library that is for tests only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import redis


@dataclass(frozen=True, slots=True)
class FakeClock:
    """The file that the process reads its time from, at every look."""

    file: Path

    @property
    def env(self) -> Mapping[str, str]:
        """What the process needs in its environment."""
        found = find_spec("libfaketime")
        assert found is not None
        assert found.origin is not None
        library = Path(found.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
        return {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # no clock that only counts seconds jumps when somebody sets the time
            "TZ": "UTC",
        }

    def shift(self, hours: int) -> None:
        """The real time, and so many hours."""
        self._write(f"{hours:+}h")

    def stand_at(self, now_us: int) -> None:
        """That time, as a process sees it that looks at least once a millisecond."""
        seconds, micros = divmod(now_us, 1_000_000)
        # Half a microsecond more, since the library cuts off what it has multiplied as a float.
        self._write(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{micros:06}5")

    def stand_in(self, store: redis.Redis, now_us: int) -> None:
        """The same in a running store, which has seen it when this returns."""
        self.stand_at(now_us)
        for _ in range(1000):
            seconds, micros = store.time()
            if 0 <= int(seconds) * 1_000_000 + int(micros) - now_us < 1_000_000:
                return
        raise AssertionError(f"the store's clock does not follow {self.file}")

    def _write(self, content: str) -> None:
        fresh = self.file.with_suffix(".fresh")
        fresh.write_text(content + "\n")
        fresh.rename(self.file)
