# SPDX-License-Identifier: Apache-2.0
"""The command line: what it prints and how it ends."""

from pathlib import Path

import pytest

from weir_operator.main import main

GOOD = "gateways: [{name: edge, namespace: weir-system}]"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(GOOD)
    return path


def test_good_settings_are_confirmed(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-settings", str(settings)]) == 0
    assert capsys.readouterr().out == f"{settings}: 1 gateway(s), no mistakes\n"


@pytest.mark.parametrize("command", [["check-settings"], ["run", "--settings"]])
def test_bad_settings_end_the_command_with_all_mistakes(
    settings: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    settings.write_text("gateways: [{name: Edge}]")
    assert main([*command, str(settings)]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in printed] == ["gateways[0].name", "gateways[0].namespace"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--version"], 0, "0.1.0"),
        (["--help"], 0, "check-settings"),
        (["run", "--help"], 0, "KUBECONFIG"),
        ([], 2, "required"),
        (["run"], 2, "--settings"),
        (["run", "--settings", "x", "--health", "8080"], 2, "is not of the form 127.0.0.1:8080"),
        (["run", "--settings", "x", "--log-level", "loud"], 2, "invalid choice"),
        (["run", "--settings", "x", "--lease", "weir-operator"], 2, "is not of the form NAMESPACE/NAME"),
        (["run", "--settings", "x", "--lease", "a/b", "--no-lease"], 2, "not allowed with"),
    ],
)
def test_arguments_are_explained(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, words: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    captured = capsys.readouterr()
    assert end.value.code == status
    assert words in captured.out + captured.err
