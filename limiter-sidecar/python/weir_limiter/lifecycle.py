# SPDX-License-Identifier: Apache-2.0
"""The life of the serving process: start, wait for a signal, drain, end with a status that says why.

Owns signals and exit statuses. The main thread does nothing but wait; the server's threads are Rust's.
"""

from __future__ import annotations

import signal
import sys
from typing import Final

from weir_limiter._core import ConfigError, Server
from weir_limiter.config import Settings

EXIT_OK: Final = 0
EXIT_USAGE: Final = 2  # argparse's own
EXIT_BROKEN: Final = 70  # EX_SOFTWARE: a server thread ended by itself; our supervisor starts a fresh process

_ENDING: Final = frozenset({signal.SIGTERM, signal.SIGINT})
_LOOK_EVERY_S: Final = 1.0  # how soon a dead server thread is noticed; small beside any supervisor's restart delay


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status."""
    # Blocked before any thread starts, so that every thread inherits it and only `sigtimedwait` below takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        server = Server(settings)
        server.start()
    except ConfigError as error:
        print(f"weir-limiter: {error}", file=sys.stderr)
        return EXIT_USAGE
    told = False
    while not told and server.stats().alive:
        told = _told_to_end()
    server.stop(settings.drain_s)
    if not told:
        print("weir-limiter: a server thread ended by itself; see the log above", file=sys.stderr)
        return EXIT_BROKEN
    return EXIT_OK


def _told_to_end() -> bool:
    """Wait a while; return whether a signal came.

    Python's `sigtimedwait` also returns when the process was stopped and goes on after the time was up (SIGCONT), with
    whatever happened to be in memory: a limiter that was frozen for a while must not end for that.
    """
    came = signal.sigtimedwait(_ENDING, _LOOK_EVERY_S)
    return came is not None and came.si_signo in _ENDING
