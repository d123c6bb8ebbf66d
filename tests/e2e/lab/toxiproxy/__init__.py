# SPDX-License-Identifier: Apache-2.0
"""Toxiproxy: a TCP proxy that delays, cuts and withholds on request. go.mod and go.sum beside this file pin it."""

from __future__ import annotations

from pathlib import Path

from lab.gomodule import GoModule, GoProgram

_PROGRAM = "toxiproxy-server"
_MODULE = "github.com/Shopify/toxiproxy/v2"
_BUILT = GoModule(
    "toxiproxy", Path(__file__).resolve().parent, {_PROGRAM: GoProgram(f"{_MODULE}/cmd/server", _MODULE, 1)}
)


def server() -> Path:
    """The program, built on first use. Raises CommandFailedError with the end of the compiler's log."""
    return _BUILT.binaries([_PROGRAM]) / _PROGRAM


def version() -> str:
    """The pinned version, as in `2.12.0`."""
    return _BUILT.version(_MODULE)
