# SPDX-License-Identifier: Apache-2.0
"""What the person at the terminal sees while something takes long: that it started, that it lives, that it ended.

It prints and it runs commands with their output in a log; it knows nothing about what is being done.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_SIGN_OF_LIFE_S = 30.0  # arbitrary: long enough not to flood a CI log, short enough that nobody thinks it hangs
_QUOTED_LINES = 25  # of a failed command's log: about one screen


class CommandFailedError(RuntimeError):
    """A command ended with another status than 0; the message quotes the end of its log and names the file."""


def say(text: str = "") -> None:
    """One line to standard output, at once, also when that is a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def step(what: str) -> Iterator[None]:
    """Announce `what`, show that it still runs every half minute, and say how long it took."""
    say(f"· {what}")
    started = time.monotonic()
    over = threading.Event()
    watcher = threading.Thread(target=_show_life, args=(what, started, over), daemon=True)
    watcher.start()
    try:
        yield
    except BaseException:
        say(f"  failed after {_took(started)}: {what}")
        raise
    finally:
        over.set()
        watcher.join()
    say(f"  done in {_took(started)}")


def run_logged(
    argv: Sequence[str | Path], *, log: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Run a command to its end with all its output in `log`; `env` is added to this process's environment.

    Raises CommandFailedError when it ends with another status than 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(word) for word in argv]
    with log.open("wb") as out:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd, env={**os.environ, **(env or {})},
            check=False,
        )  # fmt: skip
    if done.returncode != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-_QUOTED_LINES:])
        raise CommandFailedError(f"`{' '.join(command)}` ended with {done.returncode}; the end of {log}:\n{end}")


def _show_life(what: str, started: float, over: threading.Event) -> None:
    while not over.wait(_SIGN_OF_LIFE_S):
        say(f"  … {_took(started)}: {what}")


def _took(started: float) -> str:
    seconds = time.monotonic() - started
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
