# SPDX-License-Identifier: Apache-2.0
"""Which folder of the cache a Go program is built into: another one for other pins, the same for the same."""

from pathlib import Path

import pytest

from lab import gomodule
from lab.gomodule import GoModule, GoProgram, pinned

GO_MOD = """module weir.dev/some

require (
\tgithub.com/some/thing/v2 v2.12.0 // indirect
\tgithub.com/some/thing/v2/inner v0.1.0 // indirect
)
"""


@pytest.fixture
def module(tmp_path: Path) -> GoModule:
    (tmp_path / "go.mod").write_text(GO_MOD)
    (tmp_path / "go.sum").write_text("")
    program = GoProgram("github.com/some/thing/v2/cmd", "github.com/some/thing/v2", 1)
    return GoModule("some", tmp_path, {"thing": program})


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    program = tmp_path / "go"
    program.write_text("#!/bin/sh\necho go version go1.26.0\n")
    program.chmod(0o755)
    return program


def test_the_version_is_that_of_exactly_this_module(module: GoModule) -> None:
    assert module.version("github.com/some/thing/v2") == "2.12.0"


def test_a_module_that_is_not_pinned_is_a_mistake_in_the_lab(module: GoModule) -> None:
    with pytest.raises(AssertionError, match="does not require"):
        pinned(module.folder, "github.com/other")


def test_other_pins_are_built_into_another_folder(module: GoModule, compiler: Path) -> None:
    before = module._key(compiler)
    assert module._key(compiler) == before
    (module.folder / "go.sum").write_text("github.com/some/thing/v2 v2.12.0 h1:=\n")
    assert module._key(compiler) != before


def test_what_is_built_already_is_not_built_again(
    module: GoModule, compiler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gomodule, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(gomodule, "go", lambda: compiler)
    home = tmp_path / "cache" / "some" / module._key(compiler)
    home.mkdir(parents=True)
    (home / "thing").touch()
    assert module.binaries(["thing"]) == home
