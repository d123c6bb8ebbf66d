# SPDX-License-Identifier: Apache-2.0
"""Programs of a Go module, compiled from the module proxy into the user's cache, once for each set of inputs.

The folder in the cache is named by a hash of go.mod, go.sum, sources beside them, the Go version and the flags, so that
a changed pin builds afresh and an unchanged one costs nothing. Knows how to build; starts nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.progress import run_logged, step
from lab.toolbox import CACHE, go


@dataclass(frozen=True, slots=True)
class GoProgram:
    """One program: its package, the module that its version is told by, what it costs to build, what is linked in."""

    package: str
    module: str
    minutes: int  # on 2 cores, with empty Go caches
    linker: str = "-s -w"

    @property
    def flags(self) -> list[str]:
        """The compiler's flags."""
        return ["-trimpath", "-pgo=off", "-buildvcs=false", "-ldflags", self.linker]


@dataclass(frozen=True, slots=True)
class GoModule:
    """A folder with go.mod and go.sum that pin `programs`, by the name of the file that each becomes in the cache."""

    name: str
    folder: Path
    programs: Mapping[str, GoProgram]

    def binaries(self, names: Sequence[str]) -> Path:
        """The folder that holds the named programs, building what is not there yet.

        Raises CommandFailedError with the end of the compiler's log.
        """
        compiler = go()
        home = CACHE / self.name / self._key(compiler)
        home.mkdir(parents=True, exist_ok=True)
        with (home / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in names:
                if not (home / name).exists():
                    self._build(compiler, name, home)
        return home

    def version(self, module: str) -> str:
        """The pinned version of a module, as in `1.37.2`."""
        return pinned(self.folder, module)

    def _build(self, compiler: Path, name: str, home: Path) -> None:
        program, partial = self.programs[name], home / f"{name}.partial"
        what = f"Build {name} {self.version(program.module)} from the Go module proxy"
        with step(f"{what} (about {program.minutes} min on 2 cores, once)"):
            run_logged(
                [compiler, "build", *program.flags, "-o", partial, program.package],
                cwd=self.folder, log=home / f"{name}.log", env=_ENVIRONMENT,
            )  # fmt: skip
        partial.rename(home / name)

    def _key(self, compiler: Path) -> str:
        version = subprocess.run(
            [compiler, "version"], check=True, capture_output=True, text=True, env={**os.environ, **_ENVIRONMENT}
        ).stdout
        flags = [" ".join(program.flags) for program in self.programs.values()]
        own = sorted(path.name for path in self.folder.glob("*.go"))
        pins = [(self.folder / name).read_text() for name in ("go.mod", "go.sum", *own)]
        return hashlib.sha256("\0".join([version, *flags, *pins]).encode()).hexdigest()[:16]


def pinned(folder: Path, module: str) -> str:
    """The version of `module` in a folder's go.mod."""
    found = re.search(rf"^\t{re.escape(module)} v([0-9.]+)", (folder / "go.mod").read_text(), flags=re.MULTILINE)
    assert found is not None, f"go.mod does not require {module}"
    return found[1]


# whatever the person's own Go settings are, these programs are built the same way
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
