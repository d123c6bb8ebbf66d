# SPDX-License-Identifier: Apache-2.0
"""Renders the chart: with an installed `helm`, else with Helm's own library from the `helm-python-sdk` wheel."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab import toolbox


class ChartError(RuntimeError):
    """Helm refused the chart or the values; the message is Helm's."""


def render(chart: Path, values: Mapping[str, Any], *, release: str, namespace: str) -> str:
    """Every manifest of the chart as one YAML stream. Raises ChartError, also for values that the schema refuses."""
    helm = toolbox.installed("helm")
    if helm is None:
        return _render_with_library(chart, values, release, namespace)
    argv = [str(helm), "template", release, str(chart), "--namespace", namespace, "--values", "-"]
    done = subprocess.run(argv, input=yaml.safe_dump(dict(values)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ChartError(done.stderr.strip())
    return done.stdout


def _render_with_library(chart: Path, values: Mapping[str, Any], release: str, namespace: str) -> str:
    import helm_python  # noqa: PLC0415 - loads a 70 MB library that a machine with a helm command need not load

    try:
        with helm_python.Chart.load(str(chart)) as loaded:
            loaded.validate_schema(dict(values))
            files = loaded.render(dict(values), name=release, namespace=namespace, is_install=True)
    except helm_python.HelmError as refused:
        raise ChartError(str(refused)) from refused
    return "\n---\n".join(text for name, text in sorted(files.items()) if name.endswith(".yaml") and text.strip())
