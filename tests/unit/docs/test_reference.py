# SPDX-License-Identifier: Apache-2.0
"""The hand-written reference pages name exactly what the code has: no more, no less."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Counter, Histogram

from weir_operator.main import main
from weir_operator.metrics import Metrics
from weir_operator.settings import parse_settings

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([ROOT / "README.md", ROOT / "charts" / "weir" / "README.md", *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(r"(`+).+?\1", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)]*)?\)")


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


def column(text: str, pattern: str) -> set[str]:
    """What matches in the first column of the page's tables."""
    rows = [line.split(" | ")[0] for line in text.replace(r"\|", "¦").splitlines() if line.startswith("| `")]
    return {found for row in rows for found in re.findall(pattern, row)}


def limiter_flags() -> Iterator[tuple[str, str | None]]:
    """Name and default of each flag, read from the table in the source: the limiter need not be built for this."""
    source = ROOT / "limiter-sidecar" / "python" / "weir_limiter" / "config.py"
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Flag":
            name, default = node.args[0], node.args[4] if len(node.args) > 4 else None
            assert isinstance(name, ast.Constant)
            yield str(name.value), ast.literal_eval(default) if default else None


def test_every_flag_of_the_limiter_is_documented_with_its_default() -> None:
    flags = dict(limiter_flags())
    text = page("limiter-cli")
    assert column(text, r"`--([a-z-]+)") - {"no-mode-header"} == flags.keys()
    for name, default in flags.items():
        (row,) = [line for line in text.splitlines() if line.startswith((f"| `--{name} ", f"| `--{name}`"))]
        assert default is None or f"| `{default}` |" in row


def test_every_metric_of_the_limiter_is_documented() -> None:
    source = (ROOT / "limiter-sidecar" / "crates" / "limiter-server" / "src" / "metrics.rs").read_text()
    registered = dict(re.findall(r'table\.register\("([a-z_]+)".*?self\.([a-z_]+)\.clone\(\)\)', source))
    counters = set(re.findall(r"(?:pub\(crate\) )?([a-z_]+): (?:Family<[A-Za-z]+, )?Counter", source))
    names = {name + ("_total" if field in counters else "") for name, field in registered.items()}
    documented = column(page("metrics").split("## Operator")[0], r"`(weir_[a-z_]+)`")
    assert documented == names


def test_every_metric_of_the_operator_is_documented_with_its_labels() -> None:
    text = page("metrics").split("## Operator")[1]
    metrics = [m for m in vars(Metrics()).values() if hasattr(m, "_labelnames")]
    names = {m._name + ("_total" if isinstance(m, Counter) else ""): m for m in metrics}
    assert column(text, r"`(weir_[a-z_]+)`") == names.keys()
    for name, metric in names.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}`")]
        assert set(re.findall(r"`([a-z]+)`", row.split(" | ")[1])) == set(metric._labelnames)
        assert ("histogram" in row) == isinstance(metric, Histogram)


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Paths of the members that the chart's schema of a gateway knows, down to where the page describes them."""
    for name, member in schema.get("properties", {}).items():
        here = f"{path}{name}"
        described_as_one = here in ("hosts", "listen", "admin", "upstreams", "envoy")
        yield from [here] if described_as_one or "properties" not in member else leaves(member, f"{here}.")


def test_every_flag_of_the_operator_is_documented_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    described = " ".join(capsys.readouterr().out.split())
    text = page("operator-settings")
    assert column(text, r"^\| `--([a-z-]+)") == set(re.findall(r"(?<= )--([a-z-]+) ", described)) - {"help"}
    for default in re.findall(r"default ([a-z0-9.:/-]+)", described):
        assert f"| `{default}` |" in text


def test_every_setting_of_a_gateway_is_documented() -> None:
    schema = json.loads((ROOT / "charts" / "weir" / "values.schema.json").read_text())["$defs"]["gateway"]
    outer, inner = page("operator-settings").split("## `gateways[]`")[1].split("## `gateways[].envoy`")
    assert column(outer, r"`([A-Za-z.]+)`") == set(leaves(schema))
    assert column(inner, r"`([A-Za-z.]+)`") == set(leaves(schema["properties"]["envoy"]))


def test_the_documented_settings_file_is_one_that_the_operator_reads() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", page("operator-settings"), re.DOTALL)
    (edge,) = parse_settings(block).gateways
    assert edge.hosts == {
        namespace: tuple(hosts) for namespace, hosts in yaml.safe_load(block)["gateways"][0]["hosts"].items()
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    prose = CODE.sub("", path.read_text())
    broken = [target for target in LINK.findall(prose) if not (path.parent / target).exists()]
    assert broken == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_mention_only_make_targets_that_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    mentioned = set(re.findall(r"(?:^\$ |`)make ([a-z][a-z0-9-]*)", path.read_text(), re.MULTILINE))
    assert mentioned <= targets
