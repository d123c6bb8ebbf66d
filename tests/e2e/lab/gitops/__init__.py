# SPDX-License-Identifier: Apache-2.0
"""A GitOps controller's engine, Flux's, as a program: `main.go` beside this file, pinned by go.mod and go.sum."""

from __future__ import annotations

from pathlib import Path

from lab.gomodule import GoModule, GoProgram

_PROGRAM = "gitops"
_BUILT = GoModule("gitops", Path(__file__).resolve().parent, {_PROGRAM: GoProgram(".", "github.com/fluxcd/pkg/ssa", 5)})


def engine() -> Path:
    """The program, built on first use. Raises CommandFailedError with the end of the compiler's log."""
    return _BUILT.binaries([_PROGRAM]) / _PROGRAM
