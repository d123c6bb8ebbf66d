# SPDX-License-Identifier: Apache-2.0
"""An operator in place of the environment's, whose way to the API server is somebody else's port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import yaml

from lab import programs
from lab.environment import Environment
from lab.programs import Program


def api_server(environment: Environment) -> SplitResult:
    """Where the environment's operator reaches the API server."""
    return urlsplit(str(_cluster(_kubeconfig(environment))["server"]))


@contextmanager
def operator_by(port: int, environment: Environment, folder: Path) -> Iterator[Program]:
    """Run an operator that reaches the API server by a loopback port; afterwards the environment's runs again."""
    environment.operator.part.stop()
    kubeconfig = _kubeconfig(environment)
    _cluster(kubeconfig)["server"] = f"https://127.0.0.1:{port}"
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    settings = Path(environment.operator.argv[environment.operator.argv.index("--settings") + 1])
    operator = programs.start_operator(settings, path, log=folder / "operator.log")
    try:
        operator.wait_ready()
        yield operator
    finally:
        operator.part.stop()
        environment.revive()


def _kubeconfig(environment: Environment) -> Any:
    return yaml.safe_load(Path(environment.operator.env["KUBECONFIG"]).read_text())


def _cluster(kubeconfig: Any) -> dict[str, Any]:
    (entry,) = kubeconfig["clusters"]
    return entry["cluster"]  # type: ignore[no-any-return]
